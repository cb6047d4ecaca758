"""What a reader of a serving plan must know beside its numbers, as notes in one order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.problems.serving.advice.advice_text import (
    caches_text,
    cheaper_text,
    promise_text,
    simplest_text,
    size_texts,
    sure_text,
    uncounted_queue,
)
from planner.problems.serving.point import layout_text
from planner.problems.serving.task.plan_limits import title_of
from planner.protocol.note import Note, ordered
from planner.protocol.plan import outside_text
from planner.protocol.promise import LIKELY
from planner.text.wording import excess, percent

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingAnswer


def plan_notes(answer: ServingAnswer) -> tuple[Note, ...]:
    """The notes of an answer, the gravest first."""
    return ordered((*_of_promises(answer), *_of_current(answer), *_of_plan(answer)))


def _of_promises(answer: ServingAnswer) -> Iterator[Note]:
    """Promises that are more likely broken than kept."""
    for promise in answer.promises:
        if promise.chance is not None and promise.chance < LIKELY:
            yield Note("broken", "promise", promise_text(promise), "promises")


def _of_current(answer: ServingAnswer) -> Iterator[Note]:
    """The user's own layout: what it breaks, and what it costs beside the plan."""
    current, plan = answer.current, answer.plan
    if current is None:
        return
    broken = (f"{title_of(x.promise)} by {excess(x.short_by)}" for x in current.breaks)
    if words := ", ".join(broken):
        text = f"your layout {layout_text(current)} misses {words}"
        yield Note("broken", "current", text, "current")
    if plan is not None and current.usd_per_mtok > plan.usd_per_mtok:
        dearer = percent(current.usd_per_mtok / plan.usd_per_mtok - 1)
        text = f"your layout {layout_text(current)} costs {dearer} more per token than the plan"
        yield Note("tip", "current", text, "current")


def _of_plan(answer: ServingAnswer) -> Iterator[Note]:
    """What was never measured, what is left out or assumed, and what else there is to choose."""
    plan, band = answer.plan, answer.band
    if text := outside_text(answer.outside):
        if plan is not None and band is not None and band.usd_per_mtok:
            low, high = (end / plan.usd_per_mtok for end in band.usd_per_mtok)
            text += f"; price expected between {low:.2f} and {high:.2f} of this"
        yield Note("extrapolated", "outside", text, "outside")
    if plan is not None and (text := uncounted_queue(plan, answer.scenario["promises"])):
        yield Note("left out", "queue", text, "plan.unqueued")
    for warning in answer.provenance.warnings:
        yield Note("assumed", "warning", warning, "provenance.warnings")
    for text in size_texts(answer):
        yield Note("tip", "sizes", text, "sizes")
    tips = {
        "sure": sure_text,
        "simplest": simplest_text,
        "cheaper_weights": cheaper_text,
        "cheaper_caches": caches_text,
    }
    for code, words in tips.items():
        if text := words(answer):
            yield Note("tip", code, text, code)
