"""Contexts spread over chips: partial attention in decode, keys and values passed round in prefill.

Each of `cp` parts is a copy of the weights on `tp * dp` chips of its own and holds 1/cp of every
cache, token by token in turn. In decode a part carries its own share of the sequences through the
linear layers, as a rank of `dp` does; for attention their queries go to all parts, and the partial
results come back. In prefill every part computes its share of the new tokens of each chunk, while
keys and values travel round behind the arithmetic of attention. Experts are partitioned over
`tp * dp` chips and copied over the parts.

Or a context is spread inside a tensor-parallel group: of its `tp` ranks `dcp` hold the same heads,
of which tp_a = tp/dcp cuts the rest, and each every dcp-th token. Weights stay cut over all `tp`.
"""

from formulas.algebra.notation import *

own_sequences = Equation.of(
    b_own,
    ceiling(b_rank / cp),
    "linear layers split the sequences over parts as over ranks",
    source=helix_2025.at("section 2, the FFN phase"),
)

slice_sequences = Equation.of(
    b_slice, ceiling(b_stage / cp), "experts are copied over the parts of a context"
)

state_sequences = Equation.of(
    b_state, ceiling(b_mem / cp), "a state belongs to the part that carries the sequence"
)

partial_bytes = Equation.of(
    V_part,
    b_rank * m_pos * h_part * b_act / tp_a,
    "queries and outputs of all sequences, in the widths in which attention uses them",
    "ranks of dcp gather the queries of all their heads",
    "maxima and sums of the softmax are small beside them",
    source=helix_2025.at("section 2, the attention phase"),
)

partial_time = Equation.of(
    T_cp,
    f_pace
    * n_cp
    * ((n_ask - 1) * n_half * t_ar + in_turn(n_half, t_ar, a_cp, V_part, w_cp, g_cp, e_ar)),
    "queries gathered before attention and partial results exchanged after it, not hidden",
    "collectives by themselves, slowed by the engine around them as an all-reduce is",
    source=helix_2025.at("section 2, the attention phase"),
)

ring_bytes = Equation.of(
    V_ring,
    one_seq
    * (
        (b_store * (n_chunks * L_hit + L_new * (n_chunks + 1) / 2) + n_chunks * R_bnd_mem) * f_heads
        + n_chunks * R_state / tp
    )
    / n_ctx,
    "with each chunk the keys and values of all tokens so far go round, in the cache's dtype",
    "keys and values are passed, not queries: with most of a prompt cached queries are less",
    "what is bounded passes whole with each chunk",
    source=yang_2024.at("section 3, ring pass-KV"),
)

ring_time = Equation.of(
    T_ring,
    n_cp * (n_chunks * a_ring + V_ring / w_ring + g_ring * sqrt(n_chunks * V_ring)) / e_ar_pf,
    "one round per layer and chunk",
    "slowed by the engine as an all-reduce is",
    source=yang_2024.at("section 3, ring pass-KV"),
)

gathered_bytes = Equation.of(
    V_gather,
    one_seq * (1 - x_store) * b_store * f_heads * (L_hit + L_new / 2) / n_ctx,
    "before a chunk its ranks gather what each of them holds of all chunks before it: on average "
    "half of the new tokens",
)

gathering_time = Equation.of(
    T_gather,
    n_gather
    * (n_chunks - 1 + ceiling(x_hit))
    * (a_ring + V_gather / w_ring + g_ring * sqrt(V_gather))
    / e_ar_pf,
    "a prompt's first chunk has nothing before it but what a prefix cache found",
    "before the arithmetic of attention, not behind it",
)

RING = (ring_bytes, ring_time)
GATHERING = (gathered_bytes, gathering_time)
