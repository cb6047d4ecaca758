"""The equations that a step of serving is computed with, as tables: SymPy is loaded with them.

Each function gives the equations and the outputs of one kernel, by the name under which `kernels`
keeps what they are lowered to; some are walked with plain floats. `NAMED_TABLES` are those
that ask for nothing.
"""

from collections.abc import Mapping
from typing import TypeAlias

import sympy as sp

from formulas.algebra.notation import *
from formulas.network.collectives import hop_latency
from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.expressions import put
from formulas.roofline.experts import expert_coverage
from formulas.serving import outputs, power, queues, request_lengths
from formulas.serving.bounds import BOUNDS, least_weights_read, math_bound, prefill_math_bound
from formulas.serving.closed_loop import (
    CLOSED_LOOP,
    LOOP_TAIL,
    LOOP_WORK,
    PREFILL_LOOP,
    others_of_rank,
)
from formulas.serving.decode import DECODE, cache_read
from formulas.serving.older_kernels import STATIC_PROMPTS, cache_slowness
from formulas.serving.passes import PASSES
from formulas.serving.pools import (
    POOLS_RATE,
    long_run_input_price,
    long_run_output_price,
    short_run_input_price,
    short_run_output_price,
    two_pools,
)
from formulas.serving.prefill import PREFILL, PREFILL_SHARED
from formulas.serving.speculation import break_even_batch
from formulas.serving.throughput import AGGREGATED_BOUND, AGGREGATED_EQUATIONS, MEMORY
from planner.problems.serving.step.kernels import (
    BATCH_TIMES,
    BILLING,
    FOLLOWS,
    LOAD_GIVEN,
    QUEUED_TIMES,
    STEP_PARTS,
    WAITING_OUTPUTS,
    StepModel,
)
from planner.problems.serving.step.occupancy import TAILS, excess_symbols

Definitions: TypeAlias = tuple[Equation, ...]
Outputs: TypeAlias = Mapping[str, sp.Expr]
ESTIMATE: Mapping[str, Definitions] = {  # by the phases that a pool runs
    mode: tuple(dict.fromkeys((*DECODE, *PREFILL, *shared, *MEMORY, *AGGREGATED_EQUATIONS)))
    for mode, shared in PASSES.items()
}
BOUND = tuple(dict.fromkeys((*BOUNDS, *MEMORY, *AGGREGATED_BOUND)))


# The outputs by the words of the search, and the symbols that give them.
_TIMES: Outputs = {
    "ttft": T_first, "first": T_ttft, "tpot": T_tpot, "slot": T_slot, "busy": x_pf * T_pf_busy,
    "latency": T_e2e, "need": M_need, "memory.weights": M_weights, "memory.kv": M_kv,
    "memory.activations": M_act, "memory.reserved": M_reserve, "sequences_of_step": b_mem,
    "tokens_of_step": n_step, "load": r_load, "fill": r_fill,
    "arrivals": x_load,
    "requests": X_seq, "in_flight": n_inside, "sequences": n_seqs, "usd_per_request": C_seq,
    "usd_per_s": C_bill, "power_usd_per_s": C_power,
}  # fmt: skip
_DECODED: Outputs = {
    "usd_per_output_token": C_out, "tokens_per_s": X_out, "tokens_per_s_per_chip": X_chip,
    "tokens_per_s_per_user": X_user,
}  # fmt: skip
_READ: Outputs = {"usd_per_input_token": C_in, "input_tokens_per_s": X_in}
_ENERGY: Outputs = {
    "joule_per_request": E_seq, "joule_per_token": E_tok, "grams_per_request": m_seq,
    "grams_per_token": m_tok,
}  # fmt: skip
_DRAWN: Outputs = {"watts": P_chip}
_PAID: Outputs = {"chip_price": p_chip, "chip_power_price": p_power}
_SITE: Outputs = {"site_watts": P_chip * n_chips}
_ESTIMATED: Outputs = {
    "mixed": phi_mixed, "step": T_dec,
    **{f"part.{part}": sp.Add(*map(SYMBOLS.__getitem__, names)) for part,
                              names in STEP_PARTS.items()},
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
# Equations of the prefill of a single prompt, without its time to first token and busy time.
PROMPT = (hop_latency, *(e for e in PREFILL if e.symbol.name not in ("T_ttft", "T_pf_busy")))


# The time to read a static batch is made of its prompts' times.
_STATIC = {"T_pf_beside", "T_pf_all", "T_batch", "L_new", "x_hid"}
_uniform = Equation.of(coverage, put(expert_coverage.rhs, {B: b_slice / n_half}))
# Kernels that depend on no option, by name: their equations and their output symbols.
NAMED_TABLES: Mapping[str, tuple[Definitions, tuple[str, ...]]] = {
    # Keys seen by a layer with a window, from the lengths of requests.
    "seen_keys": (request_lengths.REQUESTS[2:], ("L_seen", "L_seen_pf")),
    # Share of the experts read by a microbatch under uniform routing.
    "expert_share": ((_uniform, *(e for e in DECODE if e.symbol != coverage)), ("coverage",)),
    # Bytes that a step must move, with a real number of sequences on each rank.
    "traffic": ((least_weights_read, cache_read), ("V_w_bound", "V_kv_dec")),
    # Bytes read and arithmetic time of a step and a prompt: inputs of the counted power.
    "counted_work": ((*DECODE, *PREFILL_SHARED, math_bound, prefill_math_bound, power.step_work),
                     ("V_w", "V_kv_dec", "T_tiled", "T_pf_math_bound")),
    # Working power of a chip [W]; here all slots are in use.
    "drawn_power": ((power.working_power,), ("P_work",)),
    # Break-even batch of speculative decoding.
    "break_even": ((break_even_batch.equation(),), ("B_even",)),
    # Slow-down of a cache that few multiprocessors read.
    "lone_cache": ((cache_slowness,), ("x_lone",)),
    # The time to read all prompts of a static batch, from its parts.
    "static_batch": (tuple(e for e in (*PREFILL, *STATIC_PROMPTS) if e.symbol.name in _STATIC),
                     ("T_batch",)),
    # Utilisation of replicas by prefill, and the components of the wait for it.
    "prefill_queue": (
        (*PREFILL_SHARED, queues.prompt_occupancy, queues.square_share, queues.occupancy_spread,
         queues.reader_utilisation, queues.reading_share, queues.reading_step,
         queues.heavy_line, queues.joining_room, queues.shared_step),
        ("rho_pf", "r_pf", "S_occ", "w_join", "L_new", "v_occ", "x_heavy", "r_both"),
    ),
    # The mean wait of a prompt, in line and for room in a step, and a quantile of it.
    "mean_wait": ((queues.line_time, queues.joining_time, queues.waiting_time),
                  ("T_line", "T_join", "T_wait")),
    "wait_quantile": ((queues.waiting_quantile,), ("T_tail",)),
    # Quantile of the time to first token, from the wait quantile or from the queue's components.
    "first_token_tails": ((outputs.first_token_quantile,), ("T_first",)),
    "recomputed_tail": ((queues.waiting_quantile, outputs.first_token_quantile), ("T_first",)),
    "reading": ((queues.reading_share,), ("r_pf",)),
    # Requests in flight: how many decode, and the variance over mean of their caches.
    "flight": (queues.CAPACITY_EQUATIONS, ("n_dealt", "n_met", "x_need")),
    # Share of the input found in a prefix cache of limited capacity.
    "prefix_hits": ((queues.prefix_hits,), ("x_hit",)),
    # Requests per second of one replica at its most, and share of its slots that a load takes.
    "replica_most": ((outputs.replica_rate,), ("X_rep",)),
    "load_share": ((outputs.carried_load,), ("r_load",)),
    # A token more of either kind: pools sized anew, and the full pool of a fleet as it is.
    "long_run": ((long_run_input_price, long_run_output_price), ("C_in", "C_out")),
    "short_run": ((short_run_input_price, short_run_output_price), ("C_in", "C_out")),
}  # fmt: skip


def equation_table(table: str, *key: object) -> tuple[Definitions, Outputs]:
    """Equations and outputs of a table: one of `NAMED_TABLES`, or a function of this module."""
    if table in NAMED_TABLES:
        equations, names = NAMED_TABLES[table]
        return equations, symbols(*names)
    made: tuple[Definitions, Outputs] = globals()[table](*key)
    return made


def symbols(*names: str) -> Outputs:
    """Outputs that are symbols, by their own names."""
    return {name: SYMBOLS[name] for name in names}


def pool(mode: str, bound: bool, load: str, powered: str = "") -> Definitions:
    """All equations of a pool, from its layout to its price."""
    times = BOUND if bound else ESTIMATE[mode]
    slot: Definitions = outputs.ROOFLINE_SLOT if bound else ()
    if mode == "prefill":
        times, slot = tuple(e for e in times if e.symbol != T_slot), outputs.READING_SLOT
    if bound:
        rest = outputs.DECODING.get(mode, outputs.DECODING["aggregated"])
        slot = (*slot, *outputs.ROOFLINE, rest)
    work = work_equations(mode) if powered in FOLLOWS else ()
    return (*times, *slot, *work, *_busy(mode, load, powered))


def work_equations(mode: str) -> Definitions:
    """Equations of a request's reads, arithmetic and energy on a chip."""
    steps = () if mode == "prefill" else (math_bound,)
    return (*steps, prefill_math_bound, *power.WORK_EQUATIONS[mode])


def _busy(mode: str, load: str, powered: str) -> Definitions:
    drawn = power.DRAW_EQUATIONS[mode] if powered in FOLLOWS else ()
    paid = power.BILLED_POWER_EQUATIONS if powered == BILLING else ()
    return (*outputs.one_pool(mode, load), *drawn, *paid)


def pool_outputs(mode: str, bound: bool, powered: str) -> dict[str, sp.Expr]:
    """Every output by its word: times [s], memory [byte], rates [1/s], money [USD], energy."""
    return {
        **_TIMES,
        **(_BOUNDED if bound else _ESTIMATED),
        **(_DECODED if mode != "prefill" else {}),
        **(_READ if mode != "decode" else {}),
        **({"together": sp.Integer(0) if bound else x_room} if mode == "prefill" else {}),
        **({**_ENERGY, **_DRAWN, **_SITE} if powered else {}),
        **(_PAID if powered == BILLING else {}),
        "usd_per_token": outputs.PRICE[mode].symbol,
    }


def all_outputs(mode: str, bound: bool, load: str, powered: str) -> tuple[Definitions, Outputs]:
    """All outputs; the wait for a first token (`T_wait`) is given."""
    return pool(mode, bound, load, powered), pool_outputs(mode, bound, powered)


def every_symbol(mode: str, bound: bool, load: str, powered: str) -> tuple[Definitions, Outputs]:
    """Every symbol that an equation gives."""
    equations = pool(mode, bound, load, powered)
    return equations, symbols(*dict.fromkeys(e.symbol.name for e in equations))


def page_outputs(
    mode: str, bound: bool, load: str, powered: str, crowds: bool = False, looped: bool = False
) -> tuple[Definitions, Outputs]:
    """All outputs, and every symbol that an equation defines, by its own name.

    Under a load with the queue before prompts and its tails, in a closed loop (`looped`) with its
    own; where caches may lack room (`crowds`) with how many decode at a time.
    """
    equations, every = pool(mode, bound, load, powered), pool_outputs(mode, bound, powered)
    if load != "none":
        equations = (*equations, *(queues.QUEUE * (mode != "decode")))
        every |= {"readers": sp.Integer(0)} if mode == "decode" else _TAILED
    if looped:
        equations = (others_of_rank, *_in_a_loop(equations, mode), *LOOP_WORK)
        every |= {name: _loop_tail(share) for name, share in TAILS.items()}
    if crowds:
        dealt = queues.decoding_sequences
        met = x_load * (1 - x_free) if load == "none" else x_load
        equations = (*equations, *(x for x in queues.CAPACITY_EQUATIONS if x is not dealt),
                     Equation(dealt.name, dealt.symbol, put(dealt.rhs, {x_load: met}),
                              dealt.assumes, dealt.source))  # fmt: skip
    return equations, {**every, **symbols(*dict.fromkeys(e.symbol.name for e in equations))}


def _in_a_loop(equations: Definitions, mode: str) -> Definitions:
    rest = tuple(e for e in equations if e.symbol != T_first)
    loop = PREFILL_LOOP if mode == "prefill" else CLOSED_LOOP
    return (*rest, *loop, outputs.FIRST_OF_A_LOOP)


def _loop_tail(share: float) -> sp.Expr:
    values: dict[sp.Symbol, sp.Expr | float] = {
        SYMBOLS[name]: value for name, value in excess_symbols(share).items()
    }
    for equation in (e for e in LOOP_TAIL if e not in LOOP_WORK):
        values[equation.symbol] = put(equation.rhs, values)
    return values[T_late]


def _tail(share: sp.Rational) -> sp.Expr:
    least = maximum(rho_pf, share)  # fewer wait in line where readers are idler than it
    return put(T_ttft + queues.waiting_quantile.rhs, {x_tail: share, rho_pf: least})


_TAILED: dict[str, sp.Expr] = {
    "readers": rho_pf, **{name: _tail(sp.Rational(str(share))) for name, share in TAILS.items()}
}  # fmt: skip


def work_times(mode: str, bound: bool, load: str, powered: str) -> tuple[Definitions, Outputs]:
    """Outputs independent of a replica's utilisation: the times of its work [s], its memory."""
    busy = {e.symbol for e in _busy(mode, load, powered)}
    every = pool_outputs(mode, bound, powered)
    plain = {word: x for word, x in every.items() if not x.free_symbols & busy}
    work = StepModel(mode, bound, load, powered).work
    return pool(mode, bound, load, powered), {**plain, **symbols(*work)}


def occupancy_outputs(
    mode: str, bound: bool, load: str, powered: str
) -> tuple[Definitions, Outputs]:
    """All other outputs, from those times."""
    equations = _busy(mode, load, powered)
    busy = {e.symbol for e in equations}
    every = pool_outputs(mode, bound, powered)
    return equations, {word: x for word, x in every.items() if x.free_symbols & busy}


def waiting(mode: str) -> tuple[Definitions, Outputs]:
    """Outputs that a wait before the prompt changes: TTFT, latency, requests in flight."""
    every = {"ttft": T_first, "latency": T_e2e, "in_flight": n_inside}
    return (outputs.first_token, outputs.LATENCY[mode], outputs.requests_in_plan), every


def prompt(*names: str) -> tuple[Definitions, Outputs]:
    """Parts of reading prompts in passes, and of a static batch of them."""
    return (*PROMPT, *STATIC_PROMPTS), symbols(*names)


def passes(mode: str) -> tuple[Definitions, Outputs]:
    """Passes of one prompt, those that it shares counted by its share."""
    return tuple(e for e in PASSES[mode] if e.symbol in (n_new, n_shared)), symbols("n_shared")


def closed_loop(mode: str) -> tuple[Definitions, Outputs]:
    """The time to first token in a closed loop."""
    return (*_read_ahead(mode), *(PREFILL_LOOP if mode == "prefill" else CLOSED_LOOP)), symbols(
        "T_loop"
    )


def loop_tails() -> tuple[Definitions, Outputs]:
    """The time to first token that a share of a closed loop's requests exceed, and later ones."""
    return (*_read_ahead("aggregated"), *CLOSED_LOOP, *LOOP_TAIL), symbols("T_late", "T_settled")


def _read_ahead(mode: str) -> Definitions:
    covered = tuple(e for e in DECODE if e.symbol in (coverage, b_slice, b_stage))
    return (*covered, *PROMPT, *PASSES[mode])


def pools_outputs(*, powered: bool) -> dict[str, sp.Expr]:
    """Every output of two pools by its word, the price first; energy where powers are bound."""
    return {**_POOLS, **({**_ENERGY, **_DRAWN} if powered else {})}


def whole_pools(load: str, powered: bool) -> tuple[Definitions, Outputs]:
    """All outputs of two pools under a load (`none` or `given`)."""
    return two_pools(load), pools_outputs(powered=powered)


def pools(load: str, *words: str) -> tuple[Definitions, Outputs]:
    """Some outputs of two pools under a load (`none` or `given`)."""
    every = pools_outputs(powered=True)
    return two_pools(load), {word: every[word] for word in words}


def batch_times(
    mode: str, bound: bool, load: str, powered: str, queued: bool
) -> tuple[Definitions, Outputs]:
    """Outputs that set the batch, and the times behind every output; `ttft` excludes waits."""
    drawn = (*(_DRAWN if powered in FOLLOWS else ()), *(_PAID if powered == BILLING else ()))
    words = (*BATCH_TIMES, *(QUEUED_TIMES if queued else ()), *drawn)
    every = pool_outputs(mode, bound, powered)
    return pool(mode, bound, load, powered), {
        **{word: every[word] for word in words},
        "ttft": T_ttft,
    }


def pool_from_times(mode: str, load: str, *words: str) -> tuple[Definitions, Outputs]:
    """The outputs of a pool from its times, the wait for a first token in that."""
    rest = outputs.DECODING.get(mode, outputs.DECODING["aggregated"])
    equations = tuple(e for e in outputs.one_pool(mode, load) if e.symbol != T_first)
    every = pool_outputs(mode, False, LOAD_GIVEN)
    return (*equations, rest), {word: every[word] for word in words if word in every}


def recheck_outputs(
    mode: str, bound: bool, load: str, powered: str, wait: str
) -> tuple[Definitions, Outputs]:
    """Every output again, the price first; `wait` is `none`, or that of a `loop` or a `queue`."""
    every = pool_outputs(mode, bound, powered)
    every = {"usd_per_token": every["usd_per_token"], **every}
    equations = pool(mode, bound, load, powered)
    if wait == "loop":
        return _in_a_loop(equations, mode), every
    if wait == "queue":
        late = symbols(*WAITING_OUTPUTS)
        return (*equations, *queues.QUEUE), {**every, **late}
    return equations, every


def slower_rate() -> tuple[Definitions, Outputs]:
    """The rate of the slower of two pools."""
    return (POOLS_RATE["none"],), {"requests": X_pools}
