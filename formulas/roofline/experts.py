"""Mixture of experts: which share of the weights a step reads, and how few it can read."""

from formulas.algebra.notation import *
from formulas.roofline.roofline import compute_time

UNIFORM = "each position picks its experts independently and uniformly"

sparsity = Equation.of(
    sigma,
    N_total / N_active,
    "parameters, not bytes: formats may differ between experts and the rest",
    source=lecture_notes.at("section 1, the optimal batch size"),
)

total_parameters = Equation(
    "parameters of a model with routed experts",
    N_total,
    N_dense + N_routed,
    assumes=("every parameter is either passed by all tokens or belongs to a routed expert",),
)

active_parameters = Equation.of(
    N_active,
    N_dense + N_routed * k_experts / n_experts,
    "experts of equal size",
    source=shazeer_2017.at("section 2"),
)

expert_coverage = Equation(
    "expected share of the experts read in a step",
    coverage,
    1 - (1 - k_experts / n_experts) ** (B * m_pos),
    assumes=(
        UNIFORM,
        "the largest share among routings that draw every position from one distribution; "
        "positions that avoid each other's experts read more (see k_most)",
        when(k_experts <= n_experts),
    ),
    source=derived,
)

coverage_concavity = derive(
    "how fast the slope of coverage falls with the probability of a pick",
    begin(
        k_bend,
        -diff(1 - (1 - q_pick) ** n_pos, q_pick, 2),
        why="minus the second derivative of the probability that an expert is read",
    ),
    rewrite(
        n_pos * (n_pos - 1) * (1 - q_pick) ** (n_pos - 2),
        why="never negative from one position on, as no probability exceeds one",
    ),
    assumes=(
        "all positions pick independently from one distribution over the experts",
        "a positive bend is concavity in each expert's probability; their sum is k_experts, so "
        "the mean over the experts is largest where all are k_experts/n_experts (Jensen)",
    ),
)

most_coverage = Equation.of(
    k_most,
    minimum(1, B * m_pos * k_experts / (n_experts * one_position)),
    "positions avoid each other's experts as long as any is left",
    source=derived,
)

least_coverage = Equation.of(
    k_least,
    k_experts / n_experts,
    "all positions of the step pick the same experts",
    source=derived,
)

touched_parameters = Equation.of(
    N_touched,
    N_dense + N_routed * coverage,
    "an expert that no position picked is not read",
    source=derived,
    where=(expert_coverage,),
)

full_coverage = derive(
    "parameters read in one step at large batch",
    begin(touched_parameters),
    substitute(expert_coverage),
    limit(B, oo, N_dense + N_routed, why="every expert is picked by some position"),
)

sparse_latency_floor = derive(
    "least time of one step of a sparse model",
    begin(T_floor, N_touched * b_w / W, why="every touched weight is read once"),
    substitute(touched_parameters),
    substitute(
        Equation("coverage of one position", coverage, k_least),
        why="the coverage of a single position is the least there is",
    ),
    substitute(least_coverage),
    rewrite(
        N_active * b_w / W,
        why="dense weights and the picked experts are the active parameters",
        where=(active_parameters,),
    ),
    source=lecture_player.at("ideas, latency floor"),
    assumes=("one position: only the experts it picks are read",),
)

sparse_batch_penalty = derive(
    "cost of a sequence of a sparse model over its arithmetic floor",
    begin(
        x_batch,
        (N_touched * b_w / W + B * L_ctx * b_kv / W) / compute_time.rhs,
        why="memory over arithmetic, of the weights only what is touched",
        of=(compute_time,),
    ),
    drop(
        L_ctx * b_kv * F / (W * m_pos * N_active * c_fwd),
        beside=N_touched * b_w * F / (W * B * m_pos * N_active * c_fwd),
        why="short context: cache reads are small beside weight reads",
    ),
    substitute(touched_parameters),
    source=lecture_notes.at("section 1, why batch size dominates the cost curve"),
    assumes=("the step is bound by reading weights", UNIFORM),
    where=(expert_coverage,),
)
