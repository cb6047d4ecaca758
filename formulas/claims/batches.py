"""Claims C1 to C13: the roofline, what a batch costs, and the batch at which the roofs meet."""

from fractions import Fraction

from formulas.claims.claim import Claim, Worked, named
from formulas.nomenclature.sources import (
    lecture_hardware,
    lecture_notes,
    lecture_player,
    lecture_summary,
)

CLIFF = {"b_kv": Fraction(5000, 3)}  # bytes per token that put the cliff at 200 000 tokens

CLAIMS = (
    Claim(
        "C1",
        "A step takes the longer of its arithmetic and its memory traffic.",
        lecture_notes.at("section 1, first equation"),
        "T >= max(t_compute, t_mem)",
        "Holds as a lower bound that assumes perfect overlap; without overlap the two add up, "
        "which is at most twice as long.",
        equations=("step_time", "step_time_sum", "step_time_attained"),
    ),
    Claim(
        "C2",
        "The arithmetic of a step is batch times active parameters over the rate of the chip.",
        lecture_notes.at("section 1, compute time"),
        "t_compute = B * N_active / FLOPs",
        "Holds if FLOPs counts multiply-accumulates; data sheets count two FLOP for each, so with "
        "their figures it is twice as long, and attention comes on top.",
        equations=("compute_time", "compute_time_attention", "attention_context"),
        note="B*N_active*c_fwd/F with c_fwd = 2 FLOP per parameter and token",
    ),
    Claim(
        "C3",
        "The memory traffic of a step is every weight once and the cache of every sequence.",
        lecture_notes.at("section 1, memory time"),
        "t_mem = (N_total + B * L_ctx * bytes/token) / bandwidth",
        "Lacks the bytes per weight, without which the terms are of different units; with routed "
        "experts a small batch reads only those it visits.",
        equations=("memory_time", "weight_time", "kv_time", "touched_parameters"),
        note="(N_total*b_w + B*L_ctx*b_kv)/W",
    ),
    Claim(
        "C4",
        "No step is shorter than reading the model once, even at batch one.",
        lecture_player.at("ideas, latency floor"),
        "T >= N_total / bandwidth, even at batch 1",
        "Holds for a dense model; a sparse model at batch one reads only its active parameters, "
        "so its floor is lower by the sparsity.",
        equations=("latency_floor", "sparse_latency_floor"),
        worked=(
            Worked("all weights, one chip", "latency_floor", unit="ms"),
            Worked("active weights, one chip", "sparse_latency_floor", unit="ms"),
        ),
    ),
    Claim(
        "C5",
        "Cost per token falls with the batch as a hyperbola; alone, a user costs 1000 times more.",
        lecture_player.at("quotes; notes, section 1, why batch size dominates the cost curve"),
        "1000 times",
        "Holds in order of magnitude: the factor at batch one is the critical batch itself, from "
        "300 for a dense model to thousands for a sparse one.",
        equations=("time_per_sequence", "token_cost", "batch_penalty"),
        lecture={"B": 1},
        worked=(
            Worked("dense", "batch_penalty", inputs={"N_total": 10**11}),
            Worked("sparsity 8", "batch_penalty", says=1000),
        ),
    ),
    Claim(
        "C6",
        "A fast mode at six times the price and 2.5 times the speed is a smaller batch.",
        lecture_notes.at("section 1, fast mode and slow mode"),
        "6 times the price, 2.5 times the speed",
        "Consistent, and then unique: 5/14 of the normal step does not depend on the batch, the "
        "fast batch is 1/15 and no speed exceeds 2.8; so the normal step is not on the arithmetic "
        "floor, where the notes put it. Where coverage falls with the batch the share is larger.",
        equations=("fixed_share", "fast_batch", "fastest_speed", "covered_share", "covered_price"),
        lecture={"s_fast": Fraction(5, 2), "x_price": 6, "w_fix": Fraction(5, 14)},
        worked=(
            Worked("fixed share", "fixed_share"),
            Worked("batch over normal", "fast_batch"),
            Worked("largest speed", "fastest_speed"),
        ),
    ),
    Claim(
        "C7",
        "A slow mode ten times cheaper is impossible, as the normal mode is on the floor.",
        lecture_notes.at("section 1, fast mode and slow mode"),
        "nothing to save",
        "Holds from the critical batch on; at a batch B below it up to B_0/B could be saved, and "
        "an output price five times the input price implies such a batch (C22).",
        equations=("cost_floor", "slow_saving"),
        lecture=CLIFF | {"L_ctx": 0},
        worked=(
            Worked("saving factor at the critical batch", "slow_saving", says=1),
            Worked("at a fifth of it", "slow_saving", inputs={"B": 480}),
        ),
    ),
    Claim(
        "C8",
        "The roofs meet at a batch of 300 times the sparsity.",
        lecture_notes.at("section 1, the optimal batch size: a 300 × sparsity rule"),
        "300 * 8 = 2400",
        "Holds for short contexts, one byte per weight and a chip of ratio 300.",
        equations=("critical_batch", "rule_of_thumb"),
        worked=(
            Worked("dense", "critical_batch", says=300, inputs={"N_total": 10**11}),
            Worked("sparsity 8", "critical_batch", says=2400),
        ),
    ),
    Claim(
        "C9",
        "Arithmetic over bandwidth is about 300 on every chip from A100 to Rubin.",
        lecture_notes.at("section 1, the dimensionless hardware ratio"),
        "300 on A100, H100, B100, Rubin",
        "Holds for H100, B200 and GB200; the ratio is a figure of chip and format: half of 300 on "
        "A100, 400 and more on Rubin and GB300 in FP4. It is computed, not assumed.",
        equations=("hardware_ratio",),
        worked=(Worked("ratio", "hardware_ratio", says=300),),
    ),
    Claim(
        "C10",
        "DeepSeek activates 32 of 256 experts, a sparsity of eight.",
        lecture_notes.at("section 1, the optimal batch size: a 300 × sparsity rule"),
        "32 of 256, sparsity 8",
        "Does not hold for DeepSeek-V3: 8 of 256 routed experts, and total over active parameters "
        "near 18; another account of the lecture says 6 of 256.",
        equations=("sparsity", "least_coverage"),
        worked=(
            Worked("total over active", "sparsity", says=8),
            Worked(
                "32 of 256",
                "least_coverage",
                says=Fraction(1, 8),
                inputs={"k_experts": 32, "n_experts": 256},
            ),
            Worked(
                "6 of 256",
                "least_coverage",
                says=Fraction(1, 8),
                inputs={"k_experts": 6, "n_experts": 256},
            ),
        ),
    ),
    Claim(
        "C11",
        "Sparsity is total over active in some accounts and active over total in others.",
        lecture_hardware.at("section 2, the optimal batch size formula"),
        "300 * sparsity; 300 / sparsity",
        "A matter of names: the same batch either way. It grows with sparsity, where a summary "
        "says that it scales down; here sigma is total over active.",
        kind="name",
        equations=("sparsity", "active_share", "critical_batch_by_share"),
        worked=(Worked("batch at active share 1/8", "critical_batch_by_share", says=2400),),
    ),
    Claim(
        "C12",
        "In practice batches are two to three times the critical one.",
        lecture_notes.at("section 1, the optimal batch size: a 300 × sparsity rule"),
        "2 to 3 times",
        "Holds where it can be checked: what DeepSeek published of its service in February 2025 "
        "implies such a batch.",
        kind="data",
        equations=("batch_from_traffic", "batch_over_critical"),
    ),
    Claim(
        "C13",
        "Caches push the critical batch higher.",
        lecture_summary.at("optimal batch size; notes, section 1"),
        "higher",
        "Holds, and more: by 1/(1 - L/L_star), without bound at L_star, beyond which no batch is "
        "arithmetic-bound unless attention does enough arithmetic per cached byte.",
        equations=named(
            "critical_batch_with_kv critical_batch_attention critical_batch_anywhere "
            "balance_context never_context"
        ),
        lecture=CLIFF,
        worked=(
            Worked("at half L_star", "critical_batch_with_kv", inputs={"L_ctx": 100_000}),
            Worked("L_star in tokens", "balance_context"),
        ),
    ),
)
