"""Claims C49 to C51: what can be run backwards, what that trades, and what is only said."""

from __future__ import annotations

from formulas.claims.claim import Claim, Worked
from formulas.nomenclature.sources import lecture_equations, lecture_hardware, lecture_notes

__all__ = ["CLAIMS"]

CLAIMS = (
    Claim(
        "C49",
        "A Feistel round makes any function invertible; RevNets do it with layers.",
        lecture_hardware.at("section 7; notes, section 6"),
        "(x, y + f(x)) in one account, (y, x + f(y)) in another",
        "Holds in both forms, the first if the halves take turns, and exactly only in exact "
        "arithmetic: floating point inverts approximately.",
        equations=("feistel_round", "feistel_inverse", "reversible_layer_first",
                   "reversible_layer_second", "reversible_inverse_first",
                   "reversible_inverse_second"),
        note="z = y + f(x), y = z - f(x); y1 = x1 + F(x2), y2 = x2 + G(y1), undone in reverse",
    ),
    Claim(
        "C50",
        "RevNets spend arithmetic to save memory, the mirror image of a KV cache.",
        lecture_notes.at("section 6, RevNets"),
        "memory no longer grows with the layers; the forward pass is done again",
        "Holds: 8ND for 6ND and one layer's activations for all. Checkpoints every root of the "
        "layers cost slightly less arithmetic and always more memory. Cache and layer stand on "
        "one balance: kept up to the drain time times their arithmetic per byte over the chip's.",
        equations=("reversible_arithmetic", "reversible_overhead", "activations_kept",
                   "activations_reversible", "checkpointed_least_memory",
                   "checkpointed_arithmetic", "checkpointed_over_reversible", "keep_or_compute",
                   "keep_or_compute_drain", "keep_activations"),
        lecture={"N_active": 1, "D_pt": 1, "c_fwd": 2, "n_blocks": 64},
        worked=(
            Worked("FLOP per parameter and token, reversible", "reversible_arithmetic"),
            Worked("over plain training", "reversible_overhead"),
            Worked("with checkpoints, 64 layers", "checkpointed_arithmetic"),
            Worked("their memory over reversible", "checkpointed_over_reversible"),
        ),
    ),
    Claim(
        "C51",
        "GPT-4 had a trillion parameters, Gemini emits hundreds of millions of tokens a second, "
        "frontier models train on 150T tokens.",
        lecture_equations.at("MoE rack layout; notes, sections 1 and 4"),
        "1T parameters; hundreds of millions of tokens per second; 150T tokens",
        "Rumours: no source is given, and nothing here rests on them.",
        kind="rumour",
    ),
)  # fmt: skip
