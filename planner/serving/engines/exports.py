"""A solved plan as what starts it: a script, a configuration file, a manifest; or the reason not.

`ENGINES` is where a new engine is added: its page gives RELEASE, `reasons` and `launch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from planner.errors import Infeasible, InputError, did_you_mean, quoted
from planner.plan import Plan
from planner.scenario import Scenario, Tree, checked
from planner.serving.engines import sglang, trtllm, vllm
from planner.serving.engines.deployment import Checkpoint, Deployment, checkpoint, deployment
from planner.serving.engines.kubernetes import manifest
from planner.serving.engines.launch import Launch, Reason
from planner.serving.engines.script import configuration, script

__all__ = ["ENGINES", "TARGETS", "Export", "export", "known"]

ENGINES: Mapping[str, ModuleType] = MappingProxyType(
    {page.RELEASE.name: page for page in (vllm, sglang, trtllm)}
)
MANIFEST = "kubernetes"
TARGETS = (*ENGINES, MANIFEST)
AXES = ("tp", "pp", "dp_attention", "ep", "tp_expert")


@dataclass(frozen=True)
class Export:
    """Files that start a plan, by name, and what they were written for.

    `text` is the first of them, which stands alone. `document` is the same for programs.
    """

    target: str
    launch: Launch
    files: Mapping[str, str]

    @property
    def text(self) -> str:
        """The script, or the manifest; it writes its own configuration file."""
        return next(iter(self.files.values()))

    @property
    def document(self) -> dict[str, Any]:
        """Engine, version, date, options with their reasons, files; only JSON types."""
        release = self.launch.release
        told = [*self.launch.options, *self.launch.followers, *self.launch.config]
        return {
            "target": self.target,
            "engine": release.name,
            "version": release.version,
            "as_of": release.as_of,
            "sources": list(release.sources),
            "nodes_per_replica": self.launch.nodes,
            "chips_per_node": self.launch.local,
            "options": [
                {"name": each.name, "value": each.value, "because": each.because} for each in told
            ],
            "notes": list(self.launch.notes),
            "files": dict(self.files),
        }

    def __str__(self) -> str:
        return self.text


def export(
    plan: Plan, target: str, engine: str | None = None, folder: str | Path | None = None
) -> Export:
    """What starts the plan on an engine, or on Kubernetes with that engine in the pods.

    Parameters
    ----------
    target : vllm, sglang, trtllm or kubernetes.
    engine : which engine Kubernetes runs; vllm when absent.
    folder : where the scenario's paths begin; the working directory when absent.

    Raises
    ------
    InputError
        If the target is unknown, or the plan has no checkpoint or no named chip.
    Infeasible
        If there is no plan, or the engine cannot run it: says why, and what would work.
    """
    page = known(target, engine)
    document = plan.document
    if not plan.chosen:
        raise Infeasible(_nothing(plan))
    tree = Tree("scenario", dict(document["scenario"]))
    scenario = checked(tree, Path() if folder is None else Path(folder))
    if not isinstance(scenario, Scenario):
        raise InputError(f"plans of problem {plan.problem} start no engine; export a serving plan")
    held = checkpoint(scenario)
    asked = deployment(scenario, held, plan.chosen)
    against = list(page.reasons(asked))
    if against:
        raise Infeasible(_refusal(page, against, scenario, held, document))
    launch: Launch = page.launch(asked)
    model, heading = asked.checkpoint.place, _heading(asked, launch)
    if target == MANIFEST:
        place = f"/models/{Path(model).name}" if asked.checkpoint.folder else model
        files = {"kubernetes.yaml": manifest(launch, asked, place, heading)}
    else:
        files = {"serve.sh": script(launch, model, heading)}
        if launch.config:
            files[launch.config_file] = "\n".join(configuration(launch.config)) + "\n"
    return Export(target, launch, MappingProxyType(files))


def known(target: str, engine: str | None) -> ModuleType:
    """The page of the engine that a target runs; raises InputError for a name that is none."""
    for word, names in ((target, TARGETS), (engine, tuple(ENGINES))):
        if word is not None and word not in names:
            hint = did_you_mean(word, names) or f" (known: {', '.join(names)})"
            raise InputError(f"unknown engine {quoted(word)}{hint}")
    if target == MANIFEST:
        return ENGINES[engine or vllm.RELEASE.name]
    if engine not in (None, target):
        raise InputError(f"{target} and {engine} are two engines; give one of them")
    return ENGINES[target]


def _nothing(plan: Plan) -> str:
    """Why there is no plan, promise by promise."""
    lines = ["there is nothing to export, for no plan keeps every promise; short are"]
    lines += [f"  {s['promise']} by a factor of {s['short_by']:.3g}" for s in plan.infeasible]
    return "\n".join(lines)


def _refusal(
    page: ModuleType,
    against: list[Reason],
    scenario: Scenario,
    held: Checkpoint,
    document: Mapping[str, Any],
) -> str:
    """Every reason with its remedy, and the best of the runners-up that the engine does run."""
    lines = [f"{page.RELEASE.stamp} cannot run this plan"]
    for each in against:
        lines += [f"  {each.what}", f"    what would work: {each.remedy}"]
    for other in document["alternatives"]:
        try:
            fits = not any(page.reasons(deployment(scenario, held, other)))
        except Infeasible:
            fits = False
        if fits:
            price, best = other["usd_per_mtok"], document["plan"]["usd_per_mtok"]
            sets = " ".join(f"--set choose.{axis}={other['layout'][axis]}" for axis in AXES)
            lines.append(
                f"  the best of the runners-up that it runs costs {price / best - 1:+.1%}: {sets}"
            )
            break
    return "\n".join(lines)


def _heading(plan: Deployment, launch: Launch) -> list[str]:
    """What a reader of the file must know before running it."""
    chosen, layout, release = plan.plan, plan.layout, launch.release
    sizes = ", ".join(f"{axis} {layout[axis]}" for axis in AXES if layout[axis] > 1) or "one chip"
    chips = launch.nodes * launch.local
    where = f"on one node with {chips} chip{'s' * (chips > 1)}"
    if launch.nodes > 1:
        where = f"on {launch.nodes} nodes with {launch.local} chips each"
        where += "" if launch.prefix else ", run on every one of them"
    idle = chosen["chips"] - chosen["chips_used"]
    return [
        f"{plan.checkpoint.sizes.name} on {release.stamp}, written by token-planner; options as "
        f"read on {release.as_of} (another version may spell them differently).",
        f"Plan: {layout['replicas']} x ({sizes}) on {chosen['chips']} {chosen['chip']}"
        f"{f' ({idle} idle)' if idle else ''}, weights {chosen['weights']}, KV cache "
        f"{chosen['kv']}, {chosen['batch']} sequences in flight.",
        f"Expected: TPOT {chosen['tpot'] * 1e3:.3g} ms, TTFT {chosen['ttft'] * 1e3:.3g} ms without "
        f"queueing, {chosen['tokens_per_s']:,.0f} output tokens/s, "
        f"${chosen['usd_per_mtok']:.3g} per million tokens.",
        f"This starts {_which(layout['replicas'])}, {where}.",
        *(f"- {note}" for note in launch.notes),
    ]


def _which(replicas: int) -> str:
    return f"one of {replicas} replicas behind a router" if replicas > 1 else "the only replica"
