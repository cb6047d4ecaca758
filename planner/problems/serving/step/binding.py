"""Binding of the symbols of serving equations to numbers.

Every number that a serving equation needs enters here, once. `shared_values` binds what all
layouts have in common (model, chip, workload, profile), `layout_values` what a layout changes.
How it spreads experts and contexts comes first: fullest ranks, copies of a token, rounds of parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from formulas.numerics.store import by_columns
from planner.architecture.counts import ModelSizes
from planner.architecture.layers import uncut_share
from planner.memory.engine_room import fullest_weights
from planner.network.layout_collectives import (
    DECODE,
    PREFILL,
    Exchange,
    Reduction,
    exchanges,
    reductions,
    rounds,
)
from planner.problems.serving.step.drafting import draft_collectives, drafter_values, resident
from planner.problems.serving.step.engine_effects import captures
from planner.problems.serving.step.kernels import get_kernel
from topologies.groups.group_rate import rate_table

if TYPE_CHECKING:
    from planner.catalogue.chips import ChipPower
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

V = TypeVar("V", bound=float | np.ndarray)
# Collectives of a layer: queries, partial results; of ranks also the sums of their softmax (vLLM,
# SGLang: --dcp-comm-backend ag_rs, the default).
ASKED_OF_PARTS, ASKED_OF_RANKS = 2.0, 3.0
TINY = 1e-300  # bytes a token of a model that keeps none


def contexts(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """Collective costs of chips that share a context: exchange of answers, keys and values.

    Parts of a stage, or neighbouring ranks of a group, of which only the layers ask whose caches
    are cut.
    """
    ranks, caches = layouts.dcp > 1, task.sizes.caches
    cut_layers = np.where(ranks, float(sum(one.layers for one in caches if one.cut)), 0.0)
    values = {
        "cp": layouts.cp.astype(float),
        "dcp": layouts.dcp.astype(float),
        "tp_a": layouts.tp / layouts.dcp,
        "n_cp": np.where(layouts.cp > 1, float(task.sizes.n_attention_layers), cut_layers),
        "n_ask": np.where(ranks, ASKED_OF_RANKS, ASKED_OF_PARTS),
        "n_gather": cut_layers * (task.mode == "aggregated"),
        # Every part has the chunk of a chip of its own.
        "c_chunk": task.chunk * layouts.cp,
    }
    share, span = layouts.cp * layouts.dcp, np.where(ranks, layouts.dcp, layouts.stage)
    for term, within in (("cp", DECODE), ("ring", PREFILL)):
        law = _nothing_sent(layouts)
        if not task.lecture:
            law = rounds(task.network, task.chip.name, share, span, within)
        values |= _law(term, law)
    return values


def _law(term: str, law: Reduction | Exchange) -> dict[str, np.ndarray]:
    return {f"a_{term}": law.floor, f"w_{term}": law.rate, f"g_{term}": law.root}


def _nothing_sent(layouts: Layouts) -> Reduction:
    nothing = np.zeros(len(layouts))
    return Reduction(nothing, np.ones(len(layouts)), nothing)


def expert_imbalance(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """Weights and tokens of the fullest expert rank over the mean.

    Copies of experts are weights that a rank holds beyond its share; tokens follow all of its
    experts alike, and whatever skewed routing adds comes on top.
    """
    # All tokens of one rank is as uneven as it gets.
    skew = np.minimum(task.skew, layouts.ep)
    if task.lecture or task.ideal:
        whole = np.ones(len(layouts))
        return {"u_ep": whole, "x_ep": whole * skew, "f_skew": skew}
    experts = max(task.sizes.n_experts, 1)
    stored = experts + task.redundant
    fullest = np.ceil(stored / layouts.ep) * layouts.ep
    return {"u_ep": fullest / experts, "x_ep": fullest / stored * skew, "f_skew": skew}


def imbalance(task: Task, ep: np.ndarray) -> np.ndarray:
    """The fullest of ep ranks: 1 + c/sqrt(B), c = sqrt(2 ln(ep) ep / (k m))."""
    k = max(task.sizes.n_experts_active, 1)
    return np.sqrt(2 * np.log(ep) * ep / (k * task.positions_per_step))


def copies(sizes: ModelSizes, ep: np.ndarray) -> np.ndarray:
    """Expected number of expert ranks that hold at least one of a token's k experts."""
    return _distinct(sizes.n_experts, sizes.n_experts_active, ep, ep)


def copies_to_domains(sizes: ModelSizes, domains: np.ndarray) -> np.ndarray:
    """Expected number of domains that hold at least one of a token's k experts.

    Group-limited routing keeps a token to some of the domains, over which groups of experts lie in
    turn, and picks its experts among those of these.
    """
    groups = np.maximum(np.ceil(domains / sizes.expert_groups), 1.0)
    reach = np.minimum(domains, sizes.expert_groups_active * groups)
    return _distinct(sizes.n_experts, sizes.n_experts_active, domains, reach)


@by_columns
def _distinct(stored: int, picked: int, places: np.ndarray, reach: np.ndarray) -> np.ndarray:
    group = stored / places
    experts, missed = group * reach, np.ones(np.shape(places))
    for i in range(picked):
        missed *= np.maximum(experts - group - i, 0.0) / np.maximum(experts - i, 1.0)
    return reach * (1 - missed) if stored else np.zeros(np.shape(places))


ACTIVATION_BYTES = 2.0  # bf16 between layers
# Launches of an indexer over those of a layer: on 22 runs of GLM-5 on B200, launches and prompts
# take 1.63 times the time without indexers; GLM-5.2, whose layers mostly share indices, no more.
INDEXER_LAUNCHES = 0.63
LOGIT_BYTES = 4.0  # fp32 before sampling
COMBINE_BYTES = 2.0  # experts answer in bf16 (DeepSeek-V3 report, section 3.3)
FP8_SCALE_BYTES = 4.0 / 128.0  # fp32 scale per 128 elements (DeepSeek-V3 report, section 3.3)


def shared_values(task: Task) -> dict[str, float]:
    """Values of every symbol that does not depend on layout or batch, by symbol name.

    Lengths, prices, rates and sizes of memory in the task may be arrays of points.
    """
    model = _lecture_model(task) if task.lecture else _model(task)
    chip, drafted = task.chip, resident(task)
    beside = drafted.get("b_store", 0.0)
    return {
        **model,
        "N_attn_pf": model["N_attn"],
        **{name: model[name] + more for name, more in drafted.items()},
        # A drafter's KV cache is copied, not cut by tokens: all of it adds to the uncut share.
        "x_store": (model["x_store"] * model["b_store"] + beside)
        / max(model["b_store"] + beside, TINY),
        **drafter_values(task),
        "W_chip": chip.memory_bandwidth,
        "M_cap": chip.memory,
        "M_sram": 0.0 if task.lecture else chip.sram or 0.0,
        "x_mem": task.utilisation,
        "L_in": task.input_tokens,
        "L_out": task.output_tokens,
        "L_ctx": task.context,
        # Prefill emits the first token; a task without decode steps never uses the number.
        "L_dec": task.output_tokens - (1.0 if task.mode == "aggregated" or task.pooled else 0.0),
        "x_hit": task.cached_input,
        "x_pf": 0.0 if task.mode == "decode" else 1.0,
        "s_mixed": 1.0 if task.mode == "aggregated" else 0.0,
        "kappa": task.kappa,
        "x_eager": 0.0 if captures(task.engine) else 1.0,
        "x_cohort": 1.0 if task.even else 0.0,
        "x_own": 1.0 if task.arrivals is None else 0.0,
        "v_in": task.input_spread,
        "v_out": task.output_spread,
        "g": task.tokens_per_step,
        "m_pos": task.positions_per_step,
        **engine_values(task.profile.values),
        "one_seq": 1.0,
        "one_token": 1.0,
        "p_chip": task.price,
        "p_power": task.electricity,
        "p_rent": task.price - task.electricity,
        "p_joule": task.electricity / (task.power or 1.0),
        "m_grid": 1.0 if task.carbon is None else task.carbon,
        **({} if task.power is None else {"P_chip": task.power}),
        **({} if task.draw is None else _drawn(task, task.draw)),
        "c_fwd": 1.0 if task.lecture else 2.0,
    }


def _drawn(task: Task, draw: ChipPower) -> dict[str, float]:
    """Values of the chip power symbols."""
    return {
        "P_idle": draw.idle,
        "P_peak": draw.peak,
        "P_most": draw.rated,
        "j_byte": draw.byte,
        "n_tile": draw.tile,
        "q_soft": draw.soft,
        "x_site": task.site,
        "one_chip": 1.0,
    }


def engine_values(coefficients: Mapping[str, V]) -> dict[str, V]:
    """Values of the symbols of a profile, by symbol name."""
    return {"t_hop_sw" if name == "t_hop" else name: one for name, one in coefficients.items()}


def layout_values(
    task: Task, layouts: Layouts, hops: np.ndarray, *, bound: bool = False
) -> dict[str, np.ndarray]:
    """Values of the symbols that a layout fixes, each of shape (n_layouts,).

    `hops` are the sizes of groups whose slowest pair stands for a hop from stage to stage. The
    `bound` sends the least that any engine could. Raises TopologyError if a group leaves its domain
    on a machine whose scale-out rate is not known.
    """
    sizes, ideal = task.sizes, task.lecture or task.ideal
    sparse = any(cache.kind == "index" for cache in sizes.caches)
    tp, dp, pp = layouts.tp, layouts.dp_attention, layouts.pp
    ep, xtp = layouts.ep, layouts.tp_expert
    rates = rate_table(task.network, np.unique(np.concatenate([tp, hops])).tolist())
    hop = np.searchsorted(rates.n, hops)
    feed_forward = sizes.n_dense_ffn_layers + sizes.n_moe_layers
    # Blocks of hybrid models are either a mixer or a feed-forward part, others hold both.
    both = feed_forward == sizes.n_layers
    mixers = sizes.n_layers if both else sizes.n_layers - feed_forward
    # Parts side by side are added up before they are reduced (PaLM report, section 2; TensorRT-LLM
    # and vLLM on Falcon).
    feed_forward -= sizes.n_parallel_layers
    # With DP attention, a dense model's feed-forward parts exchange all tokens, not all-reduce.
    with_ranks = mixers + (sizes.n_dense_ffn_layers if sizes.n_experts else 0)
    counts = {
        "tp": tp, "dp": dp, "pp": pp, "ep": ep, "xtp": xtp, "n_half": layouts.halves,
        "n_rep": layouts.replicas, "n_chips": layouts.chips, "n_hop": pp - 1,
        "n_ar": np.where(tp > 1, np.where(dp > 1, with_ranks, mixers + feed_forward), 0),
        "n_a2a": np.where(dp > 1, sizes.n_moe_layers or sizes.n_dense_ffn_layers, 0),
        # Expert ranks of one batch compute only their experts; an all-reduce adds the results.
        "n_ep": np.where((ep > 1) & (dp == 1), sizes.n_moe_layers, 0),
    }  # fmt: skip
    even, whole, heads = expert_imbalance(task, layouts), np.ones(len(layouts)), tp // layouts.dcp
    cut = (tp, pp, ep * xtp / even["u_ep"])
    return {
        **{name: count.astype(float) for name, count in counts.items()},
        "f_stage": whole if ideal else np.ceil(sizes.n_layers / pp) * pp / sizes.n_layers,
        "f_held": whole if ideal else fullest_weights(sizes, *cut),
        "f_read": whole if ideal else fullest_weights(sizes, *cut, read=True),
        "f_heads": 1.0 / heads if ideal else np.ceil(sizes.n_kv_heads / heads) / sizes.n_kv_heads,
        **even,
        "c_imb": imbalance(task, ep),
        "c_rank": np.where(task.pooled and task.mode == "decode" and not bound, 1.0, 0.0)
        * np.sqrt(2 * np.log(dp)),
        "r_idx": tp.astype(float) if sparse and not (ideal or bound) else whole,
        "q_ar": 2.0 * (tp - 1) / tp,
        "r_ar": rates.all_gather[np.searchsorted(rates.n, tp)],
        "r_hop": rates.send[hop],
        "t_hop_net": rates.step_latency[hop],
        **contexts(task, layouts),
        **draft_collectives(task, layouts),
        **_collectives(task, layouts, bound=bound),
    }


def _collectives(task: Task, layouts: Layouts, *, bound: bool) -> dict[str, np.ndarray]:
    """Cost terms of all-reduces and of exchanges with experts, in decode and prefill."""
    values: dict[str, np.ndarray] = {}
    if task.lecture:
        for term in ("ar", "ar_pf", "x", "x_pf"):
            values |= _law(term, _nothing_sent(layouts))
        return values | dict.fromkeys(("k_copies", "k_copies_pf"), np.zeros(len(layouts)))
    sent = _dispatch_bytes(task.sizes)
    there = sent / (sent + COMBINE_BYTES)
    sparse = task.sizes.n_experts > 0
    # Chips that shard an expert, or with DP attention a dense part; each needs the tokens.
    ways = layouts.tp_expert if sparse else np.where(layouts.dp_attention > 1, layouts.whole, 1)
    for phase, within in (("", DECODE), ("_pf", PREFILL)):
        reduced = reductions(task.network, task.chip.name, layouts.tp, within)
        exchanged = exchanges(task.network, task.chip.name, layouts.whole, within, there)
        # Without an exchange, a copy keeps the square root of its bytes above zero.
        sends = copies(task.sizes, layouts.ep) * ways if sparse else ways.astype(float)
        if phase and sparse:
            # One copy for each domain, which passes it on inside.
            nodes = copies_to_domains(task.sizes, exchanged.domains)
            sends = np.where(exchanged.domains > 1, nodes * ways, sends)
        chosen = float(max(task.sizes.n_experts_active, 1))  # parts on one chip share a copy
        every_expert = np.minimum(chosen * ways, np.maximum(chosen, layouts.whole))
        values |= _law(f"ar{phase}", reduced) | _law(f"x{phase}", exchanged)
        sends = np.where(exchanged.per_expert, every_expert, sends)
        # Of engines only all-gather and reduce-scatter take uneven shares: tokens go everywhere.
        gathered = sparse and not bound and task.engines is not None
        uneven = gathered & ((task.sizes.n_experts + task.redundant) % layouts.ep > 0)
        values[f"k_copies{phase}"] = np.where(uneven, np.maximum(sends, layouts.whole - 1.0), sends)
    return values


def peaks(task: Task, *, bound: bool) -> dict[str, float]:
    """Arithmetic peak per operator class [flop/s], by symbol name.

    The estimate multiplies at the wider of weight and activation dtype; the bound lets every class
    run at the fastest rate that its narrowest operand has on this chip.
    """
    dtype = task.sizes.weight_dtype
    classes = {
        "F_attn": dtype["attention"],
        "F_ffn": dtype["shared"] if task.sizes.n_shared_experts else dtype["dense_ffn"],
        "F_routed": dtype["routed"],
        "F_head": dtype["head"],
        "F_draft": task.drafter.dtype if task.drafter else dtype["attention"],
    }
    rates = {name: task.peak(weights, bound=bound) for name, weights in classes.items()}
    return rates | {"F_sdpa": task.attention_peak(bound=bound)}


def _model(task: Task) -> dict[str, float]:
    sizes, context, prompt = task.sizes, task.context, task.input_tokens
    active, weights = sizes.active, sizes.weight_bytes
    streamed = sum(sizes.streamed_bytes.values()) - sizes.streamed_bytes["routed"]
    resident = sum(weights.values()) - weights["routed"]
    plain = [c for c in sizes.caches if c.limit is None]
    bounded = [(c, *_seen(context, prompt, c.limit)) for c in sizes.caches if c.limit is not None]
    growing = [c for c in sizes.caches if c.grows]
    index = [c for c in sizes.caches if c.kind == "index"]
    matrices = 3 * sizes.n_moe_layers * sizes.n_experts_active * sizes.expert_width
    return {
        "N_attn": float(active["attention"] + active["router"] + active["other"]),
        "N_ffn": float(active["dense_ffn"] + active["shared"]),
        "N_exp": float(active["routed"]),
        "N_head": float(active["head"]),
        "S_fixed": streamed,
        "S_routed": sizes.streamed_bytes["routed"],
        "M_fixed": resident,
        "M_routed": weights["routed"],
        "b_kv": sum(c.bytes_per_token for c in plain),
        "R_bnd": sum(c.bytes_per_token * seen for c, seen, _ in bounded),
        "b_store": sum(c.bytes_per_token for c in growing),
        "x_store": uncut_share(growing),
        "x_kv": uncut_share(plain),
        "x_bnd": uncut_share(c for c, _, _ in bounded),
        "R_bnd_mem": sum(c.bytes_per_token * seen for c, seen, _ in bounded if not c.grows),
        "R_state": sizes.state_bytes_per_sequence,
        "a_kv": sum(c.flop_per_cached_token for c in plain if c not in index),
        "A_bnd": sum(c.flop_per_cached_token * seen for c, seen, _ in bounded),
        "A_state": sizes.state_flop_per_token,
        "a_pf": sum(c.flop_per_pair_prefill for c in plain if c not in index),
        "A_bnd_pf": sizes.state_flop_per_token
        + sum(c.flop_per_pair_prefill * read for c, _, read in bounded),
        # Without experts the coverage multiplies nothing; any k < E keeps it finite.
        "n_experts": float(sizes.n_experts or 2),
        "k_experts": float(sizes.n_experts_active or 1),
        "h_act": float(sizes.hidden),
        "h_exp": float(sizes.expert_width),
        "h_mid": float(sizes.active["routed"]) / matrices if matrices else 0.0,
        "vocab": float(sizes.vocab),
        "n_blocks": float(sizes.n_layers),
        "n_idx": float(sum(c.layers for c in index)),
        "x_idx": INDEXER_LAUNCHES,
        "a_idx": sum(c.flop_per_cached_token for c in index),
        "n_moe": float(sizes.n_moe_layers),
        "n_ctx": float(max(sizes.n_attention_layers, 1)),
        "h_part": sum(c.asked_elements for c in sizes.caches) / max(sizes.n_attention_layers, 1),
        "b_act": ACTIVATION_BYTES,
        "b_logit": LOGIT_BYTES,
        "b_comb": COMBINE_BYTES,
        "b_disp": _dispatch_bytes(sizes),
    }


def _lecture_model(task: Task) -> dict[str, float]:
    absent = ("R_bnd", "A_bnd", "A_state", "A_bnd_pf", "h_part", "a_kv", "a_pf", "h_act", "h_exp",
              "h_mid", "vocab")  # fmt: skip
    return {**_model(task), **dict.fromkeys(absent, 0.0), "n_experts": 1.0, "k_experts": 1.0}


def _seen(context: float, prompt: float, limit: float) -> tuple[float, float]:
    seen = get_kernel("seen_keys")(L_ctx=context, L_in=prompt, L_win=float(limit))
    return seen["L_seen"], seen["L_seen_pf"]  # type: ignore[return-value]


def _dispatch_bytes(sizes: ModelSizes) -> float:
    narrow = sizes.weight_dtype["routed"] in ("fp8", "fp4", "nvfp4", "mxfp4")
    return 1.0 + FP8_SCALE_BYTES if narrow else ACTIVATION_BYTES
