"""Rounds and layers that can be run backwards, and what training without kept activations costs.

The inversions are algebra: they hold for any deterministic functions in exact arithmetic (integers,
fixed point). In floating point (x + f) - f is only near x. `f_left`, `f_x2` and `g_y1` stand for
the values of arbitrary functions of the half that is passed on unchanged.
"""

from formulas.algebra.notation import *
from formulas.training.arithmetic import SHORT_CONTEXT, backward_arithmetic, pretraining_arithmetic

ASSUME_ANY_FUNCTION = "f is any deterministic function; it need not have an inverse"
EXACT = "exact arithmetic; in floating point the inversion is approximate"
EQUAL = "layers of equal activations"
F_ANY, G_ANY = Function("f"), Function("g")

feistel_round = Equation.of(
    y_right,
    x_right + f_left,
    ASSUME_ANY_FUNCTION,
    "the other half passes unchanged, the two swapped each round: (y, x + f(y)); written "
    "without the swap, (x, y + f(x)), rounds must take turns",
    source=feistel_1973.at("the design of a product cipher"),
)

feistel_inverse = derive(
    "a Feistel round, backwards",
    begin(feistel_round),
    solve(x_right, y_right - f_left, why="the unchanged half is read off, and f of it taken away"),
    source=lecture_notes.at("section 6, Feistel networks"),
    assumes=(ASSUME_ANY_FUNCTION, EXACT),
)

feistel_round_trip = derive(
    "a Feistel round, there and back",
    begin(x_back, y_right - F_ANY(y_left), why="the inverse, applied to what the round gives"),
    substitute(Equation("the half that passes unchanged", y_left, x_left)),
    substitute(Equation("the half that is changed", y_right, x_right + F_ANY(x_left))),
    source=lecture_notes.at("section 6, Feistel networks"),
    assumes=(ASSUME_ANY_FUNCTION, EXACT),
)

reversible_layer_first = Equation.of(
    y_1, x_1 + f_x2, ASSUME_ANY_FUNCTION, source=gomez_2017.at("section 3.1, equation 6")
)

reversible_layer_second = Equation.of(
    y_2, x_2 + g_y1, ASSUME_ANY_FUNCTION, source=gomez_2017.at("section 3.1, equation 6")
)

reversible_inverse_second = derive(
    "a reversible layer backwards, second half",
    begin(reversible_layer_second),
    solve(x_2, y_2 - g_y1, why="first, because it needs the output alone"),
    source=gomez_2017.at("section 3.1, equation 7"),
    assumes=(ASSUME_ANY_FUNCTION, EXACT),
)

reversible_inverse_first = derive(
    "a reversible layer backwards, first half",
    begin(reversible_layer_first),
    solve(x_1, y_1 - f_x2, why="second, because it needs x_2"),
    source=gomez_2017.at("section 3.1, equation 7"),
    assumes=(ASSUME_ANY_FUNCTION, EXACT, "x_2 has been recovered"),
)

reversible_round_trip_first = derive(
    "a reversible layer, there and back, first half",
    begin(x_back, y_1 - F_ANY(y_2 - G_ANY(y_1)), why="the inverse, its second half put in"),
    substitute(Equation("second half of the layer", y_2, x_2 + G_ANY(y_1))),
    substitute(Equation("first half of the layer", y_1, x_1 + F_ANY(x_2))),
    source=gomez_2017.at("section 3.1, equations 6 and 7"),
    assumes=(ASSUME_ANY_FUNCTION, EXACT),
)

reversible_round_trip_second = derive(
    "a reversible layer, there and back, second half",
    begin(x_back, y_2 - G_ANY(y_1), why="the inverse, of the output alone"),
    substitute(Equation("second half of the layer", y_2, x_2 + G_ANY(y_1))),
    source=gomez_2017.at("section 3.1, equations 6 and 7"),
    assumes=(ASSUME_ANY_FUNCTION, EXACT),
)

activations_kept = Equation(
    "activations held when every layer's are kept", A_act, n_blocks * A_layer, assumes=(EQUAL,)
)

activations_reversible = Equation(
    "activations held by a reversible network",
    A_act,
    A_layer,
    assumes=(EQUAL, "every layer is reversible; embeddings and the head are left out"),
    source=gomez_2017.at("section 3.2, table 1"),
)

activations_checkpointed = Equation(
    "activations held with checkpoints",
    A_act,
    A_layer * (n_blocks / n_seg + n_seg),
    assumes=(
        EQUAL,
        "a checkpoint is as large as a layer's activations, and n_seg divides n_blocks",
    ),
    source=chen_2016.at("section 4.2"),
)

checkpoint_interval = derive(
    "layers between checkpoints that need the least memory",
    begin(activations_checkpointed),
    stationary(n_seg, "a longer segment costs as much as the checkpoints it saves"),
    solve(n_seg, sqrt(n_blocks)),
    source=chen_2016.at("section 4.2"),
    assumes=activations_checkpointed.assumes,
)

checkpointed_least_memory = derive(
    "least activations held with checkpoints",
    begin(activations_checkpointed),
    substitute(checkpoint_interval, why="grows as the root of the layers"),
    source=chen_2016.at("section 4.2"),
    assumes=activations_checkpointed.assumes,
)

reversible_arithmetic = derive(
    "arithmetic of training a reversible network",
    begin(
        C_pt,
        N_active * D_pt * (c_fwd + c_fwd + backward_arithmetic.symbol),
        why="forward, the layers run backwards, and the backward pass",
    ),
    substitute(backward_arithmetic, why="8ND with c_fwd = 2 FLOP per parameter and token"),
    source=lecture_hardware.at("section 7, RevNets"),
    assumes=(SHORT_CONTEXT,),
)

reversible_overhead = derive(
    "arithmetic of a reversible network over that of a plain one",
    begin(
        x_compute,
        C_pt / pretraining_arithmetic.rhs,
        why="relative to keeping every activation",
        of=(pretraining_arithmetic,),
    ),
    substitute(reversible_arithmetic, why="a third more"),
    source=lecture_hardware.at("section 7, RevNets"),
    assumes=reversible_arithmetic.assumes,
)

checkpointed_arithmetic = derive(
    "arithmetic of training with a checkpoint every root of the layers",
    begin(
        C_pt,
        N_active * D_pt * (c_fwd + backward_arithmetic.rhs + c_fwd * (1 - n_seg / n_blocks)),
        why="forward, backward, and all segments but the last forward again",
        of=(backward_arithmetic,),
    ),
    substitute(checkpoint_interval),
    rewrite(
        3 * c_fwd * N_active * D_pt + c_fwd * N_active * D_pt * (1 - 1 / sqrt(n_blocks)),
        why="6ND + 2ND(1 - 1/sqrt(n)): a little less than a reversible network",
    ),
    source=chen_2016.at("section 4.2"),
    assumes=(
        SHORT_CONTEXT,
        "the last segment still holds its activations and is not computed again",
    ),
)

checkpointed_over_reversible = derive(
    "activations with checkpoints over those of a reversible network",
    begin(
        x_memory,
        A_act / activations_reversible.rhs,
        why="both per layer of activations",
        of=(activations_reversible,),
    ),
    substitute(checkpointed_least_memory, why="more for every depth, and without bound"),
    assumes=(EQUAL,),
)
