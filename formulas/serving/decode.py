"""One decode step of one replica: what is read, what is multiplied, what is sent.

A replica is `pp` stages of `tp * dp * cp` chips. Attention is sharded `tp` ways and copied `dp`
ways, each copy for its own share of the sequences; `cp` parts share the contexts of a copy, or
`dcp` of its `tp` ranks do (see `context_parallel`). The experts of a stage are spread over the same
`tp * dp` chips, `ep` ways, each expert sharded `xtp` ways. The step is followed through all stages,
so a term is the time one microbatch of `B/pp` sequences spends in it from the first layer to the
last; with `pp` microbatches in flight that is also the time in which the whole batch advances by
one step.

How the sequences in flight are spread over ranks and stages, and who waits for whom.

Where attention is copied and experts are spread, a pass may be cut in halves (`n_half` = 2), one at
work while the other sends. Each half reads the weights and pays every latency for itself, and a
share `e_ovl` of the shorter of work and sending disappears behind the longer.
"""

from formulas.algebra.notation import *
from formulas.network import collectives
from formulas.serving import context_parallel, speculation
from formulas.serving.speculation import IN_DEMAND, popular_share

SHARDING = pope_2022.at("section 3.2")
EXPERTS = deepseek_v3.at("section 3.4")
SUM = "terms follow one another: on measured steps the sum fits better than the maximum"
WHOLE_INDEXER = "every rank of tp scores by all heads of an indexer, whose weights it has whole"
MEMORY_TIME = lecture_equations.at("equation 3")

hidden_share = Equation(
    "share of the shorter of work and sending that is hidden",
    x_hid,
    e_ovl * (n_half - 1),
    assumes=("one half works while the other sends",),
    source=deepseek_v3.at("section 3.4.2"),
)


def overlapped_time(work: Expr, sending: Expr) -> Expr:
    """Time of both [s]: their sum, less the hidden share of the shorter one."""
    return (1 - x_hid) * (work + sending) + x_hid * maximum(work, sending)


rank_sequences = Equation.of(
    b_rank,
    ceiling(B / (pp * dp)) + c_rank * sqrt(B / (pp * dp)),
    "every rank waits for the fullest one, the mean of dp ranks plus about sqrt(2 ln dp) standard "
    "deviations where requests come as they come",
    "pp microbatches in flight",
)

stage_sequences = Equation.of(b_stage, ceiling(B / pp), "pp microbatches in flight")

PACE = (
    "with pp microbatches in flight the fullest stage sets the pace of all",
    "fewer sequences than stages leave it idle in between",
)
stage_pace = Equation.of(f_pace, maximum(1, f_stage * Min(1, B / (pp * one_seq))), *PACE)
weights_pace = Equation.of(
    f_pace_w, maximum(1, f_read * Min(1, B / (pp * one_seq))), *PACE, "the last stage has the head"
)

stage_coverage = Equation(
    "expected share of the experts that one microbatch, or a half of it, reads",
    coverage,
    popular_share(k_experts, n_experts, b_slice * m_pos / (n_half * one_token)),
    *IN_DEMAND,
)

weights_read = Equation.of(
    V_w,
    S_fixed / tp + S_routed * coverage * u_ep / (ep * xtp),
    "attention, dense and shared weights are sharded over tp and copied over dp",
    "the fullest expert rank sets the pace",
    source=SHARDING,
)

cache_read = Equation.of(
    V_kv_dec,
    b_rank
    * ((b_kv * L_ctx + R_bnd) / dcp + (1 - 1 / dcp) * (x_kv * b_kv * L_ctx + x_bnd * R_bnd))
    * f_heads
    / cp
    + b_own * 2 * R_state / tp,
    "each sequence reads its whole cache, and reads and writes its recurrent state",
    "a KV head is not split: tp beyond the number of KV heads copies the cache",
    "the tokens of a context lie in turn on its cp parts, or on dcp ranks of tp, each with a "
    "whole copy of index keys and windows",
    source=pope_2022.at("section 3.3"),
)

weight_read_time = Equation.of(
    T_w_dec,
    f_pace_w * n_half * V_w / (W_chip * e_w),
    "weights are read once per microbatch, and again for its other half where halves overlap",
    source=MEMORY_TIME,
)

cache_read_time = Equation.of(
    T_kv_dec,
    f_pace * V_kv_dec / (W_chip * e_kv),
    "attention reads at its own efficiency",
    source=MEMORY_TIME,
)

dense_time = Equation(
    "multiplying with the weights every token passes",
    T_dense,
    c_fwd * b_own * m_pos * (N_attn / F_attn + N_ffn / F_ffn + N_head / F_head) / tp,
    assumes=("each operator class runs at the peak of its own dtype",),
    source=lecture_equations.at("equation 2"),
)

_FULLEST = x_ep * (1 + c_imb * sqrt(n_half / b_slice))  # experts' tokens over the mean
expert_time = Equation.of(
    T_experts,
    c_fwd * b_slice * m_pos * N_exp * _FULLEST / (F_routed * ep * xtp),
    "a rank with more experts than the mean gets more tokens in proportion, and whatever "
    "skewed routing adds: x_ep",
    "the fullest of ep ranks is about 1 + sqrt(2 ln ep / (tokens per rank)) times the mean",
)

attention_time = Equation.of(
    T_sdpa,
    m_pos
    * (b_rank * ((a_kv + a_idx * r_idx) * L_ctx + A_bnd) / cp + b_own * A_state)
    / (F_sdpa * tp),
    "query heads are sharded over tp",
    WHOLE_INDEXER,
    source=pope_2022.at("section 2.1"),
)

math_time = Equation(
    "arithmetic of one step",
    T_math,
    f_pace_w * (T_dense + T_experts) / e_c + f_pace * T_sdpa / e_at,
    assumes=("one efficiency for all products with weights, another for attention",),
)

all_reduce_bytes = Equation.of(
    V_ar, b_own * m_pos * h_act * b_act, "one hidden vector per position", source=SHARDING
)

all_reduce_time = Equation(
    "all-reduces of tensor parallelism",
    T_ar,
    f_pace * n_ar * in_turn(n_half, t_ar, a_ar, V_ar, w_ar, g_ar, e_ar),
    assumes=(
        "one after attention, one after a feed-forward part that tp shards",
        "a collective by itself, slowed by the engine around it: e_ar, and t_ar on top",
    ),
    source=SHARDING,
)

exchange_bytes = Equation.of(
    V_x,
    b_slice * m_pos * k_copies * f_skew * h_exp * (b_disp + b_comb) / (tp * dp),
    "the fullest chip gets f_skew times its even share",
    "a copy that stays on the chip is counted",
    source=EXPERTS,
)

all_to_all_time = Equation.of(
    T_a2a,
    f_pace * n_a2a * in_turn(n_half, t_a2a, a_x, V_x, w_x, g_x, e_a2a),
    "both ways one after the other, each a collective by itself",
    "slowed by the engine around it: e_a2a, and t_a2a on top",
    source=EXPERTS,
)

hop_time = Equation.of(
    T_hop,
    n_hop * (t_hop + b_own * m_pos * h_act * b_act / r_hop),
    "one hop between neighbouring stages, the token's way back not counted",
    source=lecture_equations.at("pipeline parallelism"),
)

overhead_time = Equation(
    "time that no roof explains",
    T_over,
    f_pace
    * (1 + x_eager * (n_half - 1))
    * ((n_blocks + x_idx * n_idx) * t_layer + n_moe * t_moe + n_ep * t_ep)
    + b_rank * t_seq
    + t_step,
    assumes=(
        "launches and normalisations per layer, sampling per sequence, the rest per step",
        "the second launch of every kernel for an overlapped half is hidden by a captured graph",
    ),
)

decode_work = Equation.of(T_work, T_w_dec + T_kv_dec + T_math + T_over, SUM)

decode_sending = Equation.of(T_sent, T_ar + T_a2a, "collectives follow one another")

exposed_sending = Equation.of(
    T_exposed, T_sent + T_cp - x_hid * Min(T_work, T_sent), "beyond the work and hops of a step"
)

decode_time = Equation.of(
    T_dec,
    overlapped_time(T_work, T_sent) + T_cp + T_hop + T_spec,
    SUM,
    "two half-batches hide a share of the shorter of work and sending",
    "no engine hides what the parts of a context answer each other",
)

DECODE = (
    *equations_in_module(globals()),
    context_parallel.own_sequences,
    context_parallel.slice_sequences,
    context_parallel.partial_bytes,
    context_parallel.partial_time,
    collectives.hop_latency,
    *speculation.DRAFTING,
)
# Equations shared with the roofline bound: sequence counts, and terms that overlap leaves equal.
DECODE_SHARED = (
    rank_sequences,
    stage_sequences,
    context_parallel.own_sequences,
    context_parallel.slice_sequences,
    cache_read,
    dense_time,
    attention_time,
    all_reduce_bytes,
)
