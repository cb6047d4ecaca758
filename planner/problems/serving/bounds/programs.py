"""The serving model as geometric programs: relaxed over layouts, or exact at one layout.

Both are declared from the very equations the search evaluates. `relaxable` lets ranks, stages and
batch be any positive numbers and puts an under-estimate where an equation is no posynomial, so its
optimum lies below every plan of a group of layouts. `continuous` fixes the layout, leaves the batch
real, and puts tangents at the plan's batch, so its multipliers are the plan's elasticities.
"""

import sympy as sp

from formulas.algebra.notation import *
from formulas.nomenclature.symbols import auxiliary
from formulas.numerics.expressions import put
from formulas.serving import outputs, power
from formulas.serving.bounds import BOUNDS, math_bound, prefill_math_bound
from formulas.serving.closed_loop import CLOSED_LOOP
from formulas.serving.decode import DECODE
from formulas.serving.passes import PASSES
from formulas.serving.prefill import PREFILL
from formulas.serving.throughput import AGGREGATED_BOUND, AGGREGATED_EQUATIONS, MEMORY
from planner.problems.serving.bounds.binding_limits import NAME_SEPARATOR, POWER_DRAWN, POWER_PAID
from planner.problems.serving.step.kernels import OF_A_STEP
from planner.programs.geometric import GeometricProgram, Program


def _parameter(name: str) -> sp.Symbol:
    return auxiliary(f"{name}{NAME_SEPARATOR}", positive=True)


# Coefficient and exponent of the monomials that substitute for coverages, for B - 1, for passes by
# the sequences of a rank, and for the share of the experts that decoding leaves to a pass.
CHORDS = {
    name: _parameter(name)
    for name in (
        *("c_cov", "s_cov", "c_seen", "s_seen", "c_others", "s_others"),
        *("c_pass", "s_pass", "c_left", "s_left"),
    )
}
# Interval of the batch, largest numbers of ranks, stages and chips, promised limits, and the share
# of memory traffic that on-chip memory cannot save; power as a monomial of the power requested.
LIMITS = {
    name: _parameter(name)
    for name in (
        *("lo", "hi", "least_dp", "most_dp", "least_pp", "most_pp", "most_chips"),
        *("ttft", "tpot", "latency", *OF_A_STEP, "unsaved", "steep", "batch", "paid", "factor"),
        *("drawn", "given_way", "not_given_way", "unused", "least_passes", "most_moved"),
    )
}
# Memory traffic of a step, a choice of its own: a power of it touches what on-chip memory leaves.
V_MOVED = _parameter("V_moved")
CEILINGS = {b_rank, b_stage, b_mem, b_own, b_slice, b_state}


def relaxed_layouts(
    bound: bool,
    objective: str,
    promises: frozenset[str],
    mode: str,
    *,
    given_batch: bool,
    halved: bool = False,
) -> Program:
    """The program of `binding_limits.relaxable`.

    Choices are the ranks dp, the stages pp and the sequences of a stage; tp and cp are given. A
    given batch is spread over as many replicas as the chips allow.
    """
    P = GeometricProgram("relaxed serving plan")
    lo, hi = LIMITS["lo"], LIMITS["hi"]
    P.choose(dp, within=(LIMITS["least_dp"], LIMITS["most_dp"]))
    P.choose(pp, within=(LIMITS["least_pp"], LIMITS["most_pp"]))
    P.choose(b_stage, within=(lo, hi))
    P.choose(b_rank, within=(1, hi))
    P.choose(b_mem, within=(1, hi * LIMITS["most_pp"]))
    for part in (b_own, b_slice, b_state):
        P.choose(part, within=(1, hi * LIMITS["most_pp"]))
    P.choose(B, within=(1, hi * LIMITS["most_pp"]))
    P.roof(b_rank, share=b_stage / dp + c_rank * sp.sqrt(b_stage / dp))
    others = CHORDS["c_others"] * b_stage ** CHORDS["s_others"]
    P.roof(b_mem, share=b_stage / dp, flight=pp * others / dp)
    for part, whole in ((b_own, b_rank), (b_slice, b_stage), (b_state, b_mem)):
        P.roof(part, share=whole / cp)
    chips = tp * dp * cp * pp
    P.subject("replica fits the chips", sp.Le(chips, LIMITS["most_chips"]))
    if given_batch:
        batch = LIMITS["batch"] * chips / LIMITS["paid"]
        P.subject("stages share the batch", sp.Ge(b_stage, B / pp))
        P.subject("replicas share the batch", sp.Ge(B, batch))
    else:
        P.subject("stages share the batch", sp.Le(B, pp * b_stage))
    P.define(sp.Eq(ep, tp * dp), sp.Eq(xtp, sp.Integer(1)))
    P.define(
        *_equations(bound, LIMITS["unsaved"] * (V_w_bound + V_kv_dec), mode, halved=halved),
        relax={B - x_own * one_seq: one_seq * pp * others},
    )
    if not bound:
        P.define(*_covered(b_slice), *_left(mode, b_slice))
        P.choose(n_shared, within=(LIMITS["least_passes"], n_chunks))
        P.roof(
            n_shared,
            room=L_new / c_chunk,
            shared=CHORDS["c_pass"] / (b_stage / (dp * one_seq)) ** CHORDS["s_pass"],
        )
    if objective == "latency":
        P.minimise(_of(outputs.LATENCY[mode], bound, mode))
    else:
        # One replica that is full: `factor` is what its chips, or its batch, count per second.
        alone = {p_chip: LIMITS["factor"], n_chips: B if given_batch else chips}
        whole = dict.fromkeys((n_rep, r_fill, one_seq), sp.Integer(1))
        P.minimise(_of(outputs.request_price, bound, mode).subs({**alone, **whole}))
    _promise(P, bound, promises, mode)
    return P.compile()


def layout(
    P: GeometricProgram,
    *,
    bound: bool,
    objective: str,
    promises: frozenset[str],
    mode: str,
    loop: bool = False,
    halved: bool = False,
) -> sp.Expr:
    """Declare one layout with a real batch in a problem, and return the objective.

    That is the price of a token [USD/token] where the objective is cost. What the model is made of
    are givens, unless the problem defines them.
    """
    P.choose(B, within=(LIMITS["lo"], LIMITS["hi"]))
    if bound:
        P.choose(V_MOVED, within=(1, LIMITS["most_moved"]))
        P.roof(V_MOVED, memory=V_w_bound + V_kv_dec)
    P.define(
        sp.Eq(b_rank, B / (pp * dp) + c_rank * sp.sqrt(B / (pp * dp))),
        sp.Eq(b_stage, B / pp),
        sp.Eq(b_mem, B / dp),
        sp.Eq(b_own, b_rank / cp),
        sp.Eq(b_slice, b_stage / cp),
        sp.Eq(b_state, b_mem / cp),
        *_equations(
            bound, LIMITS["unsaved"] * V_MOVED ** LIMITS["steep"], mode, halved=halved, loop=loop
        ),
        relax={B - x_own * one_seq: CHORDS["c_others"] * B ** CHORDS["s_others"]},
    )
    if not bound:
        P.define(
            *_covered(B),
            sp.Eq(n_shared, CHORDS["c_pass"] / (B / (dp * pp * one_seq)) ** CHORDS["s_pass"]),
            *_left(mode, B),
        )
    _promise(P, bound, promises, mode, loop)
    if objective == "throughput":
        return 1 / _of(outputs.request_rate, bound, mode)
    if objective == POWER_DRAWN:
        return _drawn(P, mode)
    if objective == POWER_PAID:
        rented = _of(outputs.PRICE[mode], bound, mode, loop).subs(p_chip, p_rent)
        return rented + p_joule * _drawn(P, mode)
    by_mode = {"latency": outputs.LATENCY, "energy": outputs.ENERGY, "cost": outputs.PRICE}
    return _of(by_mode[objective][mode], bound, mode, loop)


def _covered(sequences: sp.Symbol) -> tuple[sp.Eq, sp.Eq]:
    return (
        sp.Eq(coverage, CHORDS["c_cov"] * sequences ** CHORDS["s_cov"]),
        sp.Eq(cov_draft, CHORDS["c_seen"] * sequences ** CHORDS["s_seen"]),
    )


def _left(mode: str, sequences: sp.Symbol) -> list[sp.Eq]:
    left = CHORDS["c_left"] / sequences ** CHORDS["s_left"]
    return [sp.Eq(V_pass, S_routed * left * u_ep / (ep * xtp))] if mode == "aggregated" else []


def _drawn(P: GeometricProgram, mode: str) -> sp.Expr:
    """Energy of a token where power follows from the work and stays below the rated power."""
    steps = () if mode == "prefill" else (math_bound,)
    P.define(*steps, prefill_math_bound, *power.WORK_EQUATIONS[mode])
    reads = power.reading_power if mode == "prefill" else power.asked_power
    work = sp.expand((reads.rhs - P_idle) * T_slot)
    taken = (P_idle * T_slot + work) ** LIMITS["given_way"] * T_slot ** LIMITS["not_given_way"]
    drawn = LIMITS["drawn"] * taken + LIMITS["unused"] * P_idle * T_slot
    whole = x_site * drawn / one_chip * outputs.ENERGY[mode].rhs / (P_chip * T_slot)
    slot = outputs.READING_SLOT if mode == "prefill" else ()
    return whole.subs({e.symbol: e.rhs for e in slot})


def _equations(
    bound: bool, unsaved: sp.Expr, mode: str, *, halved: bool, loop: bool = False
) -> list[Equation | sp.Eq]:
    """The equations of the model, less those that a program replaces; bytes `unsaved` on chip.

    Only of passes cut in halves is something hidden; whole ones are spared the longer of two times.
    """
    whole = (
        (*BOUNDS, *MEMORY, *AGGREGATED_BOUND)
        if bound
        else (
            *DECODE,
            *PREFILL,
            *PASSES[mode],
            *MEMORY,
            *AGGREGATED_EQUATIONS,
            *(CLOSED_LOOP if loop else ()),
        )
    )
    replaced = CEILINGS | {n_chunks, n_new, n_shared, coverage, cov_draft, f_pace, T_mem_bound}
    replaced |= {T_exposed, f_pace_w} | ({V_pass} if mode == "aggregated" else set())
    equations: list[Equation | sp.Eq] = [
        e if halved or not e.rhs.has(x_hid) else sp.Eq(e.symbol, put(e.rhs, {x_hid: sp.S.Zero}))
        for e in dict.fromkeys(whole)
        if e.symbol not in replaced
    ]
    if bound:
        equations.append(sp.Eq(T_mem_bound, unsaved / W_chip))
    return equations


def _of(output: Equation, bound: bool, mode: str, loop: bool = False) -> sp.Expr:
    first = outputs.FIRST_OF_A_LOOP if loop and not bound else outputs.immediate_first_token
    names = [first, *(outputs.ROOFLINE if bound else ())]
    if mode == "prefill":
        names += outputs.READING_SLOT
    elif bound:
        names += [*outputs.ROOFLINE_SLOT, outputs.DECODING["decode"]]
    return output.substitute(*names).rhs


def _promise(
    P: GeometricProgram, bound: bool, promises: frozenset[str], mode: str, loop: bool = False
) -> None:
    P.subject("memory", sp.Le(M_need, M_cap), promise=True)
    quantities = {
        "ttft": T_ttft_bound if bound else T_loop if loop else T_ttft,
        "tpot": T_tpot_bound if bound else T_tpot,
        "latency": _of(outputs.LATENCY[mode], bound, mode, loop),
        "sequences_of_step": b_mem,
        "tokens_of_step": n_step,
    }
    for name in sorted(promises):
        P.subject(name, sp.Le(quantities[name], LIMITS[name]), promise=True)
    if mode == "aggregated" and not bound:
        P.subject("prefill keeps up", sp.Le(phi_mixed, 1))
