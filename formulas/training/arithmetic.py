"""Where 6ND comes from: the arithmetic of training, of reinforcement learning and of serving.

With two FLOP per parameter and token forward (a multiply and an add), training takes six, and
eight when the forward pass is done again instead of kept. The phases after pre-training run at a
lower efficiency; dividing by it states their arithmetic in the worth of pre-training.
"""

from formulas.algebra.notation import *

SHORT_CONTEXT = "attention is small beside the weights"

backward_arithmetic = Equation.of(
    c_bwd,
    2 * c_fwd,
    "one product gives the gradients of the inputs, one those of the weights, each as large "
    "as the forward product",
    source=lecture_hardware.at("section 5, where the 6 comes from"),
)

training_arithmetic = derive(
    "arithmetic of training, from its passes",
    begin(C_pt, N_active * D_pt * (c_fwd + c_bwd), why="forward and backward, for every token"),
    substitute(
        backward_arithmetic,
        why="with c_fwd = 2 FLOP per parameter and token: 2ND forward, 4ND backward, 6ND in all",
    ),
    source=lecture_notes.at("section 4, the three costs"),
    assumes=(SHORT_CONTEXT, "every activation is kept until the backward pass needs it"),
)

training_arithmetic_attention = Equation(
    "arithmetic of training, with attention",
    C_pt,
    3 * D_pt * (c_fwd * N_active + x_causal * a_kv * L_train),
    assumes=(
        "x_causal is 1 where all pairs are computed, 1/2 where the causal half is skipped",
        "N_active without the input embedding, which multiplies nothing",
    ),
    source=narayanan_2021.at("appendix, floating-point operations"),
)

pretraining_arithmetic = Equation.of(
    C_pt, 3 * c_fwd * N_active * D_pt, SHORT_CONTEXT, source=kaplan_2020.at("section 2.1")
)

rl_arithmetic = Equation.of(
    C_rl,
    c_rl * N_active * D_rl / eta_rl,
    "c_rl runs from c_fwd (rollouts alone) to 3*c_fwd (every rollout is trained on)",
    "a lower efficiency divides: it makes a token dearer",
    source=lecture_notes.at("section 4, the three costs"),
)

serving_arithmetic = Equation.of(
    C_inf,
    c_fwd * N_active * D_inf / eta_inf,
    "a lower efficiency divides: it makes a token dearer",
    SHORT_CONTEXT,
    source=lecture_notes.at("section 4, the three costs"),
)

all_arithmetic = Equation.of(
    C_all,
    C_pt + C_rl + C_inf,
    "nothing else is computed: no failed runs, no experiments, no data made by models",
    source=lecture_hardware.at("section 5, total compute"),
    where=(pretraining_arithmetic, rl_arithmetic, serving_arithmetic),
)

total_over_pretraining = derive(
    "arithmetic of a model's life over that of pre-training",
    begin(r_all, (C_pt + C_rl + C_inf) / C_pt, why="by definition"),
    substitute(pretraining_arithmetic),
    substitute(rl_arithmetic),
    substitute(serving_arithmetic),
    rewrite(
        1 + c_rl * D_rl / (3 * c_fwd * eta_rl * D_pt) + D_inf / (3 * eta_inf * D_pt),
        why="the size of the model cancels",
    ),
    assumes=("every pool is proportional to the size of the model",),
)
