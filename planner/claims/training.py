"""The physical column of C29 to C37: fitted scaling laws and real shapes through the equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from formulas.claims.claim import Worked
from planner.catalogue.scaling_laws import Law, law
from planner.claims.figure import PhysicalFigure, counted, figure_of, model_case

LAWS = (
    "besiroglu-2024", "hoffmann-2022-approach-3", "hoffmann-2022-approach-3-rounded",
    "muennighoff-2023",
)  # fmt: skip
ONES = {"one_param": 1.0, "one_token": 1.0, "c_fwd": 2.0}
SIZE = 1e11  # the lecture's model
TOKENS = 2e14  # and its tokens
SHAPES = ("llama-3.1-70b", "deepseek-v3")
LENGTH = 8192.0  # a choice: tokens of a training sequence


def attention_share() -> tuple[PhysicalFigure, ...]:
    """C30: FLOP of training per parameter and token once attention is counted."""
    figures = []
    for name in SHAPES:
        case = model_case(name, "bf16") | {"c_fwd": 2.0, "x_causal": 0.5, "L_train": LENGTH}
        size = counted(name, "bf16").n_active["no_input_embedding"]
        case |= {"D_pt": 1.0 / size, "a_kv": prompt_attention(name, "bf16")}
        label = f"{name}, sequences of 8192, causal half"
        figures.append(
            figure_of(label, "training_arithmetic_attention", case, "model as published", "FLOP")
        )
    return tuple(figures)


def prompt_attention(name: str, fmt: str) -> float:
    """FLOP per query-key pair in passes over a whole sequence, where latents are expanded."""
    caches = counted(name, fmt).caches
    return float(sum(each.flop_per_pair_prefill for each in caches if each.limit is None))


def tokens_per_parameter() -> tuple[PhysicalFigure, ...]:
    """C35: compute-optimal tokens per parameter of the lecture's size, and what 200T are then."""
    figures = []
    for name, entry in laws():
        case = ONES | entry.values | {"N_active": SIZE, "D_pt": TOKENS}
        ratio = figure_of(f"{name}, tokens per parameter", "optimal_ratio", case, cited(entry))
        case["r_opt"] = Worked("", "optimal_ratio").value(case)
        figures += [
            ratio,
            figure_of(f"{name}, 200T over optimal", "chinchilla_multiple", case, cited(entry)),
        ]
    return tuple(figures)


def equal_pools() -> tuple[PhysicalFigure, ...]:
    """C36: the over-training that three equal pools ask for, by each law."""
    return tuple(
        figure_of(f"three pools, {name}", "equal_pools_overtraining",
                  found.values | {"n_pools": 3.0}, cited(found))
        for name, found in laws()
    )  # fmt: skip


def shift() -> tuple[PhysicalFigure, ...]:
    """C37: how training tokens follow served tokens where two pools are equal."""
    return tuple(
        figure_of(f"percent per percent, {name}", "serving_shift",
                  found.values | {"r_all": 2.0}, cited(found))
        for name, found in laws()[:2]
    )  # fmt: skip


def laws() -> list[tuple[str, Law]]:
    """The laws that have an exponent of the data, with their names."""
    return [(name, law(name)) for name in LAWS]


def cited(law: Law) -> str:
    """The source of a law in one line."""
    return f"{law.source} ({law.as_of})"


FIGURES: Mapping[str, Callable[[], tuple[PhysicalFigure, ...]]] = {
    "C30": attention_share,
    "C35": tokens_per_parameter,
    "C36": equal_pools,
    "C37": shift,
}
