"""The engines, and how each writes a plan: the rows of its release walked over the plan's facts.

A new engine is added by its rows in `releases.toml`, and by what it runs in `engine_rules.toml`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from planner.catalogue import models
from planner.engines.deployment import Deployment
from planner.engines.launch import FactValue, Launch, Option, OptionRow, Reason, Release, releases
from planner.problems.serving.step.layouts import AXES, Layouts
from planner.problems.serving.step.runnable import refusals
from planner.scenario.keys.engine_keys import SETTINGS

# Deployment attributes that option rows use under equal names.
OF_THE_POOL = (
    "cached_input", "chunk", "converted", "drafts", "engine_version", "local", "longest", "nodes",
    "on_machine", "own_blocks", "role", "sequences", "stage", "step_tokens", "two_batches",
)  # fmt: skip
SEVERAL = MappingProxyType({
    "copies": "dp_attention", "cut_attention": "tp", "cut_context": "cp", "pipeline": "pp",
    "cut_experts": "tp_expert", "expert_parallel": "ep", "shared_contexts": "dcp",
})  # fmt: skip
DRAFTER = "REPLACE-BY-A-DRAFTER-OF-THIS-MODEL"
RACKS = ("gb200", "gb300", "rubin")  # whose domains span servers


@dataclass(frozen=True)
class Engine:
    """One release of an engine, with the rules that exclude plans."""

    release: Release

    def reasons(self, plan: Deployment) -> list[Reason]:
        """Return the reasons why the engine cannot run the plan; empty if it can."""
        ways = {axis: plan.layout.get(axis, 1) for axis in AXES}
        layout = Layouts.of(halves=1 + plan.two_batches, **ways)
        return [Reason(*pair) for pair in refusals(plan.asked_of_rules, layout, self.release)]

    def launch(self, plan: Deployment) -> Launch:
        """Return the launch of one replica; `reasons` must be empty."""
        release, facts = self.release, launch_facts(plan, self.release)
        words = release.mpi if plan.nodes > 1 else ()
        return Launch(
            release=release,
            prefix=tuple(word.format_map(facts) for word in words),
            options=_options(release.options, facts),
            followers=_options(release.followers, facts),
            config=_options(release.settings, facts),
            config_file=str(facts["config_file"]),
            environment=_options(release.variables, facts),
            nodes=plan.nodes,
            local=plan.local,
            notes=tuple(row.text.format_map(facts) for row in release.notes if row.holds(facts)),
            role=plan.role,
        )


ENGINES: Mapping[str, Engine] = MappingProxyType(
    {name: Engine(release) for name, release in releases().items()}
)


def _options(rows: Iterable[OptionRow], facts: Mapping[str, FactValue]) -> tuple[Option, ...]:
    return tuple(
        Option(row.name, row.value_of(facts), row.because.format_map(facts))
        for row in rows
        if row.holds(facts)
    )


def launch_facts(plan: Deployment, release: Release) -> dict[str, FactValue]:
    """Facts of a plan that the rows of a release can use: numbers, texts and booleans."""
    layout, pool, checkpoint, whole = plan.layout, plan.pool, plan.checkpoint, plan.whole
    copies, weights, ranks = layout["dp_attention"], pool["weights"], layout.get("dcp", 1)
    pools = [whole[name] for name in ("prefill", "decode")] if plan.role else []
    staged = bool(pools) and pools[0]["layout"]["pp"] > 1
    trays = plan.nodes > 1 and plan.chip.maker == "NVIDIA" and plan.chip.name in RACKS
    file = f"{plan.role}-{release.config_file}" if plan.role else release.config_file
    return {
        **layout,
        **{f"share_{name}": share for name, share in plan.share.items()},
        **{name: getattr(plan, name) for name in OF_THE_POOL},
        **{name: pool[name] for name in ("batch_per_replica", "kv", "weights")},
        **{name: layout.get(axis, 1) > 1 for name, axis in SEVERAL.items()},
        **_phrases(plan),
        "budget": max(plan.step_tokens, plan.chunk),
        "cache": release.cache(plan.asked_of_rules),
        "chips": plan.nodes * plan.local,
        "chunk_of_copies": plan.chunk * copies,
        "config_file": file if release.config_file else "",
        "conversion": release.online.get(weights),
        "chips_of_stage": plan.stage * layout["cp"],
        "connector": "NixlPushConnector" if staged else "NixlConnector",
        "cut_heads": layout["tp"] // ranks,
        "draft_head": plan.drafts > 0 and not plan.own_blocks,
        "drafter": release.drafter(plan.method),
        "drafter_place": (place := drafter_place(plan.method)),
        "drafter_to_replace": place == DRAFTER,
        "decodes_alone": plan.role == "decode",
        "even_experts": plan.even,
        "fp8_cache": pool["kv"] == "fp8",
        "hopper": plan.chip.architecture == "hopper",
        "fits_at_full_context": whole["fits_at_full_context"],
        "folder": checkpoint.folder,
        "mxfp4_unpacked": weights == "mxfp4" and not plan.chip.computes("mxfp4"),
        "n_experts": checkpoint.sizes.n_experts,
        "nvidia": plan.chip.maker == "NVIDIA",
        "options_of": (version := release.version),
        "other_version": plan.engine_version not in ("", version, version.rpartition(".")[0]),
        "redundant": plan.asked_of_rules.copies,
        "pools_differ_in_tp": len({each["layout"]["tp"] for each in pools}) > 1,
        "port": release.port,
        "positions": plan.drafts + 1,
        "prefills_alone": plan.role == "prefill",
        "racks": trays,
        "staged": staged,
        "running": plan.sequences * copies,
        "several_nodes": plan.nodes > 1,
        "shared_machine": plan.on_machine > 1,
        "stored": checkpoint.weights,
        "trust": release.trust,
        "two_pools": bool(plan.role),
    }


def drafter_place(method: str) -> str:
    """Repository of the drafter's weights if it is a catalogue model, else a placeholder.

    Heads are trained for one model each, and the catalogue has none of them.
    """
    return (models.repository(method) if method in models.model_names() else None) or DRAFTER


def _phrases(plan: Deployment) -> dict[str, str]:
    """Phrases for notes of several engines: sequences, tokens of a step, longest request."""
    layout, copies = plan.layout, plan.layout["dp_attention"]
    sequences = f"{plan.pool['batch_per_replica']} sequences per replica"
    answers = f"the tokens of {plan.in_step} sequences"
    parts = {"prefill": f"chunk {plan.chunk}", "decode": answers}
    step = parts.get(plan.role, f"chunk {plan.chunk} and {answers}")
    drafted = f"{plan.drafts} draft{'s' * (plan.drafts > 1)}"
    lengths = "99.9 % of inputs and of outputs" if plan.longest_is_quantile else "input and output"
    limit = plan.checkpoint.sizes.max_context
    all_chips = f" * dp attention {copies}: all chips of a stage" if copies > 1 else ""
    phrase_of = dict(zip(SETTINGS, ("of_a_copy", "in_a_step", "of_the_longest"), strict=True))
    return {
        "drafted": drafted,
        "in_a_step": step + (", per copy of attention" if copies > 1 else ""),
        "of_a_copy": sequences + (f", over {copies} copies of attention" if copies > 1 else ""),
        "of_a_stage": f"tp {layout['tp']}{all_chips}",
        "of_the_longest": f"{lengths}{f', {drafted}' if plan.drafts else ''}, rounded up"
        + (f"; the model goes to {limit}" if limit else ""),
    } | {phrase_of[key]: f"{key} of the scenario" for key in plan.engine_limits}
