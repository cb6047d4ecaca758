"""The physical column of C1 to C13: real chips and models through the lecture's equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from formulas.claims.claim import Worked
from planner.claims.figure import PhysicalFigure, chip_case, figure_of, model_case, record

V3 = "deepseek-v3"
PUBLISHED = "model as published, weights and caches in fp8"

# Chips and the formats their ratio is quoted in.
RATIOS = (
    ("a100", "bf16"), ("a100", "int8"), ("h100", "bf16"), ("h100", "fp8"), ("h200", "fp8"),
    ("h20", "fp8"), ("b200", "bf16"), ("b200", "fp8"), ("b200", "fp4"), ("gb200", "fp4"),
    ("b300", "fp4"), ("gb300", "fp4"), ("rubin", "bf16"), ("rubin", "fp8"), ("rubin", "fp4"),
)  # fmt: skip
CONTEXTS = (
    "minimax-m2", "qwen3-235b-a22b", "llama-3.1-70b", V3, "kimi-k3", "nemotron-3-ultra-550b-a55b",
    "deepseek-v4-pro",
)  # fmt: skip
EDGES = (("h20", "fp8"), ("h200", "fp8"), ("h100", "fp8"), ("b200", "fp8"), ("rubin", "fp8"))


def arithmetic_of_attention() -> tuple[PhysicalFigure, ...]:
    """C2: contexts at which attention does as much arithmetic as the weights."""
    return tuple(
        figure_of(name, "attention_context", model_case(name) | {"c_fwd": 2.0}, PUBLISHED, "tokens")
        for name in (V3, "llama-3.1-70b")
    )


def touched_weights() -> tuple[PhysicalFigure, ...]:
    """C3: weights that a step of DeepSeek-V3 is expected to read."""
    case = model_case(V3) | {"m_pos": 1.0}
    return tuple(
        figure_of(f"{V3}, batch {batch}, read", "touched_parameters",
                  case | {"B": float(batch)}, PUBLISHED, "billion parameters")
        for batch in (1, 16, 256)
    )  # fmt: skip


def latency_floors() -> tuple[PhysicalFigure, ...]:
    """C4: the floor of DeepSeek-V3 on 8 H200 and on 72 GB200."""
    figures = []
    for chip, count in (("h200", 8), ("gb200", 72)):
        case = chip_case(chip, "fp8", count) | model_case(V3)
        for what, equation in (("all", "latency_floor"), ("active", "sparse_latency_floor")):
            label = f"{V3} on {count} {chip}, {what} weights"
            figures.append(figure_of(label, equation, case, PUBLISHED, "ms"))
    return tuple(figures)


def penalties() -> tuple[PhysicalFigure, ...]:
    """C5: what a user alone costs over the floor, for DeepSeek-V3 on H100."""
    case = chip_case("h100", "fp8") | model_case(V3) | {"B": 1.0}
    return (figure_of(f"{V3} on h100, fp8", "batch_penalty", case, PUBLISHED),)


def covered_menus() -> tuple[PhysicalFigure, ...]:
    """C6: the share that the fast mode's price implies when coverage falls with the batch."""
    prices = {"s_fast": 2.5, "x_price": 6.0, "beta_B": 1 / 15, "m_pos": 1.0}
    return tuple(
        figure_of(f"{V3}, normal batch {batch}, share of routed experts", "covered_share",
                  prices | {"r_cov": _coverage_ratio(prices, batch)}, PUBLISHED)
        for batch in (256, 1024, 2400)
    )  # fmt: skip


def critical_batches() -> tuple[PhysicalFigure, ...]:
    """C8: the critical batch of DeepSeek-V3 at short context."""
    return tuple(
        figure_of(f"{V3} on {name}, fp8", "critical_batch", chip_case(name, "fp8") | model_case(V3),
                  PUBLISHED)
        for name in ("h100", "h200", "b200")
    )  # fmt: skip


def ratios() -> tuple[PhysicalFigure, ...]:
    """C9: arithmetic over bandwidth, by chip and format."""
    return tuple(
        figure_of(
            f"{name}, {fmt}", "hardware_ratio", chip_case(name, fmt), "dense data-sheet peaks"
        )
        for name, fmt in RATIOS
    )


def sparsities() -> tuple[PhysicalFigure, ...]:
    """C10: total over active parameters, and routed experts picked."""
    figures = []
    for name in (V3, "deepseek-v4-flash"):
        case = model_case(name)
        figures.append(figure_of(f"{name}, total over active", "sparsity", case, PUBLISHED))
        figures.append(
            figure_of(f"{name}, share of routed experts", "least_coverage", case, PUBLISHED)
        )
    return tuple(figures)  # fmt: skip


def practice() -> tuple[PhysicalFigure, ...]:
    """C12: DeepSeek's service of February 2025 beside the critical batch of an H800."""
    nodes, rate, speed = record("deepseek-service", "n_nodes", "tokens_per_node", "user_speed")
    case = chip_case("h800", "fp8") | model_case(V3)
    traffic = {"n_nodes": nodes, "X_node": rate, "v_user": speed}
    flight = figure_of(
        "sequences in flight per unit", "batch_from_traffic", traffic, "deepseek-service"
    )
    over = figure_of(
        "over the critical batch",
        "batch_over_critical",
        case | {"B": flight.value or 0.0},
        f"deepseek-service; {PUBLISHED}",
    )
    return flight, over  # fmt: skip


def balance_contexts() -> tuple[PhysicalFigure, ...]:
    """C13: contexts beyond which no batch is arithmetic-bound, with attention counted or not."""
    plain = [
        figure_of(f"{name} on h100, fp8, attention aside", "balance_context",
                  chip_case("h100", "fp8") | model_case(name), PUBLISHED, "tokens")
        for name in CONTEXTS
    ]  # fmt: skip
    return (*plain, *(edge_of_arithmetic(V3, name, fmt) for name, fmt in EDGES))


def edge_of_arithmetic(model: str, name: str, fmt: str) -> PhysicalFigure:
    """Where no batch is arithmetic-bound any more, attention counted; None where there is none."""
    case = chip_case(name, fmt) | model_case(model, fmt)
    what = f"{model} on {name}, {fmt}, attention counted"
    if case["a_kv"] / case["F"] >= case["b_kv"] / case["W"]:
        note = "no such context: attention does more arithmetic than its cache takes to read"
        return PhysicalFigure(what, None, "tokens", "never_context", PUBLISHED, note)
    return figure_of(what, "never_context", case, PUBLISHED, "tokens")


def _coverage_ratio(prices: dict[str, float], batch: int) -> float:
    return Worked("coverage", "coverage_ratio").value(model_case(V3) | prices | {"B": batch})


FIGURES: Mapping[str, Callable[[], tuple[PhysicalFigure, ...]]] = {
    "C2": arithmetic_of_attention,
    "C3": touched_weights,
    "C4": latency_floors,
    "C5": penalties,
    "C6": covered_menus,
    "C8": critical_batches,
    "C9": ratios,
    "C10": sparsities,
    "C12": practice,
    "C13": balance_contexts,
}
