"""The two kinds of published measurements, and what is expected of each before it is seen.

Runs of whole engines of 2025 and 2026 under load, and steady batches of 2022 to 2024. For each:
a prior of every coefficient, and the families of adjustments that its rows may tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.calibration.hierarchy import Family, Loss
from planner.catalogue.profile import COEFFICIENTS


@dataclass(frozen=True)
class FitSpec:
    """A profile to be: name, date, source, priors {coefficient: (value, width)}, families.

    A width is the standard deviation of the logarithm. Coefficients not named by a table of its
    own are held by it, near the value expected. Where engines differ by years, the shared part is a
    `base` of profiles of one engine and nobody's estimate.
    """

    name: str
    as_of: str
    source: str
    prior: Mapping[str, tuple[float, float]]
    families: tuple[Family, ...]
    base: bool = False
    loss: Loss = field(default_factory=Loss)
    worth: float | None = None


OVERHEADS = ("t_layer", "t_moe", "t_ep", "t_ar", "t_a2a", "t_step", "t_seq")
PROMPTS = ("e_pf", "e_pf_x", "e_pf_a", "e_ar_pf")
PRODUCTS = ("e_pf", "e_pf_x", "e_pf_a")
REDUCTIONS = ("e_ar", "t_ar", "e_ar_pf")
FIRST = ("n_sched", "t_tok", "t_request", "t_pf_moe", "t_pf_chunk")
DECODE = tuple(name for name in COEFFICIENTS if name not in FIRST)

RUNS = FitSpec(
    name="engines-2026",
    as_of="2026-04-22",
    source="ai-dynamo aiconfigurator-core 0.12.0, end-to-end runs of 2025-10 to 2026-04",
    # What the study of published steps found for weights, caches and layers; the floors of NCCL
    # and DeepEP; what prompts reach by operator is wide open.
    prior={
        "e_w": (0.8, 0.12),
        "e_kv": (0.75, 0.2),
        "e_c": (0.7, 0.25),
        # Kernels hide arithmetic behind reading: little of it comes on top.
        "e_at": (0.95, 0.1),
        "e_pf": (0.6, 0.4),
        "e_pf_x": (0.25, 0.7),
        "e_pf_a": (0.6, 0.2),  # FlashAttention-3: up to 740 of 989 TFLOP/s on H100
        "e_ar": (0.75, 0.2),
        "e_ar_pf": (0.5, 0.5),
        "e_a2a": (0.9, 0.1),
        "t_layer": (40e-6, 0.5),
        "t_moe": (40e-6, 0.5),
        "t_ep": (15e-6, 0.5),
        "t_ar": (2e-6, 0.5),
        "t_a2a": (5e-6, 0.3),
        "t_hop": (20e-6, 0.1),
        "t_seq": (3e-6, 0.7),
        "t_step": (0.3e-3, 0.7),
        "t_pf_chunk": (2e-3, 0.5),
        "t_pf_moe": (0.5e-3, 0.7),
        "t_tok": (5e-6, 0.5),
        "n_sched": (4.0, 0.5),
        "t_request": (10e-3, 0.5),
    },
    families=(
        Family(("architecture",), OVERHEADS, 0.3),
        Family(("engine",), OVERHEADS, 0.15),
        Family(("engine",), OVERHEADS, 0.04, monthly=True),
        Family(("engine",), PROMPTS, 0.15),
        Family(("math",), PROMPTS, 0.15),
        Family(("math",), ("e_w",), 0.15),
        Family(("math",), ("t_moe",), 0.15),
        Family(("math",), ("t_pf_moe",), 0.3),
        Family(("architecture", "math"), ("e_w", "t_moe"), 0.15),
        Family(("cache",), ("e_kv",), 0.3),
        Family(("attention",), ("e_kv",), 0.3),
        Family(("engine", "version"), DECODE, 0.12),
        Family(("engine",), ("n_sched",), 0.3),
        Family(("engine",), ("t_pf_moe",), 0.7),
    ),
)

STEADY = FitSpec(
    name="steady-2024",
    as_of="2024-06",
    source="published static batches: TensorRT-LLM 0.9, FasterTransformer, llama.cpp, PaLM on TPU",
    prior={
        "e_w": (0.8, 0.2),
        "e_kv": (0.75, 0.3),
        "e_c": (0.7, 0.3),
        "e_at": (0.6, 0.3),
        "e_pf": (0.6, 0.4),
        "e_pf_x": (0.4, 0.5),
        "e_pf_a": (0.4, 0.5),
        "e_ar": (0.5, 0.5),
        "e_ar_pf": (0.5, 0.5),
        "e_a2a": (0.9, 0.1),
        "t_layer": (80e-6, 0.7),
        "t_moe": (40e-6, 0.5),
        "t_ep": (15e-6, 0.5),
        "t_ar": (5e-6, 0.7),
        "t_a2a": (5e-6, 0.3),
        "t_hop": (20e-6, 0.5),
        "t_seq": (5e-6, 0.7),
        "t_step": (0.3e-3, 0.7),
        "t_pf_chunk": (1e-3, 1.0),
        "t_pf_moe": (0.1e-3, 0.7),
        "t_tok": (0.1e-6, 1.0),
        "n_sched": (4.0, 0.01),
        "t_request": (3e-3, 1.0),
    },
    families=(
        Family(("engine",), ("e_w",), 0.6),
        Family(("engine",), ("e_kv",), 0.6),
        Family(("engine",), ("e_c",), 0.6),
        Family(("engine",), ("e_at",), 3.0),
        Family(("engine",), PRODUCTS, 0.6),
        Family(("engine",), REDUCTIONS, 1.2),
        Family(("engine",), ("t_layer", "t_step", "t_seq", "t_moe"), 0.6),
        Family(("engine",), ("t_request", "t_pf_chunk", "t_tok"), 1.5),
        Family(("engine",), ("t_hop",), 2.2),
        Family(("engine", "architecture"), ("e_at",), 1.0),
        Family(("engine", "architecture"), PRODUCTS, 0.45),
        Family(("engine", "architecture"), ("t_layer", "t_step"), 0.6),
        Family(("engine", "chip"), ("e_w",), 0.4),
        Family(("engine", "model"), ("e_w",), 0.2),
        Family(("engine", "model"), REDUCTIONS, 0.45),
        Family(("model",), ("t_layer", "t_step", "t_moe"), 0.4),
    ),
    base=True,
    # Scores are means of relative errors, and some tables hold rows that no other row explains.
    loss=Loss(0.06, relative=True),
    worth=1.0,
)
