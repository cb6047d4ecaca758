"""Prompts share passes: how many passes one is charged, and what a pass reads.

What a pass costs once, reading weights, launching kernels, the floors of collectives, is borne by
all prompts that it reads. The time of a prompt is a function of its number of passes: `n_chunks`
of them alone, and `n_shared`, a real number and often far below one, where they are shared.
"""

from formulas.algebra.notation import *
from formulas.serving.prefill import shared_time, shared_work

step_prompts = Equation.of(
    n_new,
    B * g / (L_dec * dp * pp * one_seq),
    "each rank of each stage has its own steps, and as many prompts come as requests end",
)

mixed_passes = Equation.of(
    n_shared,
    maximum(
        L_new / c_chunk,
        (1 - x_cohort) * (1 - exp(-n_chunks * n_new)) / n_new
        + x_cohort * n_chunks * minimum(1, dp * pp * one_seq / B),
    ),
    "prompts that come during one step share the next, which is as likely without one as a "
    "Poisson number is zero",
    "chunks are filled across prompts",
    source=derived,
)

full_passes = Equation(
    "passes of one prompt where all prompts in flight are read together, counted by its share",
    n_shared,
    maximum(L_new / c_chunk, n_chunks * minimum(1, dp * pp * one_seq / B)),
    (
        "B prompts are in flight: those of a rank are read together, as far as a pass has room",
        "the last of a pass may be split between two",
    ),
    derived,
)

pass_room = Equation.of(
    x_room,
    B / (dp * pp * one_seq * ceiling(c_chunk / L_new)),
    "a prompt that does not fit whole begins in one pass and ends in the next",
)

pass_weights = Equation.of(
    V_pass,
    S_fixed / tp + S_routed * u_ep / (ep * xtp),
    "a chunk touches every expert",
    source=lecture_equations.at("equation 3"),
)

mixed_pass_weights = Equation(
    "weights that one chip reads for prompts in a step that decodes as well",
    V_pass,
    S_routed * (1 - coverage) * u_ep / (ep * xtp),
    (
        "a chunk touches every expert, and shares its step with decoding sequences: weights are "
        "read once for both",
    ),
    lecture_equations.at("equation 3"),
)

read_alone = Equation.of(T_read, T_pf, "a prompt's own passes; others delay it as a queue does")

read_together = Equation(
    "from the first pass of prompts that share theirs to the end of the last",
    T_read,
    n_chunks * T_pf_shared / n_shared,
    ("a prompt is read when all that share its passes are",),
)

# Equations of passes shared by prompts, by the phases that a pool runs.
_SHARED = (shared_work, shared_time)
PASSES = {
    "aggregated": (step_prompts, mixed_passes, mixed_pass_weights, *_SHARED, read_alone),
    "decode": (step_prompts, mixed_passes, pass_weights, *_SHARED, read_alone),
    "prefill": (full_passes, pass_room, pass_weights, *_SHARED, read_together),
}
