"""Errors of predicted memory against engine logs: rooms, tokens, starts.

Nothing is fitted here: coefficients are a table. Those of a term were read where logs print the
term, some in the open rows of this very kind of table; rows kept aside tell what they are worth.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from formulas.memory.cache_room import pool_room
from formulas.numerics.evaluate import scalar
from planner.memory.engine_fit import verdict
from planner.memory.engine_room import engine_groups, engine_room
from planner.memory.engine_table import GIB
from planner.validation.memory_rows import LoggedStart, logged_starts

ROUNDING = 0.005 * GIB  # logs print rooms in hundredths of a GiB
FROM_REQUESTS = (0, 20)  # vLLM since prints requests times their length as its tokens
N_LISTED = 12  # rows furthest off that are listed
HEAD = f"{'':<38}{'rows':>5}{'median':>8}{'p80':>7}{'p95':>7}{'>5%':>5}{'>15%':>5}{'<-15%':>6}"


@dataclass(frozen=True)
class RowError:
    """One row: predicted over logged, less 1; rooms in GiB, tokens in token."""

    line: int
    name: str
    group: str
    predicted: float
    logged: float

    @property
    def error(self) -> float:
        """Relative error: prediction over logged value, minus 1."""
        return self.predicted / self.logged - 1


@dataclass(frozen=True)
class RoomScore:
    """Errors of a class: quantiles of their sizes, and how many rows are further off."""

    group: str
    rows: int
    median: float
    p80: float
    p95: float
    optimistic_5: int
    optimistic_15: int
    pessimistic_15: int

    def __str__(self) -> str:
        return (
            f"  {self.group:<36}{self.rows:>5}{self.median:>8.2%}{self.p80:>7.1%}{self.p95:>7.1%}"
            f"{self.optimistic_5:>5}{self.optimistic_15:>5}{self.pessimistic_15:>6}"
        )


@dataclass(frozen=True)
class MemoryScores:
    """Scores of rooms and tokens by class; verdicts of starts and refusals; unscored rows."""

    rooms: tuple[RoomScore, ...]
    tokens: tuple[RoomScore, ...]
    starts: dict[str, int]
    refusals: dict[str, int]
    furthest: tuple[RowError, ...]
    unscored: tuple[str, ...]

    @property
    def document(self) -> dict[str, object]:
        """Plain data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        verdicts = [
            f"{name}: " + ", ".join(f"{count} {word}" for word, count in counts.items())
            for name, counts in (("Starts", self.starts), ("Refusals", self.refusals))
        ]
        furthest = [
            f"  line {x.line:<5}{x.name:<8}{x.predicted:9.2f}{x.logged:9.2f} GiB{x.error:+8.1%}"
            for x in self.furthest
        ]
        blocks = [
            ["Room for the cache, predicted against logged", HEAD, *map(str, self.rooms)],
            ["Tokens that the logged room gives, against logged", HEAD, *map(str, self.tokens)],
            verdicts,
            ["Furthest off (predicted, logged)", *furthest],
            ["Not scored", *(f"  {text}" for text in self.unscored)],
        ]
        return "\n\n".join("\n".join(block) for block in blocks)


def memory_scores(paths: Sequence[Path]) -> MemoryScores:
    """The scores of tables of starts; raises InputError for a file that is none."""
    starts = [start for path in paths for start in logged_starts(path)]
    scored = [start for start in starts if not start.reason]
    rooms = [row for start in scored for row in _room_errors(start)]
    tokens = [row for start in scored for row in _token_error(start)]
    return MemoryScores(
        _scores(rooms),
        _scores(tokens),
        _verdicts(start for start in scored if not start.refused),
        _verdicts(start for start in scored if start.refused),
        tuple(sorted(rooms, key=lambda x: -abs(x.error))[:N_LISTED]),
        tuple(f"line {x.line} ({x.name}): {x.reason}" for x in starts if x.reason),
    )


def _room_errors(start: LoggedStart) -> Iterator[RowError]:
    """The room against the logged one; of a pool also from the free memory that was printed."""
    if not start.room or start.room < 0:
        return
    logged, place = start.room / GIB, (start.line, start.name)
    room = engine_room(start.model, start.chip, start.engine, start.limits)
    yield RowError(*place, start.group, room.room / GIB, logged)
    if start.free:
        before, after = start.free
        values = {"x_mem": room.share, "M_vis": before, "M_ctx": 0, "M_more": 0, "f_format": 1}
        free = scalar([pool_room], ["M_room"], {**values, "M_weights": before - after})["M_room"]
        yield RowError(*place, "SGLang, from the free memory logged", free / GIB, logged)


def _token_error(start: LoggedStart) -> Iterator[RowError]:
    groups = engine_groups(start.model, start.engine, start.limits)
    if not start.room or start.room < 0 or not start.tokens or not start.model.caches:
        return
    low, high = (_printed(start, start.room + x) for x in (-ROUNDING, ROUNDING))
    group = start.group.split(",")[0] if groups.exact else "no rule"
    nearest = min(max(start.tokens, low), high)
    yield RowError(start.line, start.name, group, nearest, start.tokens)


def _printed(start: LoggedStart, room: float) -> float:
    groups = engine_groups(start.model, start.engine, start.limits)
    by_request = start.engine.rules["meaning"] == "profiled" and start.longest
    if by_request and start.engine.version >= FROM_REQUESTS:
        step = engine_room(start.model, start.chip, start.engine, start.limits).tokens
        return groups.requests(room, start.longest, step) * start.longest
    shared = groups.full + len(groups.windows) + groups.states
    return groups.blocks(room) // shared * groups.tokens


def _verdicts(starts: Iterable[LoggedStart]) -> dict[str, int]:
    counts = {"fits": 0, "probably": 0, "does not fit": 0}
    for start in starts:
        if start.model.caches and start.longest:
            room = engine_room(start.model, start.chip, start.engine, start.limits)
            groups = engine_groups(start.model, start.engine, start.limits)
            counts[verdict(room, groups, start.longest)] += 1
    return counts


def _scores(errors: Sequence[RowError]) -> tuple[RoomScore, ...]:
    names = sorted({row.group for row in errors})
    return tuple(_score(name, [row.error for row in errors if row.group == name]) for name in names)


def _score(group: str, errors: Sequence[float]) -> RoomScore:
    median, p80, p95 = (float(x) for x in np.quantile(np.abs(errors), (0.5, 0.8, 0.95)))
    beyond = (sum(x > 0.05 for x in errors), sum(x > 0.15 for x in errors))
    return RoomScore(group, len(errors), median, p80, p95, *beyond, sum(x < -0.15 for x in errors))
