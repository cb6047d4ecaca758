"""Keep a result or compute it again: one price for bytes held, one for arithmetic.

A cache of keys and values spends memory to save arithmetic; a reversible network spends arithmetic
to save memory. Both stand on the same balance: a byte held for the drain time costs what the
arithmetic that fits beside its reading costs.
"""

from formulas.algebra.notation import *
from formulas.roofline.batching import balance_context
from formulas.roofline.roofline import drain_time

BOTH = "memory and arithmetic are each charged the price of the whole machine for their share"

keep_or_compute = derive(
    "hold time after which computing again is cheaper than keeping",
    begin(
        D_step * b_made / M * t_hold,
        D_step * f_made / F,
        why="a share of the memory for a time, against all of the arithmetic for a moment",
    ),
    solve(t_hold, M * f_made / (F * b_made)),
    assumes=(BOTH,),
)

keep_or_compute_drain = derive(
    "the same in drain times",
    begin(keep_or_compute),
    rewrite(
        T_drain * (f_made / b_made) / (F / W),
        why="drain time, times the arithmetic per byte of the result over that of the machine",
        where=(drain_time,),
    ),
    assumes=(BOTH,),
)

keep_cache = derive(
    "hold time after which a cache is better computed again",
    begin(keep_or_compute_drain),
    substitute(Equation("arithmetic of one token", f_made, N_active * c_fwd * one_token)),
    substitute(Equation("cache of one token", b_made, b_kv * one_token)),
    rewrite(
        T_drain * L_star,
        why="thousands of drain times: memory buys arithmetic",
        where=(balance_context,),
    ),
    source=lecture_equations.at("Feistel networks and RevNets"),
    assumes=(BOTH, "attention is small beside the weights"),
    where=(drain_time,),
)

keep_activations = derive(
    "hold time after which a layer's activations are better computed again",
    begin(keep_or_compute_drain),
    substitute(Equation("arithmetic of one layer", f_made, N_active / n_blocks * c_fwd * D_batch)),
    substitute(
        Equation("activations of one layer", b_made, A_layer),
        why="held from a layer's forward to its backward pass: longer than this where the memory "
        "is the dearer part",
    ),
    source=lecture_equations.at("Feistel networks and RevNets"),
    assumes=(BOTH, "layers of equal size; attention is small beside the weights"),
    where=(drain_time,),
)
