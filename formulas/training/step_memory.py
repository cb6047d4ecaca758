"""Memory of a chip that trains: states and activations of the pipeline stage that needs most.

Three stages can be the worst: the first, which has most micro-batches in flight and the embedding;
the one behind it, which may have more layers; the last, which has the head and its logits.
"""

from formulas.algebra.notation import *
from formulas.training.step_time import expert_gradient_group, gradient_group, tokens_per_rank

STAYS = "what a backward pass reads stays from the forward pass on"
CUTS = "full recomputation keeps the input of each layer, and one layer whole while it runs again"

state_bytes = Equation.of(
    V_dense,
    b_weight * (1 - x_params + x_params / n_dp)
    + b_grad * (1 - x_grads + x_grads / n_dp)
    + b_opt * (1 - x_host) * (1 - x_shard + x_shard / n_dp),
    "ZeRO-1 shards the optimiser's states, ZeRO-2 gradients too, ZeRO-3 weights too",
    source=rajbhandari_2019.at("section 5"),
)

expert_state_bytes = Equation.of(
    V_expert,
    b_weight * (1 - x_params + x_params / n_edp)
    + b_grad * (1 - x_grads + x_grads / n_edp)
    + b_opt * (1 - x_host) * (1 - x_shard + x_shard / n_edp),
    "as of all parameters, over the copies of an expert",
    source=rajbhandari_2019.at("section 5"),
)

layer_activations = Equation.of(
    A_one,
    D_rank * (a_undiv + a_whole * (1 - x_sp + x_sp / tp) + a_split / tp + x_moe * a_routed / tp)
    + (1 - x_softmax) * a_soft * b_micro * L_train**2 / (tp * cp),
    STAYS,
    "selective recomputation drops what the softmax leaves",
    source=korthikanti_2022.at("equations 2, 4 and 6"),
)

activations_that_wait = Equation.of(
    A_held,
    (1 - x_again) * A_one
    + x_again * (1 - x_back_up) * (1 - x_host_a) * D_rank * a_input * (1 - x_sp + x_sp / tp),
    CUTS,
    "an inverted layer leaves nothing behind",
    source=korthikanti_2022.at("table 2"),
)

activations_at_work = Equation.of(A_work, x_again * A_one, CUTS)

waves_in_flight = Equation.of(
    n_wave,
    x_gpipe * n_micro
    + (1 - x_gpipe) * minimum(n_micro, pp + minimum(1, n_virtual - 1) * (pp - 1) / n_virtual),
    "GPipe holds every micro-batch, 1F1B one for each stage ahead, interleaving a share more, "
    "and none more than there are",
    source=korthikanti_2022.at("section 4.2.3"),
)

waves_behind = Equation.of(
    n_wave_2,
    x_gpipe * n_micro
    + (1 - x_gpipe)
    * minimum(n_micro, maximum(1, pp - 1) + minimum(1, n_virtual - 1) * (1 + (pp - 3) / n_virtual)),
    "one micro-batch fewer than on the first stage; interleaved, two of its virtual stages fewer",
    source=narayanan_2021.at("section 2.2.2"),
)

first_stage_states = Equation.of(
    S_first,
    V_dense * (n_first * ((P_att + P_ffn) / tp + P_rest) + P_emb / tp)
    + V_expert * n_first * x_moe * P_routed / (ep * etp),
)

middle_stage_states = Equation.of(
    S_middle,
    V_dense * n_full * ((P_att + P_ffn) / tp + P_rest)
    + V_expert * n_full * x_moe * P_routed / (ep * etp),
)

last_stage_states = Equation.of(
    S_last,
    V_dense * (n_last * ((P_att + P_ffn) / tp + P_rest) + (P_head + x_alone * P_emb) / tp)
    + V_expert * n_last * x_moe * P_routed / (ep * etp),
    "one stage alone has embedding and head",
)

first_stage_activations = Equation.of(A_first, k_act * (n_first * n_wave * A_held + A_work), STAYS)

middle_stage_activations = Equation.of(
    A_middle, k_act * (n_full * n_wave_2 * A_held + A_work), STAYS
)

last_stage_activations = Equation.of(
    A_last,
    k_act * (n_last * (x_gpipe * n_micro + 1 - x_gpipe) * A_held + A_work),
    "the last stage goes backward at once",
)

logits_memory = Equation.of(
    M_logits,
    k_loss * v_head * D_rank / n_vocab,
    "in 32 bits, divided as the vocabulary is, or whole where every rank gathers them",
)

first_stage_memory = Equation.of(M_first, k_state * S_first + A_first + x_alone * M_logits + M_base)
middle_stage_memory = Equation.of(M_second, k_state * S_middle + A_middle + M_base)
last_stage_memory = Equation.of(M_last, k_state * S_last + A_last + M_logits + M_base)

training_memory = Equation.of(
    M_train,
    maximum(M_first, (1 - x_alone) * M_second, M_last),
    "the stage that needs most decides whether a layout fits",
)

STEP_MEMORY = (
    tokens_per_rank, gradient_group, expert_gradient_group, state_bytes, expert_state_bytes,
    layer_activations, activations_that_wait, activations_at_work, waves_in_flight, waves_behind,
    first_stage_states, middle_stage_states, last_stage_states, first_stage_activations,
    middle_stage_activations, last_stage_activations, logits_memory, first_stage_memory,
    middle_stage_memory, last_stage_memory, training_memory,
)  # fmt: skip

plain_activations = Equation(
    "activations of a layer, all of them, in 16 bits",
    A_one,
    b_one
    * D_rank
    / one_token
    * h_width
    * (34 + 5 * n_heads * L_train * one_seq / (h_width * one_token)),
    assumes=("one chip", "a feed-forward part four times as wide as the model, and dropout"),
    source=korthikanti_2022.at("equation 1"),
)
