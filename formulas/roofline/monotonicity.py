"""How a step's time grows with the batch: never less, and never faster than the batch itself.

Two properties of a time T(B): it never falls, and T(B)/B never rises; together
T(B) <= T(lam*B) <= lam*T(B) for lam >= 1, or an elasticity between zero and one. Where they hold
the largest feasible batch is the cheapest per token; where they fail (tiles, switches between
algorithms, hit rates that depend on free memory) smaller batches must be tried.
"""

from formulas.algebra.notation import *

ASSUME_LAM_FOLD_GROWTH = "each part grows at most lam-fold when the batch grows lam-fold"


def _elasticity(time: Expr) -> Expr:
    return B * diff(time, B) / time


def _growth(built: str, combined: Expr, claim: Expr, why: str = "", *where: Equation) -> Derivation:
    """Derive that a combination of times grows at most lam-fold when the batch grows lam-fold."""
    return derive(
        f"most that a {built} can be at a larger batch",
        begin(T_grown, combined, why=f"the {built} at the larger batch"),
        bound(claim, "<=", why or f"the factor comes out of a {built}"),
        assumes=(
            ASSUME_LAM_FOLD_GROWTH,
            "no part falls: neither does what is built",
            when(T_one_up <= lam * T_one),
            when(T_two_up <= lam * T_two),
        ),
    )


def _at_most_one(slope: Derivation, why: str) -> Derivation:
    name = f"{slope.name}, at most one"
    return derive(name, begin(slope), bound(Integer(1), "<=", why), assumes=slope.assumes)


def _slope(name: str, time: Expr, claim: Expr, why: str, *assumes: str) -> Derivation:
    return derive(
        name,
        begin(e_T, _elasticity(time), why="slope of the time by the batch, both in logarithms"),
        rewrite(claim, why=why),
        assumes=assumes,
    )


growth_of_sum = _growth("sum", T_one_up + T_two_up, lam * (T_one + T_two))
growth_of_maximum = _growth("maximum", maximum(T_one_up, T_two_up), lam * maximum(T_one, T_two))
growth_of_minimum = _growth("minimum", minimum(T_one_up, T_two_up), lam * minimum(T_one, T_two))
growth_of_scaled = _growth(
    "scaled time", k_scale * T_one_up, lam * (k_scale * T_one), "the factors change places"
)

mixed_growth = derive(
    "elasticity of a sum of two times",
    begin(
        e_T,
        _elasticity(t_const * (B / one_seq) ** e_one + t_tile * (B / one_seq) ** e_two),
        why="slope of the sum by the batch, both in logarithms",
    ),
    rewrite(
        (e_one * T_one + e_two * T_two) / (T_one + T_two),
        why="a mean weighted by the times: between zero and one where both are",
        where=(
            Equation("first time", T_one, t_const * (B / one_seq) ** e_one, source=derived),
            Equation("second time", T_two, t_tile * (B / one_seq) ** e_two, source=derived),
        ),
    ),
    assumes=("each time is a power of the batch, as any smooth time is at a point",),
)

growth_of_affine = _slope(
    "elasticity of a fixed part and a part proportional to the batch",
    t_const + t_each * B,
    1 - t_const / (t_const + t_each * B),
    "a part is never more than the whole: weights and caches, and a prefill share at a fixed hit "
    "rate",
)
growth_of_coverage = _slope(
    "elasticity of reading the experts that a batch touches",
    t_cover * (1 - q_miss ** (B / one_seq)),
    log(q_miss ** (-B / one_seq)) / (q_miss ** (-B / one_seq) - 1),
    "log(x) <= x - 1 at x = q_miss**(-B) > 1",
    "every sequence misses an expert with the same probability, independently",
    when(q_miss < 1),
)
growth_of_collective = _slope(
    "elasticity of a collective with a square-root term",
    t_const + t_each * B + t_root * sqrt(B),
    (t_each * B + t_root * sqrt(B) / 2) / (t_const + t_each * B + t_root * sqrt(B)),
    "no addend above exceeds the one below it",
)
growth_of_imbalance = _slope(
    "elasticity of arithmetic under an imbalance that fades with the batch",
    t_each * B * (1 + c_imb / sqrt(B)),
    1 - c_imb / (2 * (sqrt(B) + c_imb)),
    "between one half and one",
)
growth_with_efficiency = _slope(
    "elasticity of arithmetic at an efficiency that grows with the batch",
    t_each * B / (B / one_seq) ** eta_B,
    1 - eta_B,
    "between zero and one iff the efficiency does not fall and grows no faster than the batch",
    "the efficiency is a power of the batch, as any smooth one is at a point",
)

affine_at_most_one = _at_most_one(growth_of_affine, "a part is no more than the whole")
coverage_at_most_one = _at_most_one(growth_of_coverage, "log(x) <= x - 1")
collective_at_most_one = _at_most_one(growth_of_collective, "no addend exceeds the one below it")
imbalance_at_most_one = _at_most_one(growth_of_imbalance, "what is taken away is positive")
efficiency_at_most_one = _at_most_one(growth_with_efficiency, "the efficiency does not fall")

tiled_time = Equation.of(
    T_tiles,
    t_tile * ceiling(B / B_tile),
    "T(B)/B rises at each new tile: from 128 to 129 sequences the time doubles",
    source=derived,
)

rounding_loss = Equation.of(
    x_round,
    B_whole / (one_seq * floor(B_whole / one_seq)),
    "the time of the step is that before rounding: the most that rounding can cost",
    source=derived,
)
