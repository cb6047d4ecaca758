"""Sentences and options that the pages of several engines share."""

from __future__ import annotations

from collections.abc import Iterator

from planner.engines.deployment import Deployment
from planner.engines.launch import Option

__all__ = ["budget", "drafted", "lengths", "notes", "parallel", "shared"]


def parallel(
    plan: Deployment, *, tp: tuple[str, int], pp: str, dp: tuple[str, int] | None = None
) -> Iterator[Option]:
    """Tensor, pipeline and data parallel sizes under the engine's names; ones are left out."""
    layout = plan.layout
    name, size = tp
    told = f"tp {layout['tp']}"
    if size != layout["tp"]:
        told += f" * dp attention {layout['dp_attention']}: all chips of a stage"
    yield Option(name, size, told)
    if layout["pp"] > 1:
        yield Option(pp, layout["pp"], f"pp {layout['pp']}")
    if dp and dp[1] > 1:
        told = f"dp attention {layout['dp_attention']}: copies of attention"
        yield Option(dp[0], dp[1], told)


def shared(plan: Deployment) -> str:
    """Where the sequences of one copy of attention come from."""
    whole = f"{plan.pool['batch_per_replica']} sequences per replica"
    copies = plan.layout["dp_attention"]
    return f"{whole}, over {copies} copies of attention" if copies > 1 else whole


def budget(plan: Deployment) -> str:
    """What one step of one copy of attention computes."""
    copy = ", per copy of attention" if plan.layout["dp_attention"] > 1 else ""
    answers = f"the tokens of {plan.in_step} sequences"
    parts = {"prefill": f"chunk {plan.chunk}", "decode": answers}
    return parts.get(plan.role, f"chunk {plan.chunk} and {answers}") + copy


def drafted(plan: Deployment) -> str:
    """How many tokens are drafted."""
    return f"{plan.drafts} draft{'s' * (plan.drafts > 1)}"


def lengths(plan: Deployment) -> str:
    """What the longest request is made of."""
    drafts = f", {drafted(plan)}" if plan.drafts else ""
    kind = "99.9 % of inputs and of outputs" if plan.longest_is_quantile else "input and output"
    limit = plan.checkpoint.sizes.max_context
    most = f"; the model goes to {limit}" if limit else ""
    return f"{kind}{drafts}, rounded up{most}"


def notes(plan: Deployment, trust: str = "--trust-remote-code") -> Iterator[str]:
    """What to know whatever the engine; `trust` lets a checkpoint bring its own code."""
    if plan.checkpoint.folder:
        yield "the checkpoint is the folder of the scenario's config.json; the weights lie there"
    yield (
        f"a checkpoint that brings its own code is refused until {trust} is added; add it only if "
        "you trust that code"
    )
    if not plan.whole["fits_at_full_context"]:
        yield "the plan fits at mean context: when many long requests meet, some are preempted"
    if not plan.even:
        yield (
            f"{plan.checkpoint.sizes.n_experts} experts do not divide over ep "
            f"{plan.layout['ep']}: some chips hold one more than others"
        )
    if plan.nodes > 1 and plan.vendor == "NVIDIA" and plan.chip.name in ("gb200", "gb300", "rubin"):
        yield "trays of a rack speak NVLink only inside one IMEX domain"
