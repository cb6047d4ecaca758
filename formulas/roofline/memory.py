"""Memory: what lies on a chip, what pipelining divides, and how much context fits."""

from __future__ import annotations

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.sources import definition, lecture_equations, lecture_notes
from formulas.nomenclature.symbols import (
    B,
    B_max,
    B_micro,
    L_ctx,
    L_max,
    M,
    M_chip,
    M_used,
    N_total,
    b_kv,
    b_w,
    n_chips,
    n_domain,
    n_stages,
)

__all__ = [
    "batch_in_flight",
    "chips_of_pipeline",
    "largest_batch",
    "longest_context",
    "memory_per_chip",
    "memory_used",
    "pipeline_memory",
]

memory_used = Equation(
    "bytes held by one replica",
    M_used,
    N_total * b_w + B * L_ctx * b_kv,
    assumes=("every weight is held once", "activations are small"),
    source=lecture_notes.at("section 3, the microbatch math"),
    tags=("C24", "C28"),
)

memory_per_chip = Equation(
    "bytes held by one chip",
    M_chip,
    M_used / n_chips,
    assumes=("weights and caches divide evenly over all chips",),
    source=lecture_notes.at("section 3, the microbatch math"),
    tags=("C24",),
    where=(memory_used,),
)

chips_of_pipeline = Equation(
    "chips of a pipeline",
    n_chips,
    n_domain * n_stages,
    assumes=("one scale-up domain per stage",),
    source=definition,
)

batch_in_flight = Equation(
    "sequences in flight in a full pipeline",
    B,
    n_stages * B_micro,
    assumes=("as many microbatches in flight as stages: no more, no fewer",),
    source=lecture_notes.at("section 3, the microbatch math"),
    tags=("C25",),
)

pipeline_memory = (
    Derivation(
        "bytes held by one chip of a pipeline",
        source=lecture_notes.at("section 3, the microbatch math"),
        tags=("C24", "C25", "result 8"),
        assumes=batch_in_flight.assumes,
    )
    .begin(memory_per_chip)
    .substitute(memory_used)
    .substitute(chips_of_pipeline)
    .substitute(batch_in_flight, why="a full pipeline")
    .rewrite(
        N_total * b_w / (n_domain * n_stages) + B_micro * L_ctx * b_kv / n_domain,
        why="stages divide the weights; they cancel from the caches",
    )
)

longest_context = (
    Derivation(
        "longest context that fits",
        source=lecture_equations.at("section on the KV cache"),
        tags=("C47",),
    )
    .begin(M, memory_used.rhs, why="weights and caches fill the memory")
    .solve(L_ctx, (M - N_total * b_w) / (B * b_kv), named=L_max)
)

largest_batch = (
    Derivation("largest batch that fits", tags=("C47",))
    .begin(M, memory_used.rhs, why="weights and caches fill the memory")
    .solve(B, (M - N_total * b_w) / (L_ctx * b_kv), named=B_max)
)
