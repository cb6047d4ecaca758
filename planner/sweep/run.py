"""A sweep from start to end: checked, computed in stored chunks, assembled."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from time import perf_counter

from planner.protocol.output import CellRow, Columns, by_name, merge_columns, tolist
from planner.protocol.plan import EXTRAPOLATION_LABEL, STRICT
from planner.protocol.problem import get_problem
from planner.scenario.grid import parse_grid
from planner.scenario.loading import Source
from planner.sweep.chunk import OUTSIDE_COLUMN, Chunk, SweepSpec, chunks, validate_sweep
from planner.sweep.formats import Meta
from planner.sweep.table import Memory, SweepParts
from planner.sweep.vectorized import ClosedForm, closed_form
from planner.sweep.workers import in_processes, serially
from planner.text.console import note, progress
from planner.text.errors import InputError, SolverError

CONFIRM_POINTS = 100_000  # points solved one by one that nobody means by mistake
CONFIRM_CLOSED_FORM_POINTS = 20_000_000  # points of a closed form: some gigabytes of table
MAX_POINTS = 10**9
PIECE_ROWS = 1 << 16  # points of a closed form computed at a time


@dataclass(frozen=True)
class Order:
    """A sweep that is sound and not yet begun; `closed` where no point needs a search.

    So many `workers` solve it, or those of the Dask `scheduler`; with `shown` a bar is drawn.
    """

    survey: SweepSpec
    closed: ClosedForm | None
    workers: int = 1
    scheduler: str | None = None
    shown: bool = False

    @property
    def points(self) -> int:
        """Number of points."""
        return self.survey.grid.count

    @property
    def method(self) -> str:
        """Method of the answers: `closed form` or `solver`."""
        return "closed form" if self.closed else "solver"

    @cached_property
    def meta(self) -> Meta:
        """Metadata of the table, for its readers."""
        axes = {column.name: column.unit for column in self.survey.columns}
        problem = get_problem(self.survey.problem)
        answers = {**problem.columns, **problem.more_columns, "elapsed_s": "s"}
        units = {f"plan.{name}" if name in axes else name: unit for name, unit in answers.items()}
        return {
            "version": version("token-planner"),
            "digest": self.survey.digest,
            "problem": self.survey.problem,
            "method": self.method,
            "points": self.points,
            "over": list(axes),
            "units": {name: unit for name, unit in (units | axes).items() if unit},
            "scenario": self.survey.tree.data,
        }


@dataclass(frozen=True)
class Outcome:
    """Result of a sweep: rows by status, rows resumed from an earlier run, seconds of this run.

    `statuses` is None where the whole table was there already.
    """

    points: int
    statuses: Mapping[str, int] | None
    resumed: int
    seconds: float


def prepare_sweep(
    source: Source,
    over: Mapping[str, object] | Sequence[str],
    sets: Sequence[str] = (),
    *,
    yes: bool = False,
    certify: bool = False,
    strict: bool = False,
) -> Order:
    """Validate the scenario and the grid of a sweep; no point is computed yet.

    Raises InputError with every mistake in the scenario and the grid, or if it has more points than
    can be meant; `yes` says that they are.
    """
    grid = parse_grid(over)
    if grid.count > MAX_POINTS:
        count = f"{grid.count:,}" if grid.count < 10**15 else f"{grid.count:.3g}"
        raise InputError(
            f"--over makes {count} points, and a sweep takes at most {MAX_POINTS:,}; give fewer "
            "values"
        )
    looked = validate_sweep(source, sets, grid, certify, strict)
    order = Order(looked, closed_form(looked))
    most = CONFIRM_CLOSED_FORM_POINTS if order.closed else CONFIRM_POINTS
    if order.points > most and not yes:
        cost = "" if order.closed else ", each of which is solved"
        raise InputError(
            f"--over makes {order.points:,} points{cost}; more than {most:,} are computed only "
            "with --yes"
        )
    return order


def run_sweep(order: Order, parts: SweepParts) -> Outcome:
    """Compute the missing points, store them part by part, and assemble the parts.

    Raises SolverError if the disk or the cluster is at fault; what was computed is kept, and the
    message says how to go on; KeyboardInterrupt as it came, with a note that says the same.
    """
    start, resumed = perf_counter(), parts.done
    try:
        compute_missing(order, parts)
        statuses = parts.finish()
    except KeyboardInterrupt:
        note(f"planner: {_how_to_go_on(order, parts)}")
        raise
    except SolverError as error:
        raise SolverError(f"{error}; {_how_to_go_on(order, parts)}") from error
    finally:
        parts.close()
    return Outcome(order.points, statuses, resumed, perf_counter() - start)


def compute_missing(order: Order, keeper: SweepParts | Memory) -> None:
    """Give the keeper the rows of every point that it misses."""
    missing = keeper.missing(order.points)
    left = sum(last - first + 1 for first, last in missing)
    with progress(order.points, order.points - left, shown=order.shown) as advance:
        closed = order.closed
        with closing(_evaluated(closed, missing) if closed else _solved(order, missing)) as pieces:
            for first, last, columns in pieces:
                keeper.keep(first, last, _inside(columns) if order.survey.strict else columns)
                advance(last - first + 1)


def _inside(columns: Columns) -> Columns:
    """Refuse the rows outside the fit: set status and reason, and blank their numbers."""
    outside, names = tolist(columns[OUTSIDE_COLUMN]), list(columns)
    if not any(outside):
        return columns
    cells = {
        name: [None if x else cell for x, cell in zip(outside, tolist(columns[name]), strict=True)]
        for name in names[names.index("status") :]
        if name not in ("status", "reason", "elapsed_s")
    }
    pairs = {
        name: zip(outside, tolist(columns[name]), strict=True) for name in ("status", "reason")
    }
    cells["status"] = ["refused" if x else cell for x, cell in pairs["status"]]
    cells["reason"] = [
        f"{EXTRAPOLATION_LABEL}: {x}; {STRICT}" if x else cell for x, cell in pairs["reason"]
    ]
    return {name: cells.get(name, column) for name, column in columns.items()}


SweepPiece = tuple[int, int, Columns]


def _evaluated(
    closed: ClosedForm, missing: Sequence[tuple[int, int]]
) -> Generator[SweepPiece, None, None]:
    for first, last in missing:
        for start in range(first, last + 1, PIECE_ROWS):
            end = min(start + PIECE_ROWS - 1, last)
            yield start, end, closed.columns(start, end)


def _solved(order: Order, missing: Sequence[tuple[int, int]]) -> Generator[SweepPiece, None, None]:
    left = sum(last - first + 1 for first, last in missing)
    if order.scheduler is not None:
        from planner.sweep.workers import connect_dask

        with connect_dask(order.scheduler) as cluster:
            waiting = chunks(order.survey, missing, cluster.workers)
            yield from (_piece(order, *done) for done in cluster.solved(waiting))
        return
    workers = min(order.workers, max(left, 1))
    waiting = chunks(order.survey, missing, workers)
    answered = serially(waiting) if workers == 1 else in_processes(waiting, workers)
    with closing(answered):
        for chunk, rows in answered:
            yield _piece(order, chunk, rows)


def _piece(order: Order, chunk: Chunk, rows: Sequence[CellRow]) -> SweepPiece:
    grid, axes = order.survey.grid, order.survey.columns
    places = [grid.places(i) for i in range(chunk.first, chunk.last + 1)]
    values = {axis.name: [axis.at(place[i]) for place in places] for i, axis in enumerate(axes)}
    return chunk.first, chunk.last, merge_columns(values, by_name(rows))


def _how_to_go_on(order: Order, parts: SweepParts) -> str:
    if not parts.done:
        return "nothing was computed yet"
    return (
        f"{parts.done:,} of {order.points:,} points are kept in {parts.folder}; "
        "go on with the same command and --resume"
    )
