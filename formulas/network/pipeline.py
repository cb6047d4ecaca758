"""Pipelines in inference: what stages divide, what they do not, and what a hop costs."""

from formulas.algebra.notation import *
from formulas.network.expert_traffic import UNIFORM, crossing_share
from formulas.roofline.kvcache import chips_of_pipeline

SECTION = lecture_notes.at("section 3, the microbatch math")
HOPS = lecture_notes.at("section 3, practical conclusion")

memory_with_copies = Equation(
    "bytes held by one chip, with weights in several copies",
    M_chip,
    ((N_dense * n_copies + N_routed * r_copies) * b_w + B * L_ctx * b_kv) / n_chips,
    assumes=("caches divide evenly over all chips", "copies are spread evenly over the chips"),
    source=derived,
)

pipeline_memory_in_flight = derive(
    "bytes held by one chip of a pipeline, with any number of microbatches in flight",
    begin(
        M_chip,
        (N_total * b_w + B * L_ctx * b_kv) / n_chips,
        why="weights and caches, divided over all chips",
    ),
    substitute(chips_of_pipeline),
    substitute(Equation("sequences in flight", B, n_flight * B_micro, source=SECTION)),
    rewrite(
        N_total * b_w / (n_domain * n_stages)
        + n_flight / n_stages * (B_micro * L_ctx * b_kv / n_domain),
        why="stages divide the weights; of the caches remains the microbatches per stage",
    ),
    source=SECTION,
    assumes=("weights and caches divide evenly over the chips",),
)

busy_stages = Equation.of(
    u_stage,
    minimum(1, n_flight / n_stages),
    "a hop takes no time, else more microbatches are needed to fill the pipeline",
    source=SECTION,
)

domain_weight_time = Equation(
    "weights read in one step by a scale-up domain",
    T_w,
    N_total * b_w / (W_each * n_domain),
    assumes=(
        "all chips of the domain read at once; stages of a pipeline take turns and save nothing",
    ),
    source=lecture_notes.at("section 3, why scale-up size still matters"),
)

domain_speedup = derive(
    "how much faster a larger scale-up domain reads the weights",
    begin(
        x_up,
        N_total * b_w / (W_each * n_before) / T_w,
        why="time in the smaller domain over time in the larger",
    ),
    substitute(domain_weight_time, why="the model and the chip cancel"),
    source=lecture_notes.at("section 3, why scale-up size still matters"),
    assumes=("the same chips, more of them",),
)

bandwidth_growth = Equation.of(
    x_gen,
    W_each / W_before,
    "peak rates of data sheets",
    source=lecture_notes.at("section 3, why scale-up size still matters"),
)

experts_over_pipeline = derive(
    "bytes between racks, experts over them against a pipeline through them",
    begin(
        x_racks,
        n_moe * k_experts * h_exp * (b_disp + b_comb) * f_cross / ((n_span - 1) * h_act * b_act),
        why="what leaves a rack to picked experts and back; one vector to each rack but the first",
    ),
    substitute(
        crossing_share, why="layers of a rack, picks and both ways: how many racks cross cancels"
    ),
    source=lecture_notes.at("section 3, pipeline parallelism"),
    assumes=(UNIFORM, "n_span > 1", "as many racks either way, a rack being one stage"),
)

hops_time = Equation.of(
    T_hops, n_hop * t_hop, "hops follow one another and overlap with nothing", source=HOPS
)

hop_share = Equation.of(
    x_hop, T_hops / T_step, "the step is counted without its hops", source=HOPS, where=(hops_time,)
)

shipping_time = Equation.of(
    T_ship,
    B_micro * m_pos * h_act * b_act / (n_nic * r_hop),
    "bandwidth alone: no latency, no software",
    source=derived,
)
