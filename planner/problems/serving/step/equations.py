"""The equations that a step of serving is computed with, as tables: SymPy is loaded with them.

Each function gives the equations and the outputs of one kernel, by the name under which `kernels`
keeps what they are lowered to, and `recompute` walks some of them with plain floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import sympy as sp

from formulas.algebra.notation import *
from formulas.network.collectives import hop_latency
from formulas.nomenclature.symbols import SYMBOLS
from formulas.serving.bounds import BOUNDS, least_weights_read
from formulas.serving.closed_loop import CLOSED_LOOP, PREFILL_LOOP
from formulas.serving.decode import DECODE, cache_read
from formulas.serving.older_kernels import STATIC_PROMPTS, cache_slowness
from formulas.serving.outputs import (
    DECODING,
    FIRST_OF_A_LOOP,
    LATENCY,
    PRICE,
    READING_SLOT,
    ROOFLINE,
    ROOFLINE_SLOT,
    carried_load,
    first_token,
    first_token_quantile,
    one_pool,
    replica_rate,
    requests_in_plan,
)
from formulas.serving.pools import POOLS_RATE, two_pools
from formulas.serving.prefill import PREFILL, new_tokens
from formulas.serving.queues import (
    QUEUE,
    flight_spread,
    joining_room,
    joining_time,
    line_time,
    prompt_occupancy,
    reader_utilisation,
    reading_share,
    waiting_quantile,
    waiting_time,
)
from formulas.serving.throughput import AGGREGATED, AGGREGATED_BOUND, MEMORY
from planner.problems.serving.step.kernels import BATCH_TIMES, PARTS, QUEUED_TIMES, WORK

Definitions: TypeAlias = tuple[Equation, ...]
Outputs: TypeAlias = Mapping[str, sp.Expr]
ESTIMATE = tuple(dict.fromkeys((*DECODE, *PREFILL, *MEMORY, *AGGREGATED)))
BOUND = tuple(dict.fromkeys((*BOUNDS, *MEMORY, *AGGREGATED_BOUND)))


# The outputs by the words of the search, and the symbols that give them.
_TIMES: Outputs = {
    "ttft": T_first, "first": T_ttft, "tpot": T_tpot, "slot": T_slot, "busy": x_pf * T_pf_busy,
    "latency": T_e2e, "need": M_need, "memory.weights": M_weights, "memory.kv": M_kv,
    "memory.activations": M_act, "load": r_load, "fill": r_fill, "arrivals": x_load,
    "requests": X_seq, "in_flight": n_inside, "sequences": n_seqs, "usd_per_request": C_seq,
    "usd_per_s": C_bill, "power_usd_per_s": C_power,
}  # fmt: skip
_DECODED: Outputs = {
    "usd_per_output_token": C_out, "tokens_per_s": X_out, "tokens_per_s_per_chip": X_chip,
    "tokens_per_s_per_user": X_user,
}  # fmt: skip
_READ: Outputs = {"usd_per_input_token": C_in, "input_tokens_per_s": X_in}
_ENERGY: Outputs = {"joule_per_request": E_seq, "joule_per_token": E_tok}
_ESTIMATED: Outputs = {
    "mixed": phi_mixed, "step": T_dec,
    **{f"part.{part}": sp.Add(*map(SYMBOLS.__getitem__, names)) for part, names in PARTS.items()},
}  # fmt: skip
_BOUNDED: Outputs = {
    "mixed": sp.Integer(0), "roof.memory": T_mem_bound, "roof.compute": T_math_bound,
    "roof.network": T_net_bound,
}  # fmt: skip


_POOLS: Outputs = {
    "usd_per_token": C_pools, "usd_per_input_token": C_in, "usd_per_output_token": C_out,
    "usd_per_request": C_seq, "usd_per_s": C_bill, "power_usd_per_s": C_power,
    "requests": X_pools, "ttft": T_first, "latency": T_e2e, "in_flight": n_inside,
    "tokens_per_s": X_out, "input_tokens_per_s": X_in, "tokens_per_s_per_chip": X_chip,
    "tokens_per_s_per_user": X_user,
}  # fmt: skip
# What reading one prompt is made of; when its first token comes is another matter.
PROMPT = (hop_latency, *(e for e in PREFILL if e.symbol.name != "T_ttft"))


def symbols(*names: str) -> Outputs:
    """Outputs that are symbols, by their own names."""
    return {name: SYMBOLS[name] for name in names}


def pool(mode: str, bound: bool, load: str) -> Definitions:
    """All equations of a pool, from its layout to its price."""
    times = BOUND if bound else ESTIMATE
    slot: Definitions = ROOFLINE_SLOT if bound else ()
    if mode == "prefill":
        times, slot = tuple(e for e in times if e.symbol != T_slot), READING_SLOT
    if bound:
        slot = (*slot, *ROOFLINE, DECODING.get(mode, DECODING["aggregated"]))
    return (*times, *slot, *one_pool(mode, load))


def pool_outputs(mode: str, bound: bool, powered: bool) -> dict[str, sp.Expr]:
    """Every output by its word: times [s], memory [byte], rates [1/s], money [USD], energy."""
    return {
        **_TIMES,
        **(_BOUNDED if bound else _ESTIMATED),
        **(_DECODED if mode != "prefill" else {}),
        **(_READ if mode != "decode" else {}),
        **(_ENERGY if powered else {}),
        "usd_per_token": PRICE[mode].symbol,
    }


def all_outputs(mode: str, bound: bool, load: str, powered: bool) -> tuple[Definitions, Outputs]:
    """All outputs; the wait for a first token (`T_wait`) is given."""
    return pool(mode, bound, load), pool_outputs(mode, bound, powered)


def every_symbol(mode: str, bound: bool, load: str, powered: bool) -> tuple[Definitions, Outputs]:
    """Every symbol that an equation gives."""
    equations = pool(mode, bound, load)
    return equations, symbols(*dict.fromkeys(e.symbol.name for e in equations))


def work_times(mode: str, bound: bool, load: str, powered: bool) -> tuple[Definitions, Outputs]:
    """What does not depend on how busy a replica is: the times of its work [s], its memory."""
    busy = {e.symbol for e in one_pool(mode, load)}
    outputs = pool_outputs(mode, bound, powered)
    plain = {word: x for word, x in outputs.items() if not x.free_symbols & busy}
    return pool(mode, bound, load), {**plain, **symbols(*WORK)}


def busyness(mode: str, bound: bool, load: str, powered: bool) -> tuple[Definitions, Outputs]:
    """All other outputs, from those times."""
    equations = one_pool(mode, load)
    busy = {e.symbol for e in equations}
    outputs = pool_outputs(mode, bound, powered)
    return equations, {word: x for word, x in outputs.items() if x.free_symbols & busy}


def waiting(mode: str) -> tuple[Definitions, Outputs]:
    """What a wait before the prompt changes."""
    outputs = {"ttft": T_first, "latency": T_e2e, "in_flight": n_inside}
    return (first_token, LATENCY[mode], requests_in_plan), outputs


def expert_share() -> tuple[Definitions, Outputs]:
    """The share of the experts that one microbatch reads under uniform routing."""
    return DECODE, symbols("coverage")


def first_token_tails() -> tuple[Definitions, Outputs]:
    """A quantile of the time to first token, from that of the wait."""
    return (first_token_quantile,), symbols("T_first")


def prefill_queue() -> tuple[Definitions, Outputs]:
    """How busy replicas are with prompts, and what a wait for them is made of."""
    equations = (new_tokens, prompt_occupancy, reader_utilisation, reading_share, joining_room)
    return equations, symbols("rho_pf", "r_pf", "S_occ", "w_join", "L_new")


def mean_wait() -> tuple[Definitions, Outputs]:
    """The mean wait of a prompt, in line and for room in a step."""
    return (line_time, joining_time, waiting_time), symbols("T_line", "T_join", "T_wait")


def wait_quantile() -> tuple[Definitions, Outputs]:
    """A quantile of the wait."""
    return (waiting_quantile,), symbols("T_tail")


def flight() -> tuple[Definitions, Outputs]:
    """Variance over mean of the requests in flight."""
    return (flight_spread,), symbols("x_var")


def traffic() -> tuple[Definitions, Outputs]:
    """Bytes that a step must move, with a real number of sequences on each rank."""
    return (least_weights_read, cache_read), symbols("V_w_bound", "V_kv_dec")


def lone_cache() -> tuple[Definitions, Outputs]:
    """How much slower a cache is read by few multiprocessors."""
    return (cache_slowness,), symbols("x_lone")


def prompt(*names: str) -> tuple[Definitions, Outputs]:
    """Parts of reading prompts in passes, and of a static batch of them."""
    return (*PROMPT, *STATIC_PROMPTS), symbols(*names)


def static_batch() -> tuple[Definitions, Outputs]:
    """The time to read all prompts of a static batch, from its parts."""
    names = {"T_pf_beside", "T_pf_all", "T_batch", "L_new"}
    equations = tuple(e for e in (*PREFILL, *STATIC_PROMPTS) if e.symbol.name in names)
    return equations, symbols("T_batch")


def closed_loop(mode: str) -> tuple[Definitions, Outputs]:
    """The time to first token in a closed loop."""
    return PREFILL_LOOP if mode == "prefill" else (*PROMPT, *CLOSED_LOOP), symbols("T_loop")


def pools_outputs(*, powered: bool) -> dict[str, sp.Expr]:
    """Every output of two pools by its word, the price first; energy where powers are bound."""
    return {**_POOLS, **(_ENERGY if powered else {})}


def pools(load: str, *words: str) -> tuple[Definitions, Outputs]:
    """Some outputs of two pools under a load (`none` or `given`)."""
    every = pools_outputs(powered=True)
    return two_pools(load), {word: every[word] for word in words}


def replica_most() -> tuple[Definitions, Outputs]:
    """Requests per second of one replica at its most."""
    return (replica_rate,), symbols("X_rep")


def load_share() -> tuple[Definitions, Outputs]:
    """Share of the slots of a pool that a load keeps in use."""
    return (carried_load,), symbols("r_load")


def batch_times(
    mode: str, bound: bool, load: str, powered: bool, queued: bool
) -> tuple[Definitions, Outputs]:
    """What a batch follows, and the times of which every output is made."""
    words = (*BATCH_TIMES, *(QUEUED_TIMES if queued else ()))
    outputs = pool_outputs(mode, bound, powered)
    return pool(mode, bound, load), {word: outputs[word] for word in words}


def pool_from_times(mode: str, load: str, *words: str) -> tuple[Definitions, Outputs]:
    """The outputs of a pool from its times, the wait for a first token in that."""
    rest = DECODING.get(mode, DECODING["aggregated"])
    equations = tuple(e for e in one_pool(mode, load) if e.symbol != T_first)
    every = pool_outputs(mode, False, True)
    return (*equations, rest), {word: every[word] for word in words if word in every}


def slower_rate() -> tuple[Definitions, Outputs]:
    """The rate of the slower of two pools."""
    return (POOLS_RATE["none"],), {"requests": X_pools}


def recomputed(
    mode: str, bound: bool, load: str, powered: bool, wait: str
) -> tuple[Definitions, Outputs]:
    """Every output again, the price first; `wait` is `none`, or that of a `loop` or a `queue`."""
    outputs = pool_outputs(mode, bound, powered)
    outputs = {"usd_per_token": outputs["usd_per_token"], **outputs}
    equations = pool(mode, bound, load)
    if wait == "loop":
        rest = tuple(e for e in equations if e.symbol.name != "T_first")
        loop = PREFILL_LOOP if mode == "prefill" else CLOSED_LOOP
        return (*rest, *loop, FIRST_OF_A_LOOP), outputs
    if wait == "queue":
        late = symbols("rho_pf", "T_wait", "T_line", "T_join", "S_occ")
        return (*equations, *QUEUE), {**outputs, **late}
    return equations, outputs


def recomputed_tail() -> tuple[Definitions, Outputs]:
    """A quantile of the time to first token, from what the line is made of."""
    return (waiting_quantile, first_token_quantile), symbols("T_first")
