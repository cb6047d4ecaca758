"""A budget, or a whole life, as sections: the question, its numbers, what the cost adds up from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.protocol.output import Output, values_in
from planner.protocol.section import Line, Section

if TYPE_CHECKING:
    from planner.protocol.plan import Plan

LABELS = {
    "cost.total.usd": "cost", "cost.total.flop": "arithmetic", "cost.pretrain.usd": "pre-training",
    "cost.inference.usd": "serving", "n_active": "active parameters", "n_total": "parameters",
    "tokens.pretrain": "pre-training data", "tokens.rl": "RL data",
    "over_training": "over-trained, times", "tokens_per_parameter": "tokens per parameter",
    "loss": "loss", "usd_per_mtok": "price of serving",
}  # fmt: skip
FIRST = ("cost.total.usd", "n_active", "tokens.pretrain", "loss")  # of the headline
PHASES = {"pretrain": "pre-training", "rl": "RL", "inference": "serving"}
# Where the band of an output stands, and its bound.
BANDS = {"cost.total.usd": "cost", "tokens.pretrain": "pretrain"}
BOUNDS = {"cost.total.usd": "usd"}

COLUMNS: Mapping[str, str] = {
    "n_active": "param",
    "n_total": "param",
    "tokens_per_parameter": "token/param",
    **{f"tokens.{phase}": "token" for phase in PHASES},
    **{
        f"cost.{phase}.{name}": unit
        for phase in (*PHASES, "total")
        for name, unit in (
            ("usd", "USD"),
            ("flop", "flop"),
            ("flop_paid", "flop"),
            ("chip_hours", "chip*hour"),
        )
    },
}


def sections(title: str, outputs: Sequence[Output], plan: Plan[Any]) -> tuple[Section, ...]:
    """The answer as sections under the question; of an infeasible one only what was asked."""
    document = plan.document
    chosen = document["plan"]
    if chosen is None:
        return (Section(title, ()),)
    return (Section(title, tuple(_outputs(outputs, document))), *_cost(chosen), *_next(document))


def _outputs(outputs: Sequence[Output], document: Mapping[str, Any]) -> Iterator[Line]:
    """Every number with its range and its bound, the headline's first."""
    band, bound = document["band"] or {}, document["bound"] or {}
    values = values_in(outputs, document["plan"])
    units = {output.name: output.unit for output in outputs}
    for name in (*FIRST, *(name for name in units if name not in FIRST)):
        if values.get(name):
            ends = band.get(BANDS.get(name, name))
            least = bound.get(BOUNDS.get(name, name))
            yield Line(
                LABELS[name], values[name], units[name], "", tuple(ends) if ends else None, least
            )


def _cost(chosen: Mapping[str, Any]) -> Iterator[Section]:
    """What the phases cost."""
    costs = {PHASES[name]: spent for name, spent in chosen["cost"].items() if name in PHASES}
    key, unit = ("usd", "USD") if any(c["usd"] for c in costs.values()) else ("flop", "flop")
    lines = tuple(Line(name, spent[key], unit) for name, spent in costs.items())
    yield Section("what it costs", lines, adds_up=True)


def _next(document: Mapping[str, Any]) -> Iterator[Section]:
    """The best of other choices."""
    lines = tuple(
        Line(
            f"sparsity {other['sparsity']:g}" if other["sparsity"] > 1 else "dense",
            other["n_active"],
            "param",
            f"on {other['tokens']['pretrain']:.3g} tokens",
        )
        for other in document["alternatives"]
    )
    if lines:
        yield Section("next best, of other choices", lines)
