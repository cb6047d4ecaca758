"""Lower bound of the objective over all layouts by geometric programs, and elasticities.

Layouts are grouped by tensor-parallel degree, by what shares a context, by whether half-batches
overlap, and by whether attention is copied, inside a domain or beyond; within a group the network's
rates take their best values, ranks, stages and batch are real numbers. Groups and intervals of the
batch are split where the bound is weakest (branch and bound), since a chord of the coverage is the
tighter the shorter its interval.
"""

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from planner.catalogue.profile import EFFICIENCIES
from planner.problems.serving.bounds.binding_limits import (
    NAME_SEPARATOR,
    POWER_DRAWN,
    POWER_PAID,
    continuous,
    relaxable,
)
from planner.problems.serving.bounds.monomials import (
    cache_miss_monomial,
    chords,
    min_cache_miss_share,
    tangents,
)
from planner.problems.serving.search.batch import LayoutSearchResult
from planner.problems.serving.step.engine_effects import loop_symbols
from planner.problems.serving.step.kernels import BILLING, FOLLOWS, OF_A_STEP, feed, get_kernel
from planner.problems.serving.step.memory_terms import BLOCKS
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import PROMISES
from planner.problems.serving.task.task import Task
from planner.programs.geometric import Program, ProgramSolution
from planner.text.errors import SolverError

SOLVES = 60  # programs solved at most; the bound holds however early it stops
BOUND_TOLERANCE = 1e-3  # gap below which splitting further is not worth a solve
STOP_TOL = 1e-9
BOUND_SLACK = 1 + 1e-5  # the programs want room between their bounds; a wider box is a safe one

# Symbols at their minimum over the layouts of a group; then symbols at their maximum.
MINIMIZED_SYMBOLS = (
    "n_ar", "q_ar", "n_a2a", "n_ep", "k_copies", "k_copies_pf", "n_hop", "t_hop_net", "a_ar",
    "g_ar", "a_ar_pf", "g_ar_pf", "a_x", "g_x", "a_x_pf", "g_x_pf", "f_heads", "f_stage", "u_ep",
    "x_ep", "f_skew", "c_imb", "c_rank", "n_cp", "n_ask", "n_gather", "c_chunk", "a_cp", "g_cp",
    "a_ring", "g_ring", "n_draft_ar", "n_draft_a2a", "S_fixed", "M_fixed", "f_format", "h_wide",
    "h_work", "h_peak", "k_smp", "M_hold", "x_pass", *BLOCKS, "x_rest", "n_seats", "x_seats",
    "x_budget", "f_held", "f_read", "r_idx", "N_attn_pf",
)  # fmt: skip
# More ranks that share contexts hold less, and fewer ask each other for less.
MAXIMIZED_SYMBOLS = ("r_ar", "r_hop", "w_ar", "w_ar_pf", "w_x", "w_x_pf", "w_cp", "w_ring", "x_mem",
                     "dcp",
           "tp_a")  # fmt: skip
MAX_SEQUENCES = 1e12  # sequences in flight, more than any replica holds
StepValues: TypeAlias = Mapping[str, float | np.ndarray]  # of every layout, by symbol
PACES = {"f_pace": "f_stage", "f_pace_w": "f_read"}  # each with what is fullest of a stage


@dataclass(frozen=True)
class Relaxation:
    """A lower bound on the objective over every layout and batch, and how it was found.

    `work` is what chips draw, or what that costs, beyond the least that they draw for as long.
    """

    value: float
    solves: int
    work: float = 0.0


@dataclass(order=True)
class _Box:
    """Some layouts on an interval of sequences per stage, with the bound they share."""

    bound: float
    order: int
    rows: np.ndarray = field(compare=False)
    low: float = field(compare=False)
    high: float = field(compare=False)
    tried: bool = field(default=False, compare=False)


def relaxation(
    step: Step,
    outcome: LayoutSearchResult,
    incumbent: float,
    enough: Callable[[Relaxation], bool] | None = None,
    *,
    most: int = SOLVES,
) -> Relaxation:
    """A bound that no layout of `step` beats at any batch, in the unit of the objective.

    Layouts that keep no promise at any batch were decided exactly and are left out. The bound is
    sought up to `incumbent`, the best objective known, with about `most` programs, and no further
    once it is `enough`.
    """
    order, heap, solves = itertools.count(), [], 0
    for rows in _groups(step, np.flatnonzero(outcome.largest >= 1)):
        heap.append(_Box(0.0, next(order), rows, 1.0, _most_sequences(step, outcome, rows)))
    if not heap:
        return Relaxation(incumbent, 0)
    # Every group is solved once, however large their number, and some groups are split.
    most = max(most, len(heap) + most // 2)
    work = _work(step, outcome)
    # At a batch of any size caches are read as fast as they ever are.
    values = step.values(np.array([MAX_SEQUENCES]))
    bound = heap[0].bound
    while bound + work(bound) < incumbent * (1 - BOUND_TOLERANCE) and solves < most:
        if enough and enough(Relaxation(bound, solves, work(bound))):
            break
        weakest = heapq.heappop(heap)
        for part in _halves(step, weakest) if weakest.tried else [weakest]:
            high = max(
                min(part.high, _most_sequences(step, outcome, part.rows)), part.low * BOUND_SLACK
            )
            least = _solve(step, values, part.rows, part.low, high, weakest.bound)
            solves += 1
            if least is not None:
                least = max(least, weakest.bound)
                heapq.heappush(
                    heap, _Box(least, next(order), part.rows, part.low, high, tried=True)
                )
        if not heap:
            return Relaxation(incumbent, solves)
        bound = heap[0].bound
    return Relaxation(min(bound, incumbent), solves, work(bound))


def _work(step: Step, outcome: LayoutSearchResult) -> Callable[[float], float]:
    """Return the increase of a bound by a request's energy, as a function of the bound.

    Energy grows with the time and with the work that chips do in it: at the least time the least
    work takes no less than this. Work per request falls with the batch, so the largest has least.
    """
    task, draw, rows = step.task, step.task.draw, np.flatnonzero(outcome.largest >= 1)
    paid = {"energy": 1.0, "cost": task.electricity / (task.power or 1.0)}.get(task.objective, 0.0)
    if draw is None or step.model.powered not in FOLLOWS or not paid:
        return lambda bound: 0.0
    layouts = step.layouts.take(rows)
    group = layouts.pp * layouts.dp_attention * layouts.cp
    most = np.maximum(outcome.largest[rows], max(task.batches or (1,)))
    part = step.take(rows)
    values = feed(part.model.lowered("every_symbol"), part.values(np.ceil(most / group) * group))
    energies = values["E_run"] + values.get("E_w", 0.0)
    least_work = float(np.min(energies * layouts.replica_chips))
    busy = float(np.min(layouts.replicas * layouts.replica_chips / layouts.chips))
    limited = get_kernel("drawn_power")
    per_time = (task.power if task.objective == "energy" else task.price) or 1.0

    def power(watts: float) -> float:
        return float(limited(P_asked=watts, P_most=draw.rated, q_soft=draw.soft)["P_work"])

    def more(bound: float) -> float:
        time = max(bound / per_time, 1e-300)
        works = power(draw.idle + least_work / (busy * time))
        drawn = power(draw.idle) * (1 - busy) + works * busy
        return paid * time * max(drawn * task.site - (task.power or 0.0), 0.0)

    return more


def whole_chips(task: Task, load: float, value: float, spare: float) -> float:
    """A bound on the price per request under a load, knowing that chips are paid whole.

    `value` is a bound on it were chips divisible [USD], `spare` the fewest chips of spare replicas.
    The numbers of chips that the question allows are all that can be paid; none of them may do,
    and then the bound stays what it is.
    """
    paid = np.unique(np.asarray(task.chips, dtype=float))
    needed = value * load / task.price + spare
    place = int(np.searchsorted(paid, needed * (1 - STOP_TOL)))
    return value if place == paid.size else max(value, task.price * float(paid[place]) / load)


def _halves(step: Step, box: _Box) -> list[_Box]:
    """The box cut where it is widest: by copies, stages, ranks of a context, or by the batch."""
    layouts = step.layouts
    axes = [each[box.rows] for each in (layouts.dp_attention, layouts.pp, layouts.dcp)]
    widths = [*(np.log(axis.max() / axis.min()) for axis in axes), np.log(box.high / box.low)]
    widest = int(np.argmax(widths))
    if widest == len(axes):
        middle = float(np.sqrt(box.low * box.high))
        return [replace(box, high=middle), replace(box, low=middle)]
    axis = axes[widest]
    upper = axis > np.sqrt(float(axis.min()) * float(axis.max()))
    return [replace(box, rows=box.rows[~upper]), replace(box, rows=box.rows[upper])]


def optimum(step: Step, batch: float) -> ProgramSolution:
    """The plan's layout with a real batch near `batch`, solved; its multipliers are elasticities.

    `step` holds one layout. Tangents of what is no posynomial are renewed until the batch settles.
    """
    program = continuous(**declare(step))
    at = max(batch, contention_free_batch(step))
    for _ in range(8):
        values = layout_given(step, batch, at)
        solution = program.solve(_named(program, values))
        settled = solution.choices["B"]
        if abs(settled / at - 1) < STOP_TOL:
            break
        at = max(settled, contention_free_batch(step))
    return solution


def declare(step: Step) -> dict[str, object]:
    """Arguments that declare the program of a layout."""
    task, objective = step.task, step.task.objective
    if objective == "energy" and step.model.powered in FOLLOWS:
        objective = POWER_DRAWN
    if objective == "cost" and step.model.powered == BILLING:
        objective = POWER_PAID
    return {"bound": step.bound, "objective": objective, "promises": _promised(step),
            "mode": task.mode, "loop": _looped(step),
            "halved": _halved(step, np.array([0]))}  # fmt: skip


def contention_free_batch(step: Step) -> float:
    """Minimum batch for tangents, just above 1: a sequence meets others."""
    return 1.0 + (1e-6 if _decided(step) else 1e-2)


def layout_given(step: Step, batch: float, at: float) -> dict[str, float]:
    """Givens by name of the program of the layout in `step`, its tangents at the batch `at`.

    `batch` is that of the plan in whole numbers.
    """
    task = step.task
    row = {name: float(np.ravel(v)[0]) for name, v in step.values(np.array([batch])).items()}
    # Without ceilings a batch may grow by less than a group of pp*dp*cp sequences.
    span = (
        (batch * (1 - 1e-7), batch * (1 + 1e-7))
        if _decided(step)
        else (1.0, 2.0 * (batch + row["pp"] * row["dp"] * row["cp"]))
    )
    row["r_fill"] = 1.0  # slots are full: under a load the chips follow it
    row |= {x: max(1.0, row[y] * min(1.0, batch / row["pp"])) for x, y in PACES.items()}
    row["n_chunks"] = float(np.ceil(task.input_tokens * (1 - row["x_hit"]) / row["c_chunk"]))
    if _looped(step):
        row |= {name: float(np.ravel(v)[0]) for name, v in loop_symbols(task, row).items()}
    return {
        **row,
        **_limits(step),
        **tangents(row, at, task.mode),
        "lo": span[0],
        "hi": span[1],
        **cache_miss_monomial(step, at),
        **_power_of_work(step, batch),
    }


def _halved(step: Step, rows: np.ndarray) -> bool:
    return not step.bound and int(step.layouts.halves[rows[0]]) > 1


def _power_of_work(step: Step, batch: float) -> dict[str, float]:
    """Power drawn at the plan as a monomial of the power asked: factor and exponents."""
    draw = step.task.draw
    if draw is None or step.model.powered not in FOLLOWS:
        return {}
    symbols = step.values(np.array([batch]))
    values = feed(step.model.lowered("every_symbol"), symbols)
    wanted, made, mean = (
        float(np.ravel(values[name])[0]) for name in ("P_asked", "P_work", "P_chip")
    )
    exponent = 1 / (1 + (wanted / draw.rated) ** draw.soft)
    used = (mean / step.task.site - draw.idle) / (made - draw.idle)
    return {
        "drawn": used * made / wanted**exponent,
        "given_way": exponent,
        "not_given_way": 1 - exponent,
        "unused": max(1 - used, 1e-12),
    }


def _looped(step: Step) -> bool:
    return step.task.loop is not None and not step.bound


def _decided(step: Step) -> bool:
    task = step.task
    decided = task.batches is not None or task.loaded or task.site_power is not None
    decided |= "cache_fits" in task.promises
    return decided or task.mode == "prefill" or task.objective == "latency"


def _groups(step: Step, rows: np.ndarray) -> Iterator[np.ndarray]:
    layouts = step.layouts
    across = layouts.stage > step.task.machine.chips_per_domain
    where = (layouts.dp_attention > 1).astype(int) + across + 3 * layouts.halves
    degree = layouts.tp + 1j * np.where(layouts.dcp > 1, 0, layouts.cp)
    for group_degree in np.unique(degree[rows]):
        same = rows[degree[rows] == group_degree]
        yield from (same[where[same] == place] for place in np.unique(where[same]))


def _shared(step: Step, values: StepValues, rows: np.ndarray) -> dict[str, float]:
    """One set of values that favours the objective over all these layouts."""
    layouts = step.layouts
    group = {k: float(v) for k, v in values.items() if not np.ndim(v)}
    group |= {
        k: float(np.asarray(values[k])[rows].min()) for k in MINIMIZED_SYMBOLS if np.ndim(values[k])
    }
    most = (k for k in (*MAXIMIZED_SYMBOLS, *EFFICIENCIES, "x_hit") if np.ndim(values[k]))
    group |= {k: float(np.asarray(values[k])[rows].max()) for k in most}
    # More found in prefix caches is less to read, and more to gather before a chunk.
    group |= {"n_gather": 0.0} if np.ndim(values["x_hit"]) else {}
    return group | {
        "r_fill": 1.0,
        "tp": float(layouts.tp[rows[0]]),
        "cp": float(layouts.cp[rows[0]]),
        "n_half": float(layouts.halves[rows[0]]),
        "least_dp": float(layouts.dp_attention[rows].min()),
        "most_dp": float(layouts.dp_attention[rows].max()),
        "least_pp": float(layouts.pp[rows].min()),
        "most_pp": float(layouts.pp[rows].max()),
        "most_chips": float(layouts.replica_chips[rows].max()),
    }


def _solve(
    step: Step, values: StepValues, rows: np.ndarray, low: float, high: float, whole_bound: float
) -> float | None:
    """Lower bound of layouts on an interval of the batch; `whole_bound` where the solver fails."""
    task = step.task
    shared = _shared(step, values, rows)
    program = relaxable(
        bound=step.bound,
        objective="latency" if task.objective == "latency" else "cost",
        promises=_promised(step),
        given_batch=task.batch_of_all,
        mode=task.mode,
        halved=_halved(step, rows),
    )
    new = task.input_tokens * (1 - task.cached_input)
    shared["n_chunks"] = float(np.ceil(new / shared["c_chunk"]))
    # With more than one sequence per stage, no stage idles between steps.
    shared |= {x: shared[y] if low > 1 else 1.0 for x, y in PACES.items()}
    symbols = {
        **shared,
        **_limits(step),
        **chords(shared, low, high, task.mode),
        "least_passes": float(new / shared["c_chunk"]) / BOUND_SLACK,
        "lo": low,
        "hi": high,
        "unsaved": min_cache_miss_share(shared),
        "batch": float(min(task.batches or (1,))),
        "paid": float(step.layouts.chips[rows].max()),
        "factor": _factor(step, rows),
        "most_dp": shared["most_dp"] * BOUND_SLACK,
        "most_pp": shared["most_pp"] * BOUND_SLACK,
    }
    try:
        # The shortfall of an infeasible part is not needed and may exceed the float range.
        with np.errstate(over="ignore"):
            return program.bound(_named(program, symbols))
    except SolverError:
        return whole_bound


def _factor(step: Step, rows: np.ndarray) -> float:
    """Factor from chip seconds per request, or seconds, to the unit of the objective."""
    task, layouts = step.task, step.layouts
    busy = layouts.replicas[rows] * layouts.replica_chips[rows]
    batch = max(task.batches or ()) if task.batch_of_all else 0
    if task.objective == "throughput":
        return 1.0 / (batch or float(busy.max()))
    # Idle chips are paid too.
    paid = float(layouts.chips[rows].min()) if batch else 1.0
    per_request = paid / (batch or float((busy / layouts.chips[rows]).max()))
    if task.objective == "energy":
        return per_request * (task.power or 0.0)
    return per_request * task.price


def _most_sequences(step: Step, outcome: LayoutSearchResult, rows: np.ndarray) -> float:
    return float(np.ceil(outcome.largest[rows] / step.layouts.pp[rows]).max()) * BOUND_SLACK


def _limits(step: Step) -> dict[str, float]:
    return {name: limit for name, limit in step.task.limits.items() if name in PROMISES}


def _promised(step: Step) -> frozenset[str]:
    return frozenset(step.task.limits) & {"ttft", "tpot", "latency", *OF_A_STEP}


def _named(program: Program, values: dict[str, float]) -> dict[Hashable, float]:
    return {symbol: values[str(symbol).removesuffix(NAME_SEPARATOR)] for symbol in program.givens}
