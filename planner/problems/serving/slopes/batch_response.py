"""One pool with its layout held and a real batch: what moves when a given does.

The batch is the largest that keeps every promise, the smallest that is as cheap, or under a load
the smallest that carries it; where it follows a limit, it moves as the limit makes it (implicit
function theorem), on either side. A batch of a few sequences moves in steps too wide for that: it
is a choice, and held.

What a given, and the batch, do to the wait before a prompt is read, the replicas held.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from formulas.numerics.tape import Tape
from planner.problems.serving.slopes.directional_derivatives import (
    Directions,
    differentiate_tape,
    evaluate_tape,
    symbol_slopes,
    without_ceilings,
)
from planner.problems.serving.step.engine_effects import loop_first_token
from planner.problems.serving.step.kernels import OF_A_STEP, StepModel, get_kernel
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.occupancy import LARGEST_BATCH, queue
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import Task
from planner.protocol.bracket import Bracket, find_bracket
from planner.text.tolerances import REL_TOL

ARRIVALS = "X_arr"
ROOT_TOLERANCE = 1e-13  # logarithms of batches that are one
STEP = 1e-5  # of a given, in logarithms


def waits(task: Task) -> bool:
    """True if first tokens wait for other prompts, under a load or in a closed loop."""
    if task.uses_bound or task.mode == "decode":
        return False
    return task.loaded or task.loop is not None


def with_wait(
    task: Task,
    tape: Tape,
    row: Mapping[str, float],
    batch: float,
    directions: Directions,
    first: tuple[float, np.ndarray],
) -> tuple[float, np.ndarray]:
    """The time to first token with its wait [s], and its slopes; `first` is it without."""
    time, slopes = first
    wait = _wait(task, tape, row, batch)
    moved = []
    for symbols in directions.values():
        ends = [_wait(task, tape, _varied(row, symbols, sign * STEP), batch) for sign in (1, -1)]
        moved.append((ends[0] - ends[1]) / (2 * STEP))
    ends = [_wait(task, tape, row, batch * math.exp(sign * STEP)) for sign in (1, -1)]
    moved.append((ends[0] - ends[1]) / (2 * STEP))
    total = time + wait
    return total, (time * slopes + np.array(moved)) / total


def _varied(row: Mapping[str, float], symbols: Mapping[str, float], by: float) -> dict[str, float]:
    return {**row, **{name: row[name] * math.exp(power * by) for name, power in symbols.items()}}


def _wait(task: Task, tape: Tape, row: Mapping[str, float], batch: float) -> float:
    values = evaluate_tape(tape, row, batch)
    names = {
        "T_pf_busy": "busy", "T_dec": "step", "T_ttft": "ttft", "T_tpot": "tpot", "T_slot": "slot",
    }  # fmt: skip
    symbols = {**row, "B": batch, **{name: values[word] for name, word in names.items()}}
    arrays = {name: np.array([value]) for name, value in symbols.items()}
    if task.loop is not None:
        return float(loop_first_token(task, arrays, {})[0]) - values["ttft"]
    return float(queue({**arrays, "x_load": np.array([values["arrivals"]])})["wait"][0])


LIMIT = "limit."  # of a promise, as if it were a symbol
ACTIVE = 1e-7  # share of a limit below which it does not hold the batch
FLAT_TOLERANCE = 1e-7  # d ln price / d ln batch, below which a larger batch is no cheaper
SIDE_STEP = 1e-6  # relative step to either side of a batch where two roofs meet


@dataclass(frozen=True)
class Response:
    """Values of a pool, and d ln of them / d ln of every given, shape (2, n_givens)."""

    values: dict[str, float]
    slopes: dict[str, np.ndarray]


@dataclass(frozen=True)
class FixedLayout:
    """One layout of a task; its batch is a real number where it is `free`.

    It then follows its limits, or the load that it carries.
    """

    task: Task
    layouts: Layouts
    batch: float
    free: bool

    @cached_property
    def step(self) -> Step:
        """The model of this layout."""
        return Step(self.task, self.layouts, bound=self.task.uses_bound)

    @cached_property
    def row(self) -> dict[str, float]:
        """Every symbol's value, and the promised limits."""
        values = self.step.values(np.array([self.batch]))
        row = {name: float(np.ravel(value)[0]) for name, value in values.items()}
        return row | {f"{LIMIT}{name}": limit for name, limit in self.task.promises.items()}

    @property
    def replicas(self) -> float:
        """Number of replicas."""
        return float(self.layouts.replicas[0])

    @property
    def up(self) -> float:
        """Replicas without the spare ones."""
        return max(self.replicas - self.task.spare, 1e-9)

    @property
    def tape(self) -> Tape:
        """The equations; without ceilings where the batch is a real number."""
        return _tape(self.step.model, queued=waits(self.task), smooth=self.free)

    def response(self, directions: Directions) -> Response:
        """Values and elasticities of all outputs by every parameter, the batch responding."""
        if self.task.loaded:
            return self.carrying(
                directions, self.row[ARRIVALS], symbol_slopes(directions, ARRIVALS)
            )
        top = self._largest() if self.free else self.batch
        values, slopes = self._at(top, directions)
        if not self.free:
            return self._at_fixed_batch(values, slopes, directions)
        if slopes["slot"][0, -1] > -FLAT_TOLERANCE:
            return self._flat(top, directions)
        growth = self._growth(values, slopes, directions)
        return Response({**values, "batch": top}, _total(slopes, growth))

    def carrying(self, directions: Directions, rate: float, rising: np.ndarray) -> Response:
        """Response at the batch whose slots serve `rate` requests per second.

        `rising` is d ln rate / d ln of every given, shape (2, n) or (n,).
        """
        load = rate / self.up / (1.0 - self.task.headroom)
        batch = self._carries(load) if self.free else self.batch
        values, slopes = self._at(batch, directions)
        slot = slopes["slot"]
        if not self.free or batch <= 1 or slot[0, -1] > -FLAT_TOLERANCE:
            return self._at_fixed_batch({**values, "batch": batch}, slopes, directions)
        pull = slot[:, :-1] + rising
        growth = pull / np.abs(np.where(_grows(pull), slot[1, -1], slot[0, -1]))
        return Response({**values, "batch": batch}, _total(slopes, growth))

    def _at(self, batch: float, directions: Directions) -> tuple[dict, dict]:
        values, slopes = differentiate_tape(self.tape, self.row, batch, directions)
        if waits(self.task):
            first = values["ttft"], slopes["ttft"]
            late = with_wait(self.task, self.tape, self.row, batch, directions, first)
            values["ttft"], slopes["ttft"] = late
        return values, slopes

    def _at_fixed_batch(self, values: dict, slopes: dict, directions: Directions) -> Response:
        """Values, and elasticities at fixed batch, arrays (2, n_givens) [-]."""
        nothing = np.zeros((2, len(directions)))
        return Response({"batch": self.batch, **values}, _total(slopes, nothing))

    def _carries(self, load: float) -> float:
        """The smallest real batch whose slots carry a load [1/s] per replica."""

        def over(x: float) -> float:
            return math.log(load * self._price(math.exp(x)))

        # Without a load of its own it goes beyond its whole batch, to the largest real one.
        top = self.batch if self.task.loaded else max(self.batch, self._largest())
        most = math.log(top)
        if over(0.0) <= 0:
            return 1.0
        return top if over(most) > 0 else math.exp(_crossing(over, most, 0.0))

    def _limits(self, values: dict[str, float]) -> dict[str, float]:
        """Every limited quantity over its limit."""
        task = self.task
        ratios = {"need": values["need"] / self.row["M_cap"]}
        ratios |= {x: values[x] / task.limits[x] for x in OF_A_STEP if x in task.limits}
        if task.mode == "aggregated" and not task.uses_bound:
            ratios["mixed"] = values["mixed"]
        if task.site_power is not None and "watts" in values:
            ratios["watts"] = values["watts"] * self.row["n_chips"] / task.site_power
        for name in ("tpot", "ttft"):
            if name in task.promises:
                ratios[name] = values[name] / task.promises[name]
        if "e2e" in task.promises:
            ratios["e2e"] = self._whole(values) / task.promises["e2e"]
        return ratios

    def _whole(self, values: dict[str, float]) -> float:
        first = values["ttft"] if self.task.mode == "aggregated" else 0.0
        return first + self.row["L_dec"] * values["tpot"]

    def _fullest(self, batch: float) -> float:
        values = evaluate_tape(self.tape, self.row, batch)
        return max(math.log(max(ratio, 1e-300)) for ratio in self._limits(values).values())

    def _largest(self) -> float:
        """The largest real batch that keeps every promise."""
        low, high = math.log(self.batch), math.log(self.batch)
        most = math.log(LARGEST_BATCH)
        while self._fullest(math.exp(high)) <= 0:
            low, high = high, high + 0.3
            if low > most:
                return LARGEST_BATCH
        while self._fullest(math.exp(low)) > 0:
            low -= 0.1
        return math.exp(_crossing(lambda x: self._fullest(math.exp(x)), low, high))

    def _growth(
        self, values: dict[str, float], slopes: dict[str, np.ndarray], directions: Directions
    ) -> np.ndarray:
        """d ln batch / d ln of every given, shape (2, n): each limit that holds it lets it move."""
        count = len(directions)
        ratios = self._limits(values)
        most = max(ratios.values())
        if most < 1 - ACTIVE:
            return np.zeros((2, count))
        speeds = []
        for name, ratio in ratios.items():
            if ratio < most - ACTIVE:
                continue
            slope = self._ratio(name, values, slopes, directions)
            if slope[:, -1].max() <= 0:
                continue  # no batch changes it
            pull, left = -slope[:, :-1], slope[0, -1] or slope[1, -1]
            speeds.append(pull / np.where(_grows(pull), slope[1, -1], left))
        if not speeds:
            return np.zeros((2, count))
        stacked = np.stack(speeds)
        # Upwards the first limit met holds it; downwards the last one left lets it.
        return np.stack([stacked[:, 0].max(axis=0), stacked[:, 1].min(axis=0)])

    def _ratio(
        self,
        name: str,
        values: dict[str, float],
        slopes: dict[str, np.ndarray],
        directions: Directions,
    ) -> np.ndarray:
        """d ln (quantity over its limit), shape (2, n + 1)."""
        fixed = dict.fromkeys(("mixed", "watts", *OF_A_STEP), "")
        limit = {"need": "M_cap", **fixed}.get(name, f"{LIMIT}{name}")
        limit_slope = np.array([*symbol_slopes(directions, limit), 0.0])
        if name != "e2e":
            return slopes[name] - limit_slope
        first = values["ttft"] if self.task.mode == "aggregated" else 0.0
        share = first / self._whole(values)
        longer = np.array([*symbol_slopes(directions, "L_dec"), 0.0])
        return share * slopes["ttft"] + (1 - share) * (slopes["tpot"] + longer) - limit_slope

    def _flat(self, top: float, directions: Directions) -> Response:
        """Response at the smallest batch as cheap as `top`, if a larger batch is no cheaper."""
        goal = self._price(top) * (1 + REL_TOL)
        low, high = 0.0, math.log(top)
        while high - low > 1e-12 * max(high, 1.0):
            middle = (low + high) / 2
            low, high = (low, middle) if self._price(math.exp(middle)) <= goal else (middle, high)
        turn = math.exp(high)
        below = differentiate_tape(self.tape, self.row, turn * (1 - SIDE_STEP), directions)
        above = differentiate_tape(self.tape, self.row, turn * (1 + SIDE_STEP), directions)
        before, after = below[1]["slot"], above[1]["slot"]
        steep = before[:, -1] - after[:, -1]
        moves = turn > 1 + SIDE_STEP and bool((steep < -FLAT_TOLERANCE).all())
        growth = (
            (after - before)[:, :-1] / steep[:, None] if moves else np.zeros((2, len(directions)))
        )
        return Response({**above[0], "batch": turn}, _total(above[1], growth))

    def _price(self, batch: float) -> float:
        return evaluate_tape(self.tape, self.row, batch)["slot"]


def _crossing(excess: Callable[[float], float], near: float, far: float) -> float:
    return find_bracket(
        lambda points: [-excess(point) for point in points],
        Bracket(near, far),
        lambda bracket: ((bracket.near + bracket.far) / 2,),
        lambda bracket: abs(bracket.far - bracket.near) <= ROOT_TOLERANCE,
    ).near


@cache
def _tape(model: StepModel, *, queued: bool, smooth: bool) -> Tape:
    tape = get_kernel("batch_times", *model.key, queued).tape
    return without_ceilings(tape) if smooth else tape


def _total(slopes: dict[str, np.ndarray], growth: np.ndarray) -> dict[str, np.ndarray]:
    """Total elasticities: direct effect of each parameter, and its effect through the batch.

    A batch that grows does so on its right side, whichever way the given goes.
    """
    grows = _grows(growth)
    totals = {
        name: slope[:, :-1] + growth * np.where(grows, slope[1, -1], slope[0, -1])
        for name, slope in slopes.items()
    }
    return {**totals, "batch": growth}


def _grows(pull: np.ndarray) -> np.ndarray:
    return (pull > 0) == np.array([[False], [True]])
