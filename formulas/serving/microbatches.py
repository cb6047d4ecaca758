"""How the sequences in flight are spread over ranks and stages, and who waits for whom."""

from sympy import Max, Min, ceiling

from formulas.algebra.equation import Equation
from formulas.nomenclature.sources import definition
from formulas.nomenclature.symbols import B
from formulas.nomenclature.symbols_serving import b_rank, b_stage, dp, f_pace, f_stage, one_seq, pp

__all__ = ["rank_sequences", "stage_pace", "stage_sequences"]

rank_sequences = Equation(
    "sequences one attention rank decodes in one microbatch",
    b_rank,
    ceiling(B / (pp * dp)),
    assumes=("every rank waits for the fullest one", "pp microbatches in flight"),
    source=definition,
)

stage_sequences = Equation(
    "sequences one stage decodes in one microbatch",
    b_stage,
    ceiling(B / pp),
    assumes=("pp microbatches in flight",),
    source=definition,
)

stage_pace = Equation(
    "time a microbatch takes for a round of the stages, over the sum of their times",
    f_pace,
    Max(1, f_stage * Min(1, B / (pp * one_seq)), evaluate=False),
    assumes=(
        "with pp microbatches in flight the fullest stage sets the pace of all",
        "fewer sequences than stages leave it idle in between",
    ),
    source=definition,
)
