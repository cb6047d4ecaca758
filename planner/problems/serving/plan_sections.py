"""A serving plan as sections: the question, its numbers, one step, the memory, the next best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.problems.serving.presentation import question
from planner.protocol.output import Output
from planner.protocol.section import Line, Section
from planner.text.wording import formats, laid_out, unused

if TYPE_CHECKING:
    from planner.protocol.plan import Plan

LABELS = {
    "usd_per_mtok": "price", "usd_per_mtok_output": "price of output",
    "usd_per_mtok_input": "price of input", "usd_per_hour": "bill", "ttft": "TTFT", "tpot": "TPOT",
    "e2e": "end to end", "tokens_per_s": "throughput", "tokens_per_s_per_chip": "per chip",
    "tokens_per_s_per_user": "per user", "requests_per_s": "requests",
    "joule_per_token": "energy", "batch": "in flight",
}  # fmt: skip
FIRST = ("usd_per_mtok", "tpot", "ttft", "tokens_per_s")  # of the headline
DRAWN = 3  # next best plans


def sections(outputs: Sequence[Output], plan: Plan[Any]) -> tuple[Section, ...]:
    """The answer as sections; of an infeasible question only what was asked."""
    document = plan.document
    chosen = document["plan"]
    title = " ".join(question(document).split())
    if chosen is None:
        return (Section(title, ()),)
    lines = (*_choice(chosen), *_outputs(outputs, document))
    return (Section(title, lines), *_parts(chosen), *_next_best(document))


def _choice(chosen: Mapping[str, Any]) -> Iterator[Line]:
    """Layouts, chips, formats and the batch in words."""
    if chosen["mode"] == "disaggregated":
        for name in ("prefill", "decode"):
            pool = chosen[name]
            chips = f"{pool['chips']} {pool['chip']}{unused(pool)}"
            yield Line(name, f"{laid_out(pool)} on {chips}, {pool['utilisation']:.0%} busy")
    else:
        yield Line("run", laid_out(chosen))
        yield Line("on", f"{chosen['chips']} {chosen['chip']}{unused(chosen)}")
    yield Line("formats", formats(chosen))
    yield Line("batch", f"{chosen['batch']} sequences in flight")


def _outputs(outputs: Sequence[Output], document: Mapping[str, Any]) -> Iterator[Line]:
    """Every number of the plan with its range and its bound, the headline's first."""
    chosen, band, bound = document["plan"], document["band"] or {}, document["bound"] or {}
    units = {output.name: output.unit for output in outputs}
    for name in (*FIRST, *(name for name in units if name not in FIRST and name != "batch")):
        if chosen.get(name) is not None:
            ends = tuple(band[name]) if band.get(name) else None
            yield Line(LABELS[name], chosen[name], units[name], "", ends, bound.get(name))


def _parts(chosen: Mapping[str, Any]) -> Iterator[Section]:
    """What adds up to a step, and to the memory of a chip."""
    if chosen["time_per_step"]:
        lines = tuple(Line(name, value, "s") for name, value in chosen["time_per_step"].items())
        yield Section("one step", lines, adds_up=True)
    pools = ("prefill", "decode") if chosen["mode"] == "disaggregated" else ("",)
    for name in pools:
        memory = (chosen[name] if name else chosen)["memory_per_chip"]
        lines = tuple(Line(k, v, "byte") for k, v in memory.items() if k != "capacity")
        yield Section(f"memory per chip{f' that {name}s' if name else ''}", lines, adds_up=True)


def _next_best(document: Mapping[str, Any]) -> Iterator[Section]:
    """The next best plans, of other layouts."""
    lines = tuple(
        Line(
            f"{laid_out(other)} on {other['chips']} {other['chip'] or 'chips'}",
            other["usd_per_mtok"],
            "USD per million tokens",
            f"{100 * (other['usd_per_mtok'] / document['plan']['usd_per_mtok'] - 1):+.2g} %",
        )
        for other in document["alternatives"][:DRAWN]
    )
    if lines:
        yield Section("next best, of other layouts", lines)
