"""The roofline of one decode step: arithmetic, weights, caches, and the time of the whole."""

from formulas.algebra.notation import *

READ_ONCE = "each weight is read once per step, whatever the batch"
FULL_READ = "each sequence reads its whole cache"
OVERLAP = "arithmetic and memory overlap perfectly: a lower bound"
MEMORY = lecture_notes.at("section 1, memory time")
ROOFLINE = lecture_notes.at("section 1, first equation")

compute_time = Equation.of(
    T_comp,
    B * m_pos * N_active * c_fwd / F,
    "attention is small beside the weights",
    source=lecture_notes.at("section 1, compute time"),
)

compute_time_attention = Equation(
    "arithmetic of one step, with attention",
    T_comp,
    B * m_pos * (N_active * c_fwd + L_ctx * a_kv) / F,
    assumes=("weights and attention run at one arithmetic rate",),
    source=pope_2022.at("section 2"),
)

weight_time = Equation.of(T_w, N_total * b_w / W, READ_ONCE, source=MEMORY)

kv_time = Equation.of(T_kv, B * L_ctx * b_kv / W, FULL_READ, source=MEMORY)

memory_time = Equation.of(
    T_mem, (N_total * b_w + B * L_ctx * b_kv) / W, READ_ONCE, FULL_READ, source=MEMORY
)

step_time = Equation.of(
    T_step, maximum(T_comp, T_mem), OVERLAP, source=ROOFLINE, where=(compute_time, memory_time)
)

step_time_attention = Equation(
    "time of one step, with attention arithmetic",
    T_step,
    maximum(T_comp, T_mem),
    assumes=(OVERLAP,),
    source=ROOFLINE,
    where=(compute_time_attention, memory_time),
)

step_time_sum = Equation(
    "time of one step without overlap",
    T_step,
    T_comp + T_mem,
    assumes=("arithmetic and memory take turns: an upper bound on the two roofs",),
    source=derived,
    where=(compute_time, memory_time),
)

step_time_attained = Equation(
    "time of one step at attained rates",
    T_step,
    T_comp / e_c + T_w / e_w + T_kv / e_kv,
    assumes=("terms take turns, each at its share of the peak",),
    source=derived,
    where=(compute_time_attention, weight_time, kv_time),
)

latency_floor = Equation.of(
    T_floor,
    N_total * b_w / W,
    "every weight is read, as a dense model must and a sparse one at large batch does",
    source=lecture_player.at("ideas, latency floor"),
)

time_per_sequence = Equation.of(
    T_seq,
    maximum(m_pos * N_active * c_fwd / F, N_total * b_w / (W * B) + L_ctx * b_kv / W),
    READ_ONCE,
    FULL_READ,
    OVERLAP,
    source=lecture_equations.at("equation 4"),
    branches={
        "arithmetic": m_pos * N_active * c_fwd / F,
        "memory": N_total * b_w / (W * B) + L_ctx * b_kv / W,
    },
)

drain_time = Equation.of(
    T_drain,
    M / W,
    "every byte is read once, at full bandwidth",
    source=lecture_notes.at("section 1, the train schedule"),
)
