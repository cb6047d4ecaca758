"""Key-value cache: its bytes, what a price cliff says about them, and what sharing saves.

Memory: what lies on a chip, what pipelining divides, and how much context fits.
"""

from formulas.algebra.notation import *
from formulas.roofline.batching import balance_context, short_context_batch
from formulas.roofline.roofline import compute_time, kv_time, memory_time, weight_time

memory_used = Equation.of(
    M_used,
    N_total * b_w + B * L_ctx * b_kv,
    "every weight is held once",
    "activations are small",
    source=lecture_notes.at("section 3, the microbatch math"),
)

memory_per_chip = Equation(
    "bytes held by one chip",
    M_chip,
    M_used / n_chips,
    assumes=("weights and caches divide evenly over all chips",),
    source=lecture_notes.at("section 3, the microbatch math"),
    where=(memory_used,),
)

chips_of_pipeline = Equation(
    "chips of a pipeline", n_chips, n_domain * n_stages, assumes=("one scale-up domain per stage",)
)

batch_in_flight = Equation(
    "sequences in flight in a full pipeline",
    B,
    n_stages * B_micro,
    assumes=("as many microbatches in flight as stages: no more, no fewer",),
    source=lecture_notes.at("section 3, the microbatch math"),
)

pipeline_memory = derive(
    "bytes held by one chip of a pipeline",
    begin(memory_per_chip),
    substitute(memory_used),
    substitute(chips_of_pipeline),
    substitute(batch_in_flight, why="a full pipeline"),
    rewrite(
        N_total * b_w / (n_domain * n_stages) + B_micro * L_ctx * b_kv / n_domain,
        why="stages divide the weights; they cancel from the caches",
    ),
    source=lecture_notes.at("section 3, the microbatch math"),
    assumes=batch_in_flight.assumes,
)

longest_context = derive(
    "longest context that fits",
    begin(M, memory_used, why="weights and caches fill the memory"),
    solve(L_ctx, (M - N_total * b_w) / (B * b_kv), named=L_max),
    source=lecture_equations.at("section on the KV cache"),
)

largest_batch = derive(
    "largest batch that fits",
    begin(M, memory_used, why="weights and caches fill the memory"),
    solve(B, (M - N_total * b_w) / (L_ctx * b_kv), named=B_max),
)

grouped_cache_bytes = Equation(
    "cache bytes per token, grouped-query attention",
    b_kv,
    2 * n_layers * n_kv * d_head * b_el,
    assumes=("every layer attends to the whole context", "keys and values of equal width"),
    source=ainslie_2023.at("section 2.2"),
)

latent_cache_bytes = Equation(
    "cache bytes per token, latent attention",
    b_kv,
    n_layers * (r_kv + r_rope) * b_el,
    assumes=("one latent and one positional key per token and layer, shared by all heads",),
    source=deepseek_v2.at("section 2.1.2"),
)

cliff_by_arithmetic = derive(
    "context at which caches take as long as arithmetic",
    begin(compute_time, kv_time, why="the cliff, read as caches against arithmetic"),
    solve(L_ctx, m_pos * N_active * c_fwd * W / (F * b_kv)),
    rewrite(m_pos * L_star, why="in terms of the balance context", where=(balance_context,)),
    source=lecture_notes.at("section 5, context length"),
    assumes=("reading the weights is left out: exact only far above the critical batch",),
)

cache_bytes_from_cliff = derive(
    "cache bytes per token that a price cliff implies",
    begin(compute_time, kv_time, why="the cliff, read as caches against arithmetic"),
    solve(b_kv, m_pos * N_active * c_fwd * W / (F * L_ctx)),
    source=lecture_notes.at("section 5, context length"),
    assumes=("reading the weights is left out: exact only far above the critical batch",),
)

cache_bytes_by_weights = derive(
    "cache bytes per token that a price cliff implies, read against the weights",
    begin(weight_time, kv_time, why="the cliff, read as caches against weights"),
    solve(b_kv, N_total * b_w / (B * L_ctx)),
    source=lecture_summary.at("key takeaways, KV cache"),
    assumes=("the cliff is where caches take as long as the weights",),
)

cache_bytes_from_kink = derive(
    "cache bytes per token that a price cliff implies, weights and caches both read",
    begin(compute_time, memory_time, why="the step turns from arithmetic to memory"),
    solve(b_kv, (B * m_pos * N_active * c_fwd * W / F - N_total * b_w) / (B * L_ctx)),
    rewrite(
        m_pos * N_active * c_fwd * W / (F * L_ctx) * (1 - B_0 / (B * m_pos)),
        why="fewer than the cliff alone implies, the nearer the batch is to the critical one",
        where=(short_context_batch,),
    ),
    assumes=(when(B * m_pos > B_0), "the kink lies at the cliff; a cliff may also lie after it"),
    where=(short_context_batch,),
)

cliff_surcharge = derive(
    "time of a step beyond the kink over its time before",
    begin(x_cliff, T_mem / T_comp, why="memory over arithmetic"),
    substitute(memory_time),
    substitute(compute_time),
    rewrite(
        (B_0 / B + L_ctx / L_star) / m_pos,
        why="a straight line in the context: no step, and no factor of its own",
        where=(short_context_batch, balance_context),
    ),
    assumes=(when(L_ctx >= L_kink), when(B * m_pos > B_0)),
)

surcharge_context = derive(
    "context up to which a surcharge covers the step",
    begin(cliff_surcharge),
    solve(L_ctx, L_star * (m_pos * x_cliff - B_0 / B), named=L_cliff),
    assumes=cliff_surcharge.assumes,
    where=(short_context_batch, balance_context),
)

readable_context = derive(
    "longest context whose caches are read in a given time",
    begin(T_kv_max, kv_time, why="reading the caches takes all of the time allowed"),
    solve(L_ctx, T_kv_max * W / (B * b_kv), named=L_read),
    source=lecture_hardware.at("section 6, the long context wall"),
)

readable_over_stored = derive(
    "longest context by bandwidth over longest context by capacity",
    begin(x_walls, L_read / L_max, why="which wall comes first"),
    substitute(readable_context),
    substitute(
        longest_context,
        why="the time allowed, over the time to drain what the weights leave: no model in it",
    ),
    assumes=("capacity binds first where the result exceeds one",),
)

kv_time_per_sequence = derive(
    "time of reading caches, per sequence",
    begin(T_seq, T_kv / B, why="the share of one sequence"),
    substitute(kv_time, why="the batch cancels: nothing is shared out"),
    source=lecture_equations.at("KV cache, the irreducible cost"),
    assumes=("no two sequences share a part of their context",),
)

kv_time_shared = Equation(
    "caches read in one step, a prefix shared by groups",
    T_kv,
    (B * (L_ctx - L_share) + ceiling(B / n_share) * L_share) * b_kv / W,
    assumes=(
        "a shared prefix is read once for its group, and L_share <= L_ctx",
        "all groups of n_share sequences but one are full",
    ),
    source=derived,
)

shared_by_all = derive(
    "time of reading caches per sequence, a prefix shared by all, at large batch",
    begin(
        T_seq,
        ((L_ctx - L_share) + L_share * n_share**-1) * b_kv / W,
        why="one group: the prefix is read once for n_share sequences",
    ),
    limit(n_share, oo, (L_ctx - L_share) * b_kv / W, why="what is shared is amortised as weights"),
    assumes=("every sequence begins with the same L_share tokens",),
)
