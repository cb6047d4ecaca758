"""Time of one optimiser step of a layout: what every chip computes, moves and waits for.

Every micro-batch passes the slowest pipeline stage, the bubble comes on top, then data-parallel
traffic that nothing hides, and the optimiser. Attention counts the causal half of its pairs.
Coefficients are what a software stack makes of the hardware, one where it is perfect; a time is
linear in them, but for what is hidden.
"""

from formulas.algebra.notation import *

ASSUME_BALANCED_EXPERTS = "experts are balanced: every chip computes the mean"

tokens_per_rank = Equation.of(
    D_rank, b_micro * L_train / cp, "a context is spread evenly over its parts"
)

passes_of_a_layer = Equation.of(
    n_passes,
    3 + x_again,
    "gradients of inputs and of weights take as much as the forward pass each",
    "what recomputation and inversion add is one forward pass",
    source=korthikanti_2022.at("section 5"),
)

dense_arithmetic = Equation.of(F_mat, c_fwd * (P_att + P_ffn) * D_rank / tp)

matrix_time = Equation.of(
    T_mat,
    (n_passes - 1 + x_trained)
    * F_mat
    / F_peak
    * (k_mat + k_narrow * x_narrow + k_few * x_few + k_uneven * x_uneven),
    "frozen weights have no gradients: of them one pass is not made",
    "products lose by local widths and rows that are few beside a tile, and by misalignment",
)

routed_arithmetic = Equation.of(
    F_exp, c_fwd * x_moe * P_pick * D_rank / tp, ASSUME_BALANCED_EXPERTS
)

routed_time = Equation.of(
    T_expert,
    (n_passes - 1 + x_trained) * F_exp / F_peak * (k_expert + k_thin * x_thin),
    ASSUME_BALANCED_EXPERTS,
    "products of one expert are as narrow as it, and have the rows that pass it",
)

attention_arithmetic = Equation.of(F_att, a_score * b_micro * L_train**2 / (2 * tp * cp))

attention_step_time = Equation.of(
    T_att,
    (Rational(7, 2) + x_again + x_softmax * (1 - x_again))
    * (
        (k_att + k_odd * x_odd) * x_scores * F_att / F_half
        + k_pairs * h_pairs * b_micro * L_train**2 / (tp * cp * W_chip)
    ),
    "the backward pass takes five products where the forward one takes two, all in 16 bits",
    "an unfused softmax goes through memory, a fused one does not",
    source=dao_2023.at("section 3.1.2"),
)

element_wise_time = Equation.of(
    T_elt,
    n_passes * D_rank * (k_norm * h_norm * (1 - x_sp + x_sp / tp) + k_cut * h_cut / tp) / W_chip,
    "norms, residuals and dropout are divided by sequence parallelism alone",
    source=korthikanti_2022.at("section 4.2"),
)

quantisation_time = Equation.of(
    T_quant,
    (n_passes - 1 + x_trained) * x_quant * k_quant * D_rank * (h_norm + h_cut / tp) / W_chip,
    "operands are read and written once more in each pass of a product",
)

tensor_parallel_time = Equation.of(
    T_tp,
    (4 + 2 * x_again) * (k_tp * 2 * (tp - 1) / tp * D_rank * h_model / W_tp + t_tp * (tp - 1)),
    "two all-reduces a layer in each direction, each a reduce-scatter and an all-gather, "
    "with sequence parallelism between them or not",
    source=korthikanti_2022.at("section 4.2.1"),
)

context_ring_time = Equation.of(
    T_cp_lay,
    maximum(0, (3 + x_again) * k_cp * (cp - 1) * h_kv * D_rank / (tp * W_cp) - x_hide * T_att),
    "keys and values go round in each pass, their gradients once; attention hides them",
    source=yang_2024.at("section 3, ring pass-KV"),
)

expert_exchange_step_time = Equation.of(
    T_ep_lay,
    x_moe
    * (4 + 2 * x_again)
    * (k_ep * (ep - 1) / ep * h_sent * D_rank / (tp * W_ep) + t_moves * minimum(1, ep - 1)),
    "dispatch and combine, forward and backward, and once more where layers run again",
    ASSUME_BALANCED_EXPERTS,
)

launch_time = Equation.of(
    T_launch, n_passes * (t_launch + x_moe * t_routed), "the host issues every kernel of every pass"
)

layer_work = Equation.of(
    T_chip_l, T_mat + T_expert + T_att + T_elt + T_quant + T_tp + T_cp_lay + T_ep_lay
)

layer_time = Equation.of(
    T_layer,
    sqrt(sqrt(T_chip_l**4 + T_launch**4)),
    "the host runs ahead of the chip: the longer of both counts, with a smooth change between",
)

head_time = Equation.of(
    T_head,
    (2 + x_trained) * c_fwd * P_head * D_rank / (tp * F_half) * k_mat
    + 3 * k_logit * v_head * D_rank / (n_vocab * W_chip),
    "the head multiplies in 16 bits and is not run again",
    "logits are divided as the vocabulary is, or whole where every rank gathers them",
)

pipeline_hops_time = Equation.of(
    T_hop_st,
    2 * minimum(1, pp - 1) * n_virtual * (k_pp * D_rank * h_model / (tp * W_pp) + t_pp),
    "each chip of a stage sends its share of the activations, and of their gradients back",
    source=narayanan_2021.at("section 4.1"),
)

head_excess = Equation.of(
    T_over_hd,
    maximum(0, T_head - (n_full - n_last) * T_layer),
    "the last stage has the head, and may have fewer layers",
)

slowest_stage = Equation.of(T_slow, n_full * T_layer + T_over_hd + T_hop_st)

whole_chain = Equation.of(T_chain, n_blocks * T_layer + T_head + pp * T_hop_st)

bubble_of_a_step = Equation.of(
    T_wait_pp,
    maximum(0, T_chain - T_slow)
    / n_virtual
    * (1 - 2 * x_zero_b * x_trained / (n_passes - 1 + x_trained)),
    "the pipeline fills and drains once in a step, at the pace of all stages",
    "ZB-H1 waits for a forward and a backward pass less gradients of the weights",
    "n_virtual is 1 but where stages are interleaved",
    source=narayanan_2021.at("section 2.2"),
)

parameters_per_chip = Equation.of(
    N_rank,
    n_full * ((P_att + P_ffn) / tp + P_rest) + (P_emb + P_head) / (tp * pp),
    "embedding and head as a mean over the stages: reduced where they lie",
)

expert_parameters_per_chip = Equation.of(N_experts, n_full * x_moe * P_routed / (ep * etp))

gradient_group = Equation.of(n_dp, dp * cp, "parts of a context hold one set of weights")

expert_gradient_group = Equation.of(
    n_edp, tp * cp * dp / (ep * etp), "experts are copied over what they are not spread over"
)

wire_bytes = Equation.of(
    V_wire,
    b_wire * x_trained * (1 - x_shard + 1 - x_grads + x_grads * n_micro)
    + b_weight * (x_trained * (x_shard - x_params) + 2 * x_params * n_micro),
    "unsharded, gradients are all-reduced: a reduce-scatter and an all-gather",
    "ZeRO-2 reduces gradients for every micro-batch",
    "frozen weights are gathered too",
    "ZeRO-3 gathers weights for the forward and the backward pass of every micro-batch",
    source=rajbhandari_2019.at("section 7"),
)

data_parallel_time = Equation.of(
    T_dp,
    k_dp
    * V_wire
    * (N_rank * (n_dp - 1) / (n_dp * W_dp) + N_experts * (n_edp - 1) / (n_edp * W_edp))
    + t_dp
    * n_full
    * minimum(1, n_dp - 1)
    * (1 + x_shard + x_grads * (n_micro - 1) + x_params * (2 * n_micro - 1)),
    "a collective a layer; rates are those of the whole group",
)

hiding_window = Equation.of(
    T_window,
    x_hide * k_hide * (T_slow - T_hop_st) * (Rational(2, 3) * (1 - x_grads) + x_grads * n_micro),
    "gradients are reduced behind the backward pass of the last micro-batch, under ZeRO-2 and 3 "
    "behind every one",
)

data_parallel_exposed = Equation.of(T_dp_out, maximum(0, T_dp - T_window))

optimiser_time = Equation.of(
    T_optim,
    k_opt
    * 2
    * (b_opt + x_trained * b_weight)
    * (N_rank * (1 - x_shard + x_shard / n_dp) + N_experts * (1 - x_shard + x_shard / n_edp))
    / W_chip,
    "states are read and written once",
)

offload_time = Equation.of(
    T_offload,
    2
    * x_host
    * (b_opt + x_trained * b_weight)
    * (N_rank * (1 - x_shard + x_shard / n_dp) + N_experts * (1 - x_shard + x_shard / n_edp))
    / W_host
    + n_micro * maximum(0, x_host_a * (2 * n_full * D_rank * h_model / W_host - n_full * T_layer)),
    "optimiser states pass to the chip and back once a step",
    "inputs of layers pass behind the arithmetic of their layer",
)

step_time_of_layout = Equation.of(
    T_train,
    n_micro * T_slow + T_wait_pp + T_dp_out + T_optim + T_offload + t_fixed,
    "the slowest stage sets the pace of every micro-batch",
)

pooled_rate = Equation(
    "rate of a group across scale-up domains",
    W_dp,
    minimum(W_link, n_near * W_card),
    assumes=("members in one domain pool their network cards",),
)

STEP = (
    tokens_per_rank, passes_of_a_layer, dense_arithmetic, matrix_time, routed_arithmetic,
    routed_time, attention_arithmetic, attention_step_time, element_wise_time, quantisation_time,
    tensor_parallel_time, context_ring_time, expert_exchange_step_time, launch_time, layer_work,
    layer_time, head_time, pipeline_hops_time, head_excess, slowest_stage, whole_chain,
    bubble_of_a_step, parameters_per_chip, expert_parameters_per_chip, gradient_group,
    expert_gradient_group, wire_bytes, data_parallel_time, hiding_window, data_parallel_exposed,
    optimiser_time, offload_time, step_time_of_layout,
)  # fmt: skip
