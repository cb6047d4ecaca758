"""Key-value cache: bytes per token of context, and what a price cliff says about them."""

from __future__ import annotations

from formulas.batching import balance_context
from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.roofline import compute_time, kv_time
from formulas.sources import ainslie_2023, deepseek_v2, lecture_notes
from formulas.symbols import (
    F,
    L_ctx,
    L_star,
    N_active,
    W,
    b_el,
    b_kv,
    c_fwd,
    d_head,
    m_pos,
    n_kv,
    n_layers,
    r_kv,
    r_rope,
)

__all__ = [
    "cache_bytes_from_cliff",
    "cliff_by_arithmetic",
    "grouped_cache_bytes",
    "latent_cache_bytes",
]

grouped_cache_bytes = Equation(
    "cache bytes per token, grouped-query attention",
    b_kv,
    2 * n_layers * n_kv * d_head * b_el,
    assumes=("every layer attends to the whole context", "keys and values of equal width"),
    source=ainslie_2023.at("section 2.2"),
    tags=("C39",),
)

latent_cache_bytes = Equation(
    "cache bytes per token, latent attention",
    b_kv,
    n_layers * (r_kv + r_rope) * b_el,
    assumes=("one latent and one positional key per token and layer, shared by all heads",),
    source=deepseek_v2.at("section 2.1.2"),
    tags=("C39",),
)

cliff_by_arithmetic = (
    Derivation(
        "context at which caches take as long as arithmetic",
        source=lecture_notes.at("section 5, context length"),
        tags=("C38", "C40"),
        assumes=("reading the weights is left out: exact only far above the critical batch",),
    )
    .begin(compute_time.rhs, kv_time.rhs, why="the cliff, read as caches against arithmetic")
    .solve(L_ctx, m_pos * N_active * c_fwd * W / (F * b_kv))
    .rewrite(m_pos * L_star, why="in terms of the balance context", where=(balance_context,))
)

cache_bytes_from_cliff = (
    Derivation(
        "cache bytes per token that a price cliff implies",
        source=lecture_notes.at("section 5, context length"),
        tags=("C38",),
        assumes=("reading the weights is left out: exact only far above the critical batch",),
    )
    .begin(compute_time.rhs, kv_time.rhs, why="the cliff, read as caches against arithmetic")
    .solve(b_kv, m_pos * N_active * c_fwd * W / (F * L_ctx))
)
