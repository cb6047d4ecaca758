"""How long a collective takes: a floor, bytes over a rate, and a square-root term between.

A topology answers in plain numbers (rate of a group by its shape, latency); these equations turn
them into seconds. The square-root term is what a flat `latency + bytes/rate` misses in mid-range.
"""

from sympy import Integer, sqrt

from formulas.equation import Equation
from formulas.sources import definition, nccl_tests, thakur_2005
from formulas.symbols import (
    e_net,
)
from formulas.symbols_serving import (
    V_msg,
    alpha_c,
    gamma_c,
    n_group,
    q_a2a,
    q_ag,
    q_ar,
    q_wire,
    r_link,
    t_coll,
)

__all__ = [
    "all_gather_traffic",
    "all_reduce_traffic",
    "all_to_all_traffic",
    "collective_time",
]

collective_time = Equation(
    "time of one collective",
    t_coll,
    alpha_c + q_wire * V_msg / (r_link * e_net) + gamma_c * sqrt(V_msg),
    assumes=(
        "one message of V_msg bytes per chip, all chips of the group at once",
        "the square-root term spans the range between the latency floor and the full rate",
    ),
    source=thakur_2005.at("section 3, alpha-beta model; the square-root term is a fit of ours"),
)

all_reduce_traffic = Equation(
    "bytes on the wire per byte all-reduced",
    q_ar,
    2 * (n_group - 1) / n_group,
    assumes=("ring or optimal trees, no reduction inside the switch",),
    source=nccl_tests.at("doc/PERFORMANCE.md, AllReduce"),
)

all_gather_traffic = Equation(
    "bytes on the wire per byte gathered",
    q_ag,
    (n_group - 1) / n_group,
    assumes=("each chip keeps its own share",),
    source=nccl_tests.at("doc/PERFORMANCE.md, AllGather and ReduceScatter"),
)

all_to_all_traffic = Equation(
    "share of an all-to-all that leaves the chip",
    q_a2a,
    Integer(1) - 1 / n_group,
    assumes=("every destination is equally likely, the chip itself included",),
    source=definition,
)
