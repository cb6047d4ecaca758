"""How is it started, and how is what runs today planned? Commands on launches of engines."""

from contextlib import suppress
from pathlib import Path

from planner.cli.options import require_file, require_folder, warn
from planner.report.files import deliver, dumps
from planner.text.console import show
from planner.text.errors import InputError


def export(
    file: str,
    engine: str | None = None,
    to: str | None = None,
    sets: list[str] | None = None,
    strict: bool = False,
    benchmark: bool = False,
    json: bool = False,
    out: Path | None = None,
) -> None:
    """Write the chosen plan as launch flags of an engine, or as Kubernetes manifests."""
    from planner.engines import TARGETS, engine_of
    from planner.engines import benchmark as measured
    from planner.engines import export as launch
    from planner.protocol.solve import check as checked
    from planner.protocol.solve import solve as answer
    from planner.scenario import load

    target, inside = to or engine, engine if to else None
    if target is None:
        raise InputError(f"say for what with --engine, one of {', '.join(TARGETS)}")
    runs = engine_of(target, inside).release.name
    require_folder(out)
    changes = list(sets or ())
    if file != "-" and getattr(load(file, changes), "engine", None) == "any":
        # Of all that some engine runs, what this one does; where it cannot, the plan says why not.
        with suppress(InputError):
            checked(file, [*changes, f"engine={runs}"])
            changes.append(f"engine={runs}")
    plan = answer(file, changes, strict=strict)
    warn(plan.warnings)
    folder = Path() if file == "-" else Path(file).parent
    if benchmark:
        text = measured(plan, target, inside, folder)
        deliver(text, None if out is None else out / "benchmark.sh")
        return
    written = launch(plan, target, inside, folder)
    if out is not None:
        for name, text in written.files.items():
            deliver(text, out / name)
    if out is None or json:
        show(dumps(written.document) if json else written.text.rstrip("\n"))


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
