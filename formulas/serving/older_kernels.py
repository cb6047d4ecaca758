"""Static batches on engines of 2022 to 2024: kernels that read weights while they multiply.

Such engines run one product after the other, each reading its weights while it multiplies: about
the root of the squares of both times, the longer one where they differ, more than either where
they are alike. It is taken at full efficiency, so that what remains is still a sum of what
coefficients add. All prompts of a batch are read in one go; each attends to itself alone.
"""

from formulas.algebra.notation import *
from formulas.serving.decode import overlapped_time
from formulas.serving.prefill import prefill_math, prefill_weights

cache_slowness = Equation.of(
    x_lone,
    maximum(W_chip * pp * dp / (w_mp * n_mp * B), 1),
    "the cache of a sequence is left to one multiprocessor per head, or group of heads",
)

prompt_at_peak = Equation.of(
    T_pf_peak,
    prefill_math.rhs.subs({e_pf: 1, e_pf_x: 1}),
    "only the last position needs the head",
    source=lecture_equations.at("equation 2"),
)

reading_at_peak = Equation.of(
    T_pf_read,
    prefill_weights.rhs * e_w,
    "a pass touches every expert",
    source=lecture_equations.at("equation 3"),
)

reading_beside = Equation.of(
    T_pf_beside,
    (
        (1 + x_wide - x_beside) * T_pf_read
        + sqrt((x_beside * T_pf_read) ** 2 + (n_pr * T_pf_peak) ** 2)
        - n_pr * T_pf_peak
    )
    / e_w,
    "each product reads its weights while it multiplies: the root of the squares of both",
    "a pass that widens quantised weights multiplies nothing meanwhile",
    source=derived,
)

batch_prompts = Equation.of(
    T_pf_all,
    overlapped_time(
        n_pr * (T_pf_math + T_pf_x + maximum(T_pf_attn, T_ring)) + T_pf_beside + T_pf_over, T_pf_net
    )
    + T_hop_pf,
    "reading, collectives and overheads are those of all the batch's tokens in one prompt",
    "arithmetic is that of each prompt by itself",
)

batch_first_token = Equation.of(
    T_batch,
    T_pf_all * ((1 - 1 / n_chunks) * f_stage / pp + 1 / n_chunks)
    + n_pr * L_new * one_seq * t_tok
    + t_request,
    "passes follow one another through the stages at the pace of the fullest",
)

STATIC_PROMPTS = (prompt_at_peak, reading_at_peak, reading_beside, batch_prompts, batch_first_token)
