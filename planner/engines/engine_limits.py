"""What stops an engine from running a plan: what stops any, and what only it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from planner.engines.deployment import Deployment
from planner.engines.launch import Reason
from planner.engines.release import Release

Limits: TypeAlias = Callable[[Deployment], Iterator[Reason]]
NEEDS_FP4 = frozenset({"nvfp4", "fp4"})


def general(plan: Deployment, release: Release) -> Iterator[Reason]:
    """Reasons against a plan: parts of contexts, copied experts, overlap, maker, dtypes, drafts."""
    if plan.layout["cp"] > 1:
        yield Reason(f"cp {plan.layout['cp']} is not written by this export", "choose.cp=1")
    copies = plan.pool["redundant_experts"]
    if copies:
        reason = f"{copies} redundant experts are not written by this export"
        yield Reason(reason, "choose.redundant_experts=0")
    if plan.two_batches and not release.overlaps:
        reason = f"{release.stamp} has no option that lets two half-batches overlap"
        yield Reason(reason, "choose.overlap=none")
    if plan.vendor not in release.vendors:
        vendors = " and ".join(release.vendors)
        reason = f"{plan.chip.title} is not among the chips its options were read for ({vendors})"
        yield Reason(reason, f"a system with chips of {vendors}")
    yield from _heads(plan)
    yield from _weights(plan, release.online, unpacks_fp4=release.unpacks_fp4)
    if cache_dtype(plan, release.caches) is None:
        remedy = " or ".join(dtype for dtype in release.caches if dtype not in NEEDS_FP4)
        reason = f"it has no {plan.pool['kv']} KV cache for {plan.checkpoint.sizes.name}"
        yield Reason(reason, f"choose.kv={remedy}")
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


def vllm(plan: Deployment) -> Iterator[Reason]:
    """Experts are spread over all tensor * data parallel ranks or each cut over all of them."""
    layout = plan.layout
    if layout["ep"] > 1 and layout["tp_expert"] > 1:
        yield Reason(
            f"ep {layout['ep']} with expert tp {layout['tp_expert']}: its expert parallelism is "
            f"always tp * dp attention = {plan.stage}, or off",
            f"choose.ep={plan.stage}, or choose.ep=1",
        )
    if layout["pp"] > 1 and (plan.role == "decode" or (plan.role and plan.checkpoint.hybrid)):
        what = "from a pipeline of layers of several kinds"
        place = "into a pipeline" if plan.role == "decode" else what
        yield Reason(f"pp {layout['pp']}: NixlConnector moves no caches {place}", "choose.pp=1")
    blocks = plan.checkpoint.prediction_blocks
    if blocks and plan.drafts > blocks and plan.drafts % blocks:
        reason = f"{plan.drafts} drafts are no multiple of the {blocks} prediction blocks"
        yield Reason(reason, f"speculation.drafts={blocks}")


def sglang(plan: Deployment) -> Iterator[Reason]:
    """Attention is copied and experts are grouped inside its tensor parallel size: any layout."""
    yield from uneven(plan)
    if plan.drafts and plan.layout["pp"] > 1 and plan.role != "prefill":
        reason = "with speculation: what decodes drafts without a pipeline only"
        yield Reason(f"pp {plan.layout['pp']} {reason}", "choose.pp=1")


def trtllm(plan: Deployment) -> Iterator[Reason]:
    """Attention is cut over all chips of a stage or copied on every one, nothing between."""
    layout = plan.layout
    if layout["tp"] > 1 and layout["dp_attention"] > 1:
        yield Reason(
            f"tp {layout['tp']} with dp attention {layout['dp_attention']}: it cuts attention over "
            f"all {plan.stage} chips of a stage or copies it on every one",
            f"choose.tp=1, or choose.dp_attention=1 with choose.tp={plan.stage}",
        )
    yield from uneven(plan)
    if plan.checkpoint.weights == "fp8" and not plan.chip.computes("fp8"):
        yield Reason(f"{plan.chip.title} has no fp8 arithmetic", "a bf16 or int4 checkpoint")
    checkpoint_kv = plan.checkpoint.sizes.kv_dtype
    if plan.pool["kv"] == "bf16" and checkpoint_kv != "bf16":
        reason = f"the checkpoint asks for a {checkpoint_kv} KV cache, which dtype auto follows"
        yield Reason(reason, f"choose.kv={checkpoint_kv}")


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
    sizes = plan.checkpoint.sizes
    if plan.method not in ("", "mtp"):
        reason = f"drafting by {plan.method} is not written by this export"
        yield Reason(reason, "speculation.method=mtp, or leave speculation out")
        return
    without = "leave speculation out, or start it by hand with a draft model of its own"
    if not plan.checkpoint.prediction_blocks:
        reason = f"{sizes.name} has no blocks for multi-token prediction in its checkpoint"
        yield Reason(reason, without)
    elif sizes.family not in predicting:
        reason = f"it does not run the multi-token prediction blocks of {sizes.family}"
        yield Reason(reason, without)
