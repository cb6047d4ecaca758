"""A session on one device: every work of the suite is run, timed and checked.

A wrong result is refused and named, and its time is not kept: a chip that computes wrongly fast is
not fast. An interrupted session keeps what it has.

Which chip of the catalogue a reported device name is.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from planner.benchmark.checks import fault
from planner.benchmark.device import FEWEST, Device, Facts, Unsupported, summary, timed
from planner.benchmark.kernels import (
    AllReduce,
    Attention,
    KernelLaunch,
    Product,
    Stream,
    Timed,
    Work,
)
from planner.benchmark.record import Head, Measured, MeasuredChip, SkippedWork
from planner.benchmark.suite import message_sizes, suite
from planner.catalogue.chips import chip

WORD = re.compile(r"[A-Z0-9]+")
ROOM = 0.2  # between the memory that is listed and what a driver reports


def recognised(name: str, capacity: float) -> str:
    """Catalogue name of a device by its reported name and memory [byte], "" where none is sure.

    Names of kin are no match: a laptop's or a quarter of a chip is another chip.
    """
    words = set(WORD.findall(name.upper()))
    for row in _names():
        if words.issuperset(row["words"]) and words.isdisjoint(row.get("without", ())):
            candidate = chip(row["chip"])
            if abs(capacity / candidate.memory - 1) <= ROOM:
                return candidate.name
    return ""


@cache
def _names() -> tuple[dict[str, Any], ...]:
    text = files("planner.benchmark").joinpath("names.toml").read_text(encoding="utf-8")
    names = tomllib.loads(text)
    part = names["part"]
    return tuple({**row, "without": [*part, *row.get("without", [])]} for row in names["name"])


FREE = 0.8  # of free memory is used at the most
LONGEST = 2.0  # [s] for one work
REPEATS = 20  # readings of an all-reduce


@dataclass(frozen=True)
class ChipTimes:
    """What was measured, and whether the user stopped it."""

    chip: MeasuredChip
    interrupted: bool


@dataclass
class _SessionNotes:
    """What is gathered on the way."""

    done: list[Measured[Any]] = field(default_factory=list)
    refused: list[SkippedWork] = field(default_factory=list)
    left_out: list[SkippedWork] = field(default_factory=list)
    complete: bool = False


def measure(
    device: Device,
    *,
    quick: bool = False,
    budget: float = 120.0,
    today: date | None = None,
    say: Callable[[str], None] = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> ChipTimes:
    """Time the suite on a device within about `budget` seconds.

    `say` is given one line for each work as it begins, and for each that is refused.
    """
    notes, start = _SessionNotes(), clock()
    facts = _sound_facts(device.facts)
    interrupted = False
    try:
        _measured(device, facts, notes, quick, budget, say, lambda: clock() - start)
    except KeyboardInterrupt:
        interrupted = True
        notes.left_out.append(SkippedWork("the rest", "interrupted"))
    head = Head(
        device=facts.name,
        kind=facts.kind,
        chip=recognised(facts.name, facts.capacity),
        capacity=facts.capacity,
        cache=facts.cache,
        as_of=(today or date.today()).isoformat(),
        complete=notes.complete,
        seconds=round(clock() - start, 1),
        software=dict(facts.software),
    )
    record = MeasuredChip(
        head,
        memory=_of(notes, Stream),
        products=_of(notes, Product),
        attention=_of(notes, Attention),
        launch=_of(notes, KernelLaunch),
        all_reduce=_of(notes, AllReduce),
        refused=tuple(notes.refused),
        left_out=tuple(notes.left_out),
    )
    return ChipTimes(record, interrupted)


def _sound_facts(facts: Facts) -> Facts:
    """The facts with the last on-chip level of the catalogue, where drivers tell a lower one."""
    name = recognised(facts.name, facts.capacity)
    listed = (chip(name).sram or 0.0) if name else 0.0
    return replace(facts, cache=max(facts.cache, int(listed)))


def _measured(
    device: Device,
    facts: Facts,
    notes: _SessionNotes,
    quick: bool,
    budget: float,
    say: Callable[[str], None],
    spent: Callable[[], float],
) -> None:
    works = suite(facts, quick=quick)
    together = facts.count > 1
    parts = len(works) + together
    share = min(0.5 * budget / parts, LONGEST)
    for at, work in enumerate(works):
        if spent() > budget:
            rest = len(works) - at
            notes.left_out.append(
                SkippedWork(
                    f"the last {rest} of {len(works)} works", f"no time left of {budget:g} s"
                )
            )
            break
        say(f"{at + 1}/{parts} {work}")
        _timed_work(device, work, notes, share, say)
    else:
        notes.complete = True
    if together:
        say(f"{parts}/{parts} all-reduce over {facts.count} devices")
        notes.complete &= _together(device, notes, message_sizes(quick=quick), say)


def _timed_work(
    device: Device, work: Timed, notes: _SessionNotes, share: float, say: Callable[[str], None]
) -> None:
    room = FREE * device.facts.free
    if work.needs > room:
        why = f"needs {work.needs / 1e9:.1f} GB, {room / 1e9:.1f} GB are free for it"
        notes.left_out.append(SkippedWork(str(work), why))
        return
    try:
        ready = device.ready(work)
        try:
            timing = timed(ready, share)
            wrong = fault(work, ready.sample())
        finally:
            ready.close()
    except Unsupported as error:
        notes.left_out.append(SkippedWork(str(work), str(error)))
        return
    _record(Measured(work, timing), wrong, notes, say)


def _together(
    device: Device, notes: _SessionNotes, sizes: Sequence[int], say: Callable[[str], None]
) -> bool:
    """Whether the all-reduce was done to its end."""
    try:
        for reduction in device.all_reduce(sizes, max(REPEATS, FEWEST)):
            wrong = fault(reduction.work, reduction.sample)
            _record(Measured(reduction.work, summary(reduction.seconds)), wrong, notes, say)
    except Unsupported as error:
        notes.left_out.append(SkippedWork("all-reduce", str(error)))
    return True


def _record(
    done: Measured[Any], wrong: str | None, notes: _SessionNotes, say: Callable[[str], None]
) -> None:
    if wrong is None:
        notes.done.append(done)
        return
    notes.refused.append(SkippedWork(str(done.work), wrong))
    say(f"warning: {done.work}: {wrong}; its time is not kept")


def _of(notes: _SessionNotes, kind: type[Work]) -> tuple[Any, ...]:
    return tuple(each for each in notes.done if isinstance(each.work, kind))
