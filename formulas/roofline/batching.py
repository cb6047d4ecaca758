"""At which batch arithmetic and memory take equal time, and what a batch costs."""

from formulas.algebra.notation import *
from formulas.roofline.roofline import (
    compute_time,
    compute_time_attention,
    memory_time,
    time_per_sequence,
)

IDLE = "neither roof is idle"
EVERY_CONTEXT = "where 1/L_a >= 1/(L_star*m_pos) every context has a critical batch"
SHORT_CONTEXT = drop(
    B * L_ctx * b_kv / W,
    beside=N_total * b_w / W,
    why="short context: cache reads are small beside weight reads",
)

short_context_batch = Equation.of(
    B_0,
    F * b_w * N_total / (W * c_fwd * N_active),
    "each weight is read once per step, whatever the batch",
    source=lecture_notes.at("section 1, the optimal batch size"),
)

balance_context = Equation.of(
    L_star,
    N_active * c_fwd * W / (F * b_kv),
    "attention is small beside the weights",
    source=lecture_notes.at("section 5, context length"),
)

attention_context = Equation.of(
    L_a, N_active * c_fwd / a_kv, "every attention layer reads the whole context", source=derived
)

critical_batch = derive(
    "batch at which the two roofs meet",
    begin(compute_time, memory_time, why=IDLE),
    SHORT_CONTEXT,
    solve(B, (N_total / N_active) * (b_w / (c_fwd * m_pos)) * (F / W), named=B_crit),
    source=lecture_hardware.at("section 2, the optimal batch size formula"),
)

critical_batch_with_kv = derive(
    "batch at which the two roofs meet, caches included",
    begin(compute_time, memory_time, why=IDLE),
    solve(B, N_total * b_w / W / (m_pos * N_active * c_fwd / F - L_ctx * b_kv / W), named=B_crit),
    rewrite(
        B_0 / m_pos / (1 - L_ctx / (m_pos * L_star)),
        why="in terms of the critical batch and the balance context",
        where=(short_context_batch, balance_context),
    ),
    assumes=(when(L_ctx < L_star * m_pos, why="from there on no batch is arithmetic-bound"),),
    where=(balance_context,),
)

critical_batch_attention = derive(
    "batch at which the two roofs meet, caches and attention included",
    begin(compute_time_attention, memory_time, why=IDLE),
    solve(
        B,
        N_total * b_w / W / (m_pos * (N_active * c_fwd + L_ctx * a_kv) / F - L_ctx * b_kv / W),
        named=B_crit,
    ),
    rewrite(
        B_0 / m_pos / (1 + L_ctx / L_a - L_ctx / (m_pos * L_star)),
        why="in terms of the critical batch and the two contexts",
        where=(short_context_batch, balance_context, attention_context),
    ),
    assumes=(
        when(
            1 + L_ctx / L_a > L_ctx / (L_star * m_pos), why="beyond it no batch is arithmetic-bound"
        ),
        EVERY_CONTEXT,
    ),
    where=(balance_context, attention_context),
)

critical_batch_anywhere = Equation(
    "batch at which the two roofs meet, unbounded where they do not",
    B_crit,
    Piecewise(
        (critical_batch_attention.rhs, 1 + L_ctx / L_a > L_ctx / (m_pos * L_star)), (oo, True)
    ),
    assumes=(EVERY_CONTEXT,),
    source=derived,
    where=(short_context_batch, balance_context, attention_context),
)

never_context = derive(
    "context beyond which no batch is arithmetic-bound",
    begin(
        compute_time_attention.rhs / B,
        L_ctx * b_kv / W,
        why="one more sequence adds as much arithmetic as cache reading",
        of=(compute_time_attention,),
    ),
    solve(L_ctx, m_pos * N_active * c_fwd / F / (b_kv / W - m_pos * a_kv / F), named=L_never),
    rewrite(
        1 / (1 / (m_pos * L_star) - 1 / L_a),
        why="in terms of the two contexts",
        where=(balance_context, attention_context),
    ),
    assumes=(when(1 / L_a < 1 / (L_star * m_pos)),),
    where=(balance_context, attention_context),
)

cliff_context = derive(
    "context at which a step turns from arithmetic to memory",
    begin(compute_time, memory_time, why=IDLE),
    solve(L_ctx, (B * m_pos * N_active * c_fwd * W / F - N_total * b_w) / (B * b_kv), named=L_kink),
    rewrite(
        m_pos * L_star * (1 - B_0 / (B * m_pos)),
        why="both terms of memory kept: neither reading of the cliff alone",
        where=(short_context_batch, balance_context),
    ),
    assumes=(when(B * m_pos > B_0, why="below it every context is memory-bound"),),
    where=(short_context_batch,),
)

cliff_readings = derive(
    "batch at which both readings of the cliff name the same context",
    begin(
        N_total * b_w / (B * b_kv),
        m_pos * N_active * c_fwd * W / (F * b_kv),
        why="caches take as long as the weights; caches take as long as the arithmetic",
    ),
    solve(B, F * N_total * b_w / (W * m_pos * N_active * c_fwd), named=B_crit),
    rewrite(
        B_0 / m_pos,
        why="the two coincide at the critical batch and nowhere else",
        where=(short_context_batch,),
    ),
    source=lecture_notes.at("section 5, context length"),
)

cost_floor = derive(
    "time of a step per sequence, however large the batch",
    begin(time_per_sequence),
    limit(
        B,
        oo,
        maximum(m_pos * N_active * c_fwd / F, L_ctx * b_kv / W),
        why="weights are shared by ever more sequences; arithmetic and caches are not",
    ),
    source=lecture_notes.at("section 1, fast mode and slow mode"),
)

batch_penalty = derive(
    "cost of a sequence over its arithmetic floor",
    begin(x_batch, T_mem / T_comp, why="memory over arithmetic"),
    substitute(memory_time),
    substitute(compute_time),
    drop(
        L_ctx * b_kv * F / (W * m_pos * N_active * c_fwd),
        beside=N_total * b_w * F / (W * B * m_pos * N_active * c_fwd),
        why="short context: cache reads are small beside weight reads",
    ),
    rewrite(
        B_0 / (B * m_pos),
        why="one sequence costs as many times its floor as the critical batch is large",
        where=(short_context_batch,),
    ),
    source=lecture_notes.at("section 1, why batch size dominates the cost curve"),
    assumes=(when(B * m_pos <= B_0, why="the step is bound by reading weights"),),
)
