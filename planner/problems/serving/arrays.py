"""One serving layout at one batch, evaluated at many values of the numbers that vary.

Its passes whole or cut in halves are two layouts, of which each point takes the better one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.catalogue.chips import MATH
from planner.problems.serving.deployment.beyond_fit import extrapolation_column
from planner.problems.serving.deployment.pool import ROOFS
from planner.problems.serving.outputs import ABSENT, OUTPUTS
from planner.problems.serving.parameters import BATCHES, PEAKS, paths_by_field
from planner.problems.serving.plan_sections import BANDS, LAYOUT, NUMBER_COLUMNS
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import SAME_PRICE, fixed_batches
from planner.problems.serving.search.promise_limits import quantile_factors
from planner.problems.serving.step.drafting import with_accepted
from planner.problems.serving.step.kernels import STEP_PARTS
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.shares import coefficient_shares, extrapolation_masks
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import PROMISES
from planner.problems.serving.task.requests import checked_promises, context
from planner.problems.serving.task.resolve import resolve
from planner.problems.serving.task.task import Task
from planner.protocol.output import CodedColumn
from planner.text.wording import pools_text

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation

TASK, CHIP, PROMISE_FIELDS, LENGTHS, RENTS = map(
    paths_by_field, ("task", "chip", "promises", "lengths", "rent")
)
ROOF_SYMBOLS = {"memory": ("T_mem_bound",), "compute": ("T_math_bound",),
                "network": ("T_net_bound",)}  # fmt: skip
OPTIMAL, INFEASIBLE = 0, 1
VARIES = ("layout", "overlap")  # words of a layout, cut in halves or not
RADIX = 16  # above the number of promises, so that a list of them is one number

CORNERS = 4096  # maximum corners of the box of values for the memory check


@dataclass(frozen=True)
class FixedPointModel:
    """A question that has one layout and one batch; `words` are the columns that do not vary."""

    scenario: Scenario
    task: Task
    layouts: Layouts
    words: Mapping[str, str | int | float | None]

    def __call__(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray | CodedColumn]:
        """Columns at values of shape (n,): floats of that shape, `CodedColumn`, and `status`."""
        return self.scored(values)[0]

    def scored(
        self, values: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, np.ndarray | CodedColumn], np.ndarray]:
        """Return the columns of `__call__`, and the minimised score, shape (n,)."""
        count = max((len(value) for value in values.values()), default=1)
        totals = [values[name] for name in BATCHES if name in values]
        task, batch, fill = self._fixed_point(values)
        step = Step(task, self.layouts, bound=task.uses_bound)
        chosen = step(batch, fill)
        bound = chosen if task.uses_bound else Step(task, self.layouts, bound=True)(batch, fill)
        columns: dict[str, float | np.ndarray | CodedColumn] = {"gap": 0.0}  # no other choice
        for output in OUTPUTS:
            name, word = output.name, output.word
            if (
                name in NUMBER_COLUMNS
                and name not in ("batch", *ABSENT[task.mode])
                and word in chosen
            ):
                columns[name] = chosen[word] * output.scale
                if name in BANDS:
                    columns[f"{name}_bound"] = bound[word] * output.scale
        if not task.uses_bound:
            columns |= _bands(step, columns, batch)
        late = quantile_factors(step, batch)
        judged = {**chosen, **{name: chosen[name] * factor for name, factor in late.items()}}
        columns |= _verdict(task, judged, count)
        good = np.broadcast_to(columns["status"] == OPTIMAL, count)
        parts = _timed(task, chosen)
        largest = np.argmax(np.stack([np.broadcast_to(v, count) for v in parts.values()]), axis=0)
        columns["bottleneck"] = CodedColumn(np.where(good, largest + 1, 0), (None, *parts))
        lost = ~good
        for name in VARIES:
            columns[name] = CodedColumn(np.where(lost, 0, 1), (None, self.words[name]))
        if isinstance(outside := columns.get("outside"), CodedColumn):
            columns["outside"] = CodedColumn(np.where(lost, 0, outside.codes), outside.words)
        if totals:
            numbers, codes = np.unique(totals[0], return_inverse=True)
            words = (None, *(int(number) for number in numbers))
            columns["batch"] = CodedColumn(np.where(lost, 0, codes + 1), words)
        every = {
            name: value if isinstance(value, CodedColumn) else np.broadcast_to(value, count)
            for name, value in columns.items()
        }
        return every, np.broadcast_to(task.score(chosen), count)

    def parts(
        self, values: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, np.ndarray], dict[str, float | np.ndarray]]:
        """Times [s] whose maximum is the bottleneck, and all symbol values, at shape (n,)."""
        task, batch, fill = self._fixed_point(values)
        step = Step(task, self.layouts, bound=task.uses_bound)
        return _timed(task, step(batch, fill)), step.values(batch, fill)

    @property
    def symbols(self) -> Mapping[str, tuple[str, ...]]:
        """The symbols that add up to each of these parts."""
        return ROOF_SYMBOLS if self.task.uses_bound else STEP_PARTS

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations that define these symbols."""
        from planner.problems.serving.step.equations import BOUND, ESTIMATE

        return BOUND if self.task.uses_bound else ESTIMATE[self.task.mode]

    @property
    def batch_scale(self) -> float:
        """Sequences per replica for one sequence in all."""
        return 1.0 / float(self.layouts.replicas[0])

    def cuts(self, values: Mapping[str, np.ndarray]) -> np.ndarray | bool:
        """True if a batch has a sequence for each half of every rank; always for prefill."""
        _, batch, fill = self._fixed_point(values)
        return self.task.mode == "prefill" or batch * fill > self.layouts.group

    def fits(self, ends: Mapping[str, np.ndarray]) -> bool:
        """True if all requests fit in memory at each corner of `ends`; False above CORNERS."""
        if 2 ** len(ends) > CORNERS:
            return False  # not known
        corners = np.meshgrid(*ends.values(), indexing="ij") if ends else []
        values = {name: each.ravel() for name, each in zip(ends, corners, strict=True)}
        task, batch, _ = self._fixed_point(values)
        step = Step(task, self.layouts, bound=task.uses_bound)
        return bool(np.all(step.holds_together(batch)))

    def _fixed_point(self, values: Mapping[str, np.ndarray]) -> tuple[Task, np.ndarray, np.ndarray]:
        task = with_arrays(self.task, self.scenario, values)
        totals = [values[name] for name in BATCHES if name in values]
        return task, *self._batches(task, totals[0] if totals else None)

    def _batches(self, task: Task, totals: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        if totals is None:
            _, batch, fill = fixed_batches(Step(task, self.layouts, bound=task.uses_bound))
            return batch, fill
        per_replica = np.ceil(totals / self.layouts.replicas)
        return per_replica, totals / (per_replica * self.layouts.replicas)


@dataclass(frozen=True)
class TwoLayouts:
    """Two layouts at one batch; each point takes the better layout, the first on a tie."""

    first: FixedPointModel
    second: FixedPointModel

    @property
    def words(self) -> Mapping[str, str | int | float | None]:
        """The columns that do not vary."""
        return {name: word for name, word in self.first.words.items() if name not in VARIES}

    def __call__(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray | CodedColumn]:
        """Columns as of one layout."""
        (mine, score), (theirs, other_score) = (
            model.scored(values) for model in (self.first, self.second)
        )
        keeps, other_keeps = (
            np.asarray(columns["status"]) == OPTIMAL for columns in (mine, theirs)
        )
        cheaper = other_score < score * (1 - SAME_PRICE)
        nearer = np.asarray(theirs["short_by"]) < np.asarray(mine["short_by"])
        second = np.where(keeps | other_keeps, other_keeps & (cheaper | ~keeps), nearer)
        second = second & self.second.cuts(values)
        names = dict.fromkeys((*mine, *theirs))
        nothing = CodedColumn(np.zeros(second.size, dtype=np.int64), (None,))
        return {n: _either(second, mine.get(n, nothing), theirs.get(n, nothing)) for n in names}


def _either(
    second: np.ndarray, mine: np.ndarray | CodedColumn, theirs: np.ndarray | CodedColumn
) -> np.ndarray | CodedColumn:
    if isinstance(mine, CodedColumn) and isinstance(theirs, CodedColumn):
        codes = np.where(second, theirs.codes + len(mine.words), mine.codes)
        return CodedColumn(codes, (*mine.words, *theirs.words))
    return np.where(second, np.asarray(theirs), np.asarray(mine))


def _bands(
    step: Step, columns: Mapping[str, object], batch: np.ndarray
) -> dict[str, np.ndarray | CodedColumn]:
    """Lower and upper columns of each error band, and the `outside` column of extrapolations."""
    task, rests = step.task, coefficient_shares(step, batch)
    beyond = extrapolation_masks(task, step.layouts, batch)
    ends: dict[str, np.ndarray | CodedColumn] = {}
    prices = columns.get("usd_per_mtok_input"), columns.get("usd_per_mtok_output")
    for name in BANDS:
        value = columns.get(name)
        if isinstance(value, float | np.ndarray):
            time = "ttft" if name == "ttft" or task.mode == "prefill" else "tpot"
            low, high = task.profile.band_ends(name, rests[time], beyond)
            if task.drafts:
                low, high = with_accepted(task, name, (low, high), prices)
            floor = np.minimum(np.asarray(columns[f"{name}_bound"]), value)
            ends |= {f"{name}_low": np.maximum(value * low, floor),
                     f"{name}_high": np.maximum(value * high, floor)}  # fmt: skip
    return {**ends, "outside": extrapolation_column(task, step.layouts, batch, rests)}


def _timed(task: Task, chosen: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    if task.uses_bound:
        return {roof: chosen[f"roof.{roof}"] for roof in ROOFS}
    if task.mode == "prefill":
        return {"prefill": np.zeros(1)}
    return {part: chosen[f"part.{part}"] for part in STEP_PARTS}


def build_vectorized_model(
    scenario: Scenario, ends: Mapping[str, np.ndarray]
) -> FixedPointModel | TwoLayouts | None:
    """The model of a scenario with one layout, whole or halved, and one batch; else None.

    `ends` are the least and the most of each number that varies, for which the same must hold.
    Raises InputError as `planner.solve` does.
    """
    resolved = resolve(scenario)
    if len(resolved.tasks) != 1 or resolved.pools:
        return None
    task = resolved.tasks[0]
    fixed = task.batches is not None and len(task.batches) == 1
    emitted = [min(values) for name, values in ends.items() if LENGTHS.get(name) == "output_tokens"]
    one_token = task.mode == "aggregated" and any(least <= 1 for least in emitted)
    if task.arrivals is not None or not fixed or one_token:
        return None
    if scenario.objective == "energy" and task.power is None:
        return None
    # The largest batch admits halved layouts; `cuts` tests each batch for halving later.
    layouts = admissible_layouts(replace(task, batches=(LARGEST_BATCH,) if task.batches else None))
    # Layouts may differ only in halves and engines: not every engine runs two-batch overlap.
    ways = [column for name, column in vars(layouts).items() if name not in ("halves", "engines")]
    if len(layouts) > 2 or np.unique(ways, axis=1).shape[1] > 1:
        return None
    alone = [layouts.take(np.array([i])) for i in range(len(layouts))]
    models = [FixedPointModel(scenario, task, each, _words(task, each)) for each in alone]
    model = models[0] if len(models) == 1 else TwoLayouts(*models)
    model(ends)
    if task.loop is not None and not all(each.fits(ends) for each in models):
        return None  # where some requests wait for a place the batch follows from the room
    return model


def _words(task: Task, layouts: Layouts) -> dict[str, str | int | float | None]:
    """Columns that do not vary with the numbers, with the labels of a plan."""
    layout = layouts.row(0)
    redundant = task.redundant if task.sizes.n_experts else None
    chips, replicas = int(layouts.chips[0]), int(layouts.replicas[0])
    _, batch, fill = fixed_batches(Step(task, layouts, bound=task.uses_bound))
    return {
        "chips": chips,
        "batch": max(1, round(float(batch[0]) * replicas * float(fill[0]))),
        "layout": pools_text({"layout": layout, "redundant_experts": redundant}),
        "mode": task.mode,
        "chip": task.chip.name,
        "weights": task.sizes.weight_dtype["routed" if task.sizes.n_experts else "dense_ffn"],
        "kv": task.sizes.kv_dtype,
        **{name: layout[name] for name in LAYOUT},
    }


def _verdict(
    task: Task, values: Mapping[str, np.ndarray], count: int
) -> dict[str, np.ndarray | CodedColumn]:
    """Columns `status`, `short_by` and `reason`: broken promises per point, the worst first.

    Times are those at the quantile at which promises must hold.
    """
    limits = task.limits
    broken = np.stack(
        [np.broadcast_to(values[name] > limit, count) for name, limit in limits.items()]
    )
    lost = broken.any(axis=0)
    status = np.where(lost, INFEASIBLE, OPTIMAL)
    if not lost.any():
        return {"status": status, "short_by": np.full(count, np.nan)}
    short = np.stack(
        [np.broadcast_to(values[name] / limit, count) for name, limit in limits.items()]
    )
    short = np.where(broken, short, 0.0)
    order = np.argsort(-short, axis=0, kind="stable")
    places = np.where(np.take_along_axis(broken, order, axis=0), order + 1, 0)
    # A list of places is one number, which sorts faster.
    numbers = RADIX ** np.arange(len(limits)) @ places
    _, first, codes = np.unique(numbers, return_index=True, return_inverse=True)
    names = [PROMISES[name] for name in limits]
    lists = (", ".join(names[place - 1] for place in row if place) for row in places[:, first].T)
    return {
        "status": status,
        "short_by": np.where(lost, short.max(axis=0), np.nan),
        "reason": CodedColumn(codes, tuple(text or None for text in lists)),
    }


def with_arrays(task: Task, scenario: Scenario, values: Mapping[str, np.ndarray]) -> Task:
    """The task with arrays of shape (n,) in place of the numbers that the paths mean.

    `scenario` is one of the points, from which what is not varied is taken; batches are no part of
    a task.
    """
    changes: dict[str, Any] = {TASK[n]: v for n, v in values.items() if n in TASK}
    for name in RENTS:
        if name in values:
            changes["price"] = values[name] + task.electricity
    changes |= _lengths(task, scenario, values)
    made = {PROMISE_FIELDS[name]: value for name, value in values.items() if name in PROMISE_FIELDS}
    if made:
        promises = scenario.promises.model_copy(update=made)
        varied = scenario.model_copy(update={"promises": promises})
        changes["promises"] = checked_promises(task.mode, varied, pooled=False)
    chip: dict[str, Any] = {CHIP[name]: value for name, value in values.items() if name in CHIP}
    peaks = {MATH[n.removeprefix(PEAKS)]: v for n, v in values.items() if n.startswith(PEAKS)}
    if peaks:
        chip["flops"] = MappingProxyType({**task.chip.flops, **peaks})
    if chip:
        changes["chip"] = replace(task.chip, **chip)
    return replace(task, **changes)


def _lengths(task: Task, scenario: Scenario, values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Lengths of prompts and answers, and the context that follows from them."""
    load = scenario.workload
    varied = {LENGTHS[name]: value for name, value in values.items() if name in LENGTHS}
    if not varied:
        return {}
    both = {name: replace(getattr(load, name), mean=value) for name, value in varied.items()}
    load = load.model_copy(update=both)
    prompt = load.input_tokens.mean
    return {**varied, "context": prompt if task.mode == "prefill" else context(load)}
