"""Whether an expert group should leave its rack: fewer weights to read against a slower exchange.

Twice the chips hold half the experts each, which saves time whatever the batch; the exchange over
racks costs more for every position. Below a batch, or above a size of experts, crossing pays.
"""

from __future__ import annotations

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.network import (
    T_lost,
    T_saved,
    n_inner,
    n_outer,
    n_own,
    n_spare,
    n_tie,
    s_even,
    s_expert,
    t_more,
    x_more,
)
from formulas.nomenclature.sources import derived, lecture_hardware
from formulas.nomenclature.symbols import n_experts
from formulas.nomenclature.symbols_serving import W_chip

__all__ = [
    "crossing_batch",
    "crossing_expert",
    "exchange_lost",
    "experts_spared",
    "reading_saved",
]

RACKS = lecture_hardware.at("section 3, why crossing rack boundaries is a problem")
READ = "every expert that a chip holds is read once per step, as at large batch"
LINEAR = "an exchange takes a floor and a time per position"

experts_spared = Equation(
    "routed experts of a layer that a chip of the larger group need not hold",
    n_spare,
    n_experts / n_inner - n_experts / n_outer,
    assumes=("experts lie evenly over chips", "n_outer > n_inner"),
    source=RACKS,
    tags=("C19", "C21"),
)

reading_saved = Equation(
    "time that a chip of the larger group reads less",
    T_saved,
    n_spare * s_expert / W_chip,
    assumes=(READ,),
    source=RACKS,
    tags=("C19", "C21"),
)

exchange_lost = Equation(
    "time that the larger group's exchange takes longer",
    T_lost,
    t_more + n_own * x_more,
    assumes=(LINEAR,),
    source=RACKS,
    tags=("C21",),
)

crossing_expert = (
    Derivation(
        "weights of one expert from which leaving the rack pays",
        source=derived,
        tags=("C21",),
        assumes=(READ, LINEAR, "reading and exchange follow one another"),
    )
    .begin(
        n_spare * s_expert / W_chip,
        t_more + n_own * x_more,
        why="what is not read makes up for what is exchanged more slowly",
    )
    .solve(s_expert, W_chip * (t_more + n_own * x_more) / n_spare, named=s_even)
)

crossing_batch = (
    Derivation(
        "positions of a chip up to which leaving the rack pays",
        source=derived,
        tags=("C21",),
        assumes=(*crossing_expert.assumes, "the larger group's floor is below what it saves"),
    )
    .begin(crossing_expert.steps[0].lhs, crossing_expert.steps[0].rhs, why="the same balance")
    .solve(n_own, (n_spare * s_expert / W_chip - t_more) / x_more, named=n_tie)
)
