"""How many cached entries a position reads when it does not read them all.

Choosing costs reads too. Two levels of selection read 2*sqrt(k*L) entries at best; an index over
every token keeps the reads linear in the context with a smaller slope, and so does packing. Who
reads less per layer needs more layers until every position depends on every other.
"""

from formulas.algebra.notation import *
from formulas.roofline.batching import balance_context

WALL = "section 5, why context length stalled"
QUALITY = "says nothing of quality: what is not read cannot be used"

block_reads = Equation(
    "entries read, one summary per block and the chosen blocks in full",
    R_sel,
    L_ctx / c_block + k_block * c_block,
    assumes=("a summary is as large as an entry; a fixed number of blocks is chosen", QUALITY),
    source=lecture_notes.at(WALL),
)

block_size = derive(
    "block size that reads the fewest entries",
    begin(block_reads),
    stationary(c_block, "a larger block adds as many entries as it saves summaries"),
    solve(c_block, sqrt(L_ctx / k_block)),
    source=lecture_notes.at(WALL),
    assumes=block_reads.assumes,
)

block_reads_least = derive(
    "fewest entries read with two levels of selection",
    begin(block_reads),
    substitute(block_size, why="the root of the context, if the blocks grow with it"),
    source=lecture_equations.at("KV cache, the context wall"),
    assumes=block_reads.assumes,
)

wide_context = derive(
    "context at which two-level selection reads as long as the arithmetic takes",
    begin(
        m_pos * L_star,
        block_reads_least,
        why="entries read against the balance context of full attention",
    ),
    solve(L_ctx, (m_pos * L_star) ** 2 / (4 * k_block), named=L_wide),
    assumes=(*block_reads.assumes, "far above the critical batch"),
    where=(balance_context,),
)

top_reads = Equation(
    "bytes read, an index of every token and the chosen tokens in full",
    V_sel,
    L_ctx * b_index + k_top * b_kv,
    assumes=(when(k_top <= L_ctx), QUALITY),
    source=deepseek_v32.at("lightning indexer and token selection"),
)

top_share = derive(
    "bytes read with an index over those of full attention",
    begin(x_sel, V_sel / (L_ctx * b_kv), why="relative to reading every entry"),
    substitute(top_reads),
    rewrite(b_index / b_kv + k_top / L_ctx),
    source=deepseek_v32.at("lightning indexer and token selection"),
    assumes=top_reads.assumes,
)

top_slope = derive(
    "bytes read with an index over those of full attention, at long context",
    begin(top_share),
    limit(L_ctx, oo, b_index / b_kv, why="the index is read whole: linear, not the root"),
    assumes=top_reads.assumes,
)

packed_reads = Equation(
    "entries read when several tokens are packed into one",
    R_sel,
    L_ctx / c_pack + L_window,
    assumes=("a window of recent tokens is read one by one", QUALITY),
)

packed_slope = derive(
    "entries read over those of full attention, packed, at long context",
    begin(x_sel, packed_reads.rhs / L_ctx, "relative to reading every entry", (packed_reads,)),
    limit(L_ctx, oo, 1 / c_pack, why="a constant factor: linear, not the root"),
    assumes=packed_reads.assumes,
)

mixing_depth = Equation.of(
    n_depth,
    ceiling(log(n_in) / log(n_fan)),
    "an output depends on at most n_fan times as many inputs after each round: no network needs "
    "fewer, and a butterfly, where powers of n_fan lie between what is read, needs no more",
    "n_fan > 1",
    source=lecture_notes.at("section 6, convergent evolution"),
)

window_depth = Equation(
    "layers of windows until the last position depends on the first",
    n_depth,
    ceiling((n_in - 1) / (n_fan - 1)),
    assumes=("every layer reads the n_fan latest positions, its own among them", "n_fan > 1"),
    source=lecture_notes.at("section 6, convergent evolution"),
)
