"""The numbers of a token budget and of a model's life, each as the equation that computes it.

Every phase has its own chip, its own share of the peak and its own price. Arithmetic is counted as
it is done, so a phase that runs badly costs more money for the same FLOP.
"""

from formulas.algebra.notation import *

SHORT_CONTEXT = "attention is small beside the weights"
THREE_COSTS = lecture_notes.at("section 4, the three costs")

delivered_arithmetic = Equation.of(
    v_chip,
    u_peak * F / n_chips,
    "the share of the peak does not depend on how many chips there are",
)

flop_price = Equation.of(
    w_flop,
    p_chip / v_chip,
    "chips are paid for by time, busy or not",
    where=(delivered_arithmetic,),
)

planned_share = Equation.of(
    u_peak,
    3 * c_fwd * N_active * p_chip / (w_train * F_train),
    "of the arithmetic of the weights alone, as budgets count it",
    "chips of a training layout are paid for by time, idle ones and failures too",
)

done_arithmetic = Equation.of(
    C_done,
    N_active * (3 * c_fwd * D_pt + c_rl * D_rl + c_fwd * D_inf),
    SHORT_CONTEXT,
    "nothing else is computed: no failed runs, no experiments",
    source=THREE_COSTS,
)

paid_arithmetic = Equation.of(
    C_paid,
    N_active * (3 * c_fwd * D_pt / u_pt + c_rl * D_rl / u_rl + c_fwd * D_inf / u_inf),
    *done_arithmetic.assumes,
    "what of the peak is not used is paid too",
    source=THREE_COSTS,
)

chip_time = Equation.of(
    t_chips,
    N_active * (3 * c_fwd * D_pt / v_pt + c_rl * D_rl / v_rl + c_fwd * D_inf / v_inf),
    *done_arithmetic.assumes,
    source=THREE_COSTS,
)

life_cost = Equation.of(
    K_life,
    N_active * (3 * c_fwd * D_pt * w_pt + c_rl * D_rl * w_rl + c_fwd * D_inf * w_inf),
    *done_arithmetic.assumes,
    "a FLOP of a phase has one price",
    source=THREE_COSTS,
)

served_life_cost = Equation(
    "cost of a model's life, served at a price of a token",
    K_life,
    N_active * (3 * c_fwd * D_pt * w_pt + c_rl * D_rl * w_rl) + C_mix * D_inf,
    assumes=(*done_arithmetic.assumes, "the price of a token is that of the best plan to serve it"),
    source=THREE_COSTS,
)

phase_share = Equation.of(y_phase, K_phase / K_life)

tokens_per_parameter = Equation.of(r_tokens, D_pt / N_active)

overtraining_ratio = Equation.of(x_over, D_pt / D_opt)

passes_over_data = Equation.of(n_pass, maximum(Integer(1), D_pt / D_unique))

reinforcement_loss = Equation.of(
    loss_rl,
    B_rl * (one_token / D_rl) ** beta_rl,
    "what it takes off the loss adds to what size and data do",
)

sparse_parameters = Equation("parameters of a model of given sparsity", N_total, sigma * N_active)
