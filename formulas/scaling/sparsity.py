"""Sparsity: the ratio of a chip times the sparsity of a model, and what more experts buy.

The coefficients of the routing law are symbols here; fitted values stand in the planner.
"""

from formulas.algebra.notation import *
from formulas.roofline.batching import short_context_batch
from formulas.roofline.experts import sparsity

DECADE = log(10)
LOGARITHMS = (
    Equation("logarithm of parameters", l_N, log(N_active / one_param) / DECADE),
    Equation("logarithm of experts", l_E, log(E_hat) / DECADE),
    Equation("logarithm of first experts", l_first, log(E_first) / DECADE),
)

hardware_ratio = Equation.of(
    R_hw,
    F * b_w / (W * c_fwd),
    "arithmetic and weights in one format: halving the bytes and doubling the rate cancel",
    source=lecture_notes.at("section 1, the dimensionless hardware ratio"),
)

rule_of_thumb = derive(
    "critical batch as the ratio of a chip times the sparsity of a model",
    begin(short_context_batch),
    rewrite(
        R_hw * sigma,
        why="the chip's part and the model's part, apart",
        where=(hardware_ratio, sparsity),
    ),
    source=lecture_notes.at("section 1, the optimal batch size: a 300 × sparsity rule"),
    assumes=("short context: cache reads are small beside weight reads",),
)

active_share = Equation.of(
    x_act,
    N_active / N_total,
    "parameters, not bytes: formats may differ between experts and the rest",
    source=lecture_hardware.at("section 2, the optimal batch size formula"),
)

critical_batch_by_share = derive(
    "critical batch, with sparsity named the other way round",
    begin(B_0, rule_of_thumb, why=rule_of_thumb.name),
    substitute(sparsity),
    rewrite(
        R_hw / x_act,
        why="dividing by the active share is multiplying by its inverse",
        where=(active_share,),
    ),
    source=lecture_hardware.at("section 2, the optimal batch size formula"),
    where=(hardware_ratio,),
)

batch_from_traffic = Equation.of(
    B_flight,
    n_nodes * X_node / v_user,
    "steady state (Little's law): every sequence emits at the same mean speed",
    source=derived,
)

batch_over_critical = Equation.of(
    x_crit,
    B * m_pos / B_0,
    "short context: the critical batch is that without caches",
    where=(short_context_batch,),
)

saturated_experts = Equation.of(
    E_hat,
    1 / (1 / (n_experts - 1 + 1 / (1 / E_first - 1 / E_limit)) + 1 / E_limit),
    "one expert gives E_first, ever more approach E_limit",
    source=clark_2022.at("equation 5"),
)

equal_loss = derive(
    "logarithm of the parameters of the dense model of equal loss",
    begin(
        a_route * l_eff + b_route * l_first - c_route * l_eff * l_first,
        a_route * l_N + b_route * l_E - c_route * l_N * l_E,
        why="the fall of the loss below its constant, dense and routed",
    ),
    solve(
        l_eff,
        (l_N * (a_route - c_route * l_E) + b_route * (l_E - l_first))
        / (a_route - c_route * l_first),
    ),
    source=clark_2022.at("equation 1 and section 5.3"),
    assumes=(
        when(c_route * l_first < a_route, why="a larger dense model is better"),
        when(c_route * l_E < a_route, why="a larger routed model is better"),
        when(l_E >= l_first),
        "one expert per token, half the blocks routed, a fixed number of training tokens",
    ),
)

effective_parameters = derive(
    "parameters of the dense model of equal loss",
    begin(N_eff, one_param * 10**l_eff, why="out of the logarithm"),
    substitute(equal_loss),
    rewrite(
        one_param
        * (N_active / one_param) ** ((a_route - c_route * l_E) / (a_route - c_route * l_first))
        * (E_hat / E_first) ** (b_route / (a_route - c_route * l_first)),
        why="a power of the parameters times a power of the experts",
    ),
    source=clark_2022.at("equation 7, effective parameter count"),
    assumes=equal_loss.assumes,
    where=LOGARITHMS,
)

parameter_gain = Equation.of(
    x_gain,
    N_eff / N_active,
    "the dense model of equal loss saw the same training tokens",
    source=lecture_notes.at("section 1, the diminishing returns of sparsity"),
)

sparsity_return = Equation.of(
    r_gain,
    log(x_gain) / log(sigma),
    "one means that total parameters are as good as active ones, zero that they are not",
    source=lecture_equations.at("batch economics, sparsity"),
)
