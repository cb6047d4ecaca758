"""How is it started, and how is what runs today planned? Commands on launches of engines."""

from __future__ import annotations

from pathlib import Path

from planner.cli.options import require_file, warn
from planner.report.files import deliver, dumps
from planner.text.console import show
from planner.text.errors import InputError


def import_launch(
    launches: list[Path],
    sets: list[str] | None = None,
    replicas: int | None = None,
    json: bool = False,
    out: Path | None = None,
) -> None:
    """Read a launch of an engine, or Kubernetes manifests, as a scenario with the layout in use."""
    from planner.engines.imported import imported

    if replicas is not None and replicas < 1:
        raise InputError(f"--replicas: expected at least 1, got {replicas}")
    require_file(out, "scenario.yaml")
    scenario = imported(launches, sets or (), replicas)
    if json:
        warn(scenario.notes)
        show(dumps(scenario.data))
    else:
        deliver(str(scenario), out)
