"""What stops any engine from running a plan, asked of facts that its own page gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from planner.engines.deployment import Deployment
from planner.engines.launch import Reason, Release

NEEDS_FP4 = frozenset({"nvfp4", "fp4"})


def general(plan: Deployment, release: Release) -> Iterator[Reason]:
    """Reasons against the plan: contexts in parts, copied experts, maker, heads, dtypes, drafts."""
    if plan.layout["cp"] > 1:
        yield Reason(f"cp {plan.layout['cp']} is not written by this export", "choose.cp=1")
    copies = plan.pool["redundant_experts"]
    if copies:
        reason = f"{copies} redundant experts are not written by this export"
        yield Reason(reason, "choose.redundant_experts=0")
    if plan.vendor not in release.vendors:
        vendors = " and ".join(release.vendors)
        yield Reason(
            f"{plan.chip.title} is not among the chips its options were read for ({vendors})",
            f"a system with chips of {vendors}",
        )
    yield from _heads(plan)
    yield from _weights(plan, release.online, unpacks_fp4=release.unpacks_fp4)
    if cache_dtype(plan, release.caches) is None:
        yield Reason(
            f"it has no {plan.pool['kv']} KV cache for {plan.checkpoint.sizes.name}",
            f"choose.kv={_dtypes(release.caches)}",
        )
    yield from _speculation(plan, release.predicting)


def cache_dtype(plan: Deployment, caches: Mapping[str, str]) -> str | None:
    """What the engine calls the plan's cache dtype; None if it has no such cache for the model."""
    dtype = plan.pool["kv"]
    if dtype in NEEDS_FP4 and (plan.checkpoint.latent or not plan.chip.computes(dtype)):
        return None
    return caches.get(dtype)


def uneven(plan: Deployment) -> Iterator[Reason]:
    """For engines that hold the same number of experts on every chip."""
    if plan.even:
        return
    experts, tp = plan.checkpoint.sizes.n_experts, plan.layout["tp"]
    here = max(n for n in range(1, plan.stage + 1) if experts % n == 0 == plan.stage % n)
    remedy = f"choose.ep={here}"
    fewer = [n for n in range(here + 1, plan.stage) if experts % n == 0 == n % tp]
    if fewer:
        remedy += f", or choose.dp_attention={fewer[-1] // tp} with choose.ep={fewer[-1]}"
    yield Reason(f"{experts} experts do not divide over ep {plan.layout['ep']}", remedy)


def _heads(plan: Deployment) -> Iterator[Reason]:
    """Engines divide the cache heads over tp chips, or copy them evenly."""
    heads, tp = plan.checkpoint.sizes.n_kv_heads, plan.layout["tp"]
    if plan.checkpoint.latent or not heads or heads % tp == 0 or tp % heads == 0:
        return
    queries = plan.checkpoint.sizes.n_q_heads
    fitting = [
        n for n in range(1, queries + 1) if queries % n == 0 and heads % n * (n % heads) == 0
    ]
    nearest = min(fitting, key=lambda n: (abs(n - tp), n))
    yield Reason(
        f"tp {tp} neither divides the {heads} KV heads of {plan.checkpoint.sizes.name} nor is a "
        "multiple of them",
        f"choose.tp={nearest}",
    )


def _weights(plan: Deployment, online: Mapping[str, str], *, unpacks_fp4: bool) -> Iterator[Reason]:
    wanted, stored = plan.pool["weights"], plan.checkpoint.weights
    chip = plan.chip
    if wanted == "nvfp4" and plan.vendor != "NVIDIA":
        yield Reason(f"{chip.title} does not know NVIDIA's format nvfp4", "an mxfp4 or fp8 model")
    elif wanted in NEEDS_FP4 and not chip.computes(wanted) and not unpacks_fp4:
        reason = f"{chip.title} has no {wanted} arithmetic, which these weights need"
        yield Reason(reason, "a Blackwell chip, or an fp8 model")
    if not plan.converted or (stored in ("bf16", "fp16", "fp32") and wanted in online):
        return
    yield Reason(
        f"the plan takes {wanted} weights, the checkpoint {plan.checkpoint.place} holds {stored}, "
        "and they are not converted while loading",
        f"choose.weights={stored}, or a model whose checkpoint is {wanted}",
    )


def _speculation(plan: Deployment, predicting: Collection[str]) -> Iterator[Reason]:
    if not plan.drafts:
        return
    checkpoint = plan.checkpoint
    without = "leave speculation out, or start it by hand with a draft model of its own"
    if not checkpoint.prediction_blocks:
        reason = (
            f"{checkpoint.sizes.name} has no blocks for multi-token prediction in its checkpoint"
        )
        yield Reason(reason, without)
    elif checkpoint.sizes.family not in predicting:
        reason = f"it does not run the multi-token prediction blocks of {checkpoint.sizes.family}"
        yield Reason(reason, without)


def _dtypes(caches: Mapping[str, str]) -> str:
    return " or ".join(dtype for dtype in caches if dtype not in NEEDS_FP4)
