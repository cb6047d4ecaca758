"""Single changes of a question with which something fits: a choice left free, or more chips."""

from __future__ import annotations

from collections.abc import Iterator

from planner.problems.training.plan import Repair
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.resolve import resolve_training
from planner.problems.training.search import RatedLayout, search_layouts
from planner.text.errors import InputError

DOUBLINGS = 6  # of the chips that are tried


def repairs(question: TrainingQuestion) -> tuple[Repair, ...]:
    """The changes that make some layout fit and keep the limits, each by itself."""
    changes = [
        Repair(change, best.choice, best.step)
        for change, varied in _without_a_choice(question)
        if (best := _best(varied)) is not None
    ]
    for _ in range(DOUBLINGS):
        more = max(varied_chips(question)) * 2
        question = question.model_copy(update={"chips": (more,)})
        best = _best(question)
        if best is not None:
            return (*changes, Repair(f"chips={more}", best.choice, best.step))
    return tuple(changes)


def varied_chips(question: TrainingQuestion) -> tuple[int, ...]:
    """The numbers of chips that may be paid."""
    return tuple(question.chips)


def _without_a_choice(question: TrainingQuestion) -> Iterator[tuple[str, TrainingQuestion]]:
    """The question with each of its choices left free, the others as they are."""
    for name, value in question.choose:
        if value is not None:
            free = question.choose.model_copy(update={name: None})
            yield f"choose.{name} left free", question.model_copy(update={"choose": free})


def _best(question: TrainingQuestion) -> RatedLayout | None:
    """The best layout of a question; None where nothing fits or it is refused."""
    try:
        ranked = search_layouts(resolve_training(question)).ranked(1)
    except InputError:
        return None
    return ranked[0] if ranked else None
