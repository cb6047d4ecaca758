"""What a serving question offers to a page that searches by itself, or why it offers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from formulas.numerics.javascript import StagedScript, staged
from planner.problems.serving.deployment.missed_promises import PHYSICS
from planner.problems.serving.deployment.pool_pairs import FEW, KEPT, MOST_TIED, POINTS
from planner.problems.serving.live.equation_chain import chain
from planner.problems.serving.live.pool_rows import DIGITS, ColumnTable, PoolRows, fitted_ranges
from planner.problems.serving.live.scenario_values import (
    ROWS,
    SliderRow,
    demanded,
    following,
    moved,
    scenario_value,
    tokens_asked,
)
from planner.problems.serving.outputs import ABSENT, OUTPUTS
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.plan import ServingPlan
from planner.problems.serving.point import layout_text
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.batch import SAME_PRICE, layouts_of, memory_rises
from planner.problems.serving.search.sizing import EVERY, HALVINGS, STEP
from planner.problems.serving.step.drafting import resident
from planner.problems.serving.step.engine_effects import slows
from planner.problems.serving.step.kernels import PARTS, lowered
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import LIMITS
from planner.problems.serving.task.resolve import ServingTasks, resolve
from planner.protocol.live_page import LivePage, Slider
from planner.scenario.keys.workload import Distribution
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.problems.serving.task.task import Task, TaskPair

NUDGE = 1.07  # of a quantity, at which what a slider moves is compared with what a scenario would
CLOSE = 1e-12
# Scripts of every page, and those of a load, of two pools, and of both.
SCRIPTS = ("bound_pool.js", "search.js")
LOADED, PAIRED, LOADED_PAIRS = ("crowding.js",), ("search_pools.js",), ("load_pools.js",)
BESIDE = ("packing.js", "load.js")  # of a load or of two pools
FIXED = (
    "the model and its formats, the chips and their number, the shape of the network, the "
    "calibration of the engine and the ratio of its band are those of the scenario",
    "links scale rates, not latencies",
)


@dataclass(frozen=True)
class PageModel:
    """A question with its tasks, from which a page is made."""

    scenario: Scenario
    tasks: ServingTasks
    plan: ServingPlan

    @cached_property
    def every(self) -> tuple[Task, ...]:
        """Tasks of one pool, and then of either pool of each pair."""
        return _every(self.tasks)

    @cached_property
    def rows(self) -> tuple[SliderRow, ...]:
        """Sliders that this question has a value for, and that move what a scenario would."""
        return tuple(row for row in ROWS if row.label not in self.unmoved)

    @cached_property
    def unmoved(self) -> dict[str, str]:
        """Labels of the sliders that the page leaves out, and why."""
        pairs = ((row.label, self._unmoved(row)) for row in ROWS)
        return {label: why for label, why in pairs if why}

    @cached_property
    def sliders(self) -> tuple[Slider, ...]:
        """The sliders of the page."""
        return (*(self._slider(row) for row in self.rows), *self._batch())

    def _batch(self) -> Iterator[Slider]:
        """The batch over all replicas, the largest allowed where nobody says; none of prompts."""
        batch, reads = self.plan.batch, any(x.mode == "prefill" for x in self.tasks.tasks)
        if self.scenario.choose.batch is None and batch and not (reads or self.every[0].loaded):
            high = 10 ** np.ceil(np.log10(4.0 * batch))
            yield Slider("batch", "Sequences in flight", "Batch", "seq", None, 1.0, float(high),
                         {"choose.batch": 0.0}, whole=True)  # fmt: skip

    def _carried(self) -> dict[str, Any]:
        """The plan as Python has it, with which the page compares its own."""
        point = self.plan.point
        if point is None:
            return {"layout": "", "outputs": {}}
        values = {x.name: getattr(point, x.name) for x in OUTPUTS}
        outputs = {name: float(value) for name, value in values.items() if value}
        return {"layout": layout_text(point), "outputs": outputs}

    @property
    def longest(self) -> float:
        """The longest prompt that a slider asks for [token]."""
        highs = [slider.high for slider in self.sliders if slider.name == "input"]
        return max([*highs, self.scenario.workload.input_tokens.mean])

    def page(self) -> LivePage:
        """The search as a script, the layouts as data, and what may be moved."""
        if refused := self.refused():
            return LivePage(refused=refused)
        kernels, table = _Kernels([], []), ColumnTable()
        pools = [self._pool(task, kernels, table) for task in self.every]
        pairs = [self._pair(number, pair, kernels) for number, pair in enumerate(self.tasks.pools)]
        questions = [*({"pool": k} for k in range(len(self.tasks.tasks))), *pairs]
        fits = [fitted_ranges(task) for task in self.every]
        distinct = [fit for place, fit in enumerate(fits) if fit not in fits[:place]]
        pools = [
            {**pool, "fit": distinct.index(fit)} for pool, fit in zip(pools, fits, strict=True)
        ]
        data = {**self._words(), **table.document(), "kernels": kernels.documents, "pools": pools,
                "questions": questions, "fits": distinct}  # fmt: skip
        here = files("planner.problems.serving.live")
        script = "\n".join(here.joinpath(name).read_text("utf-8") for name in self._scripts())
        left = [f"{label}: {why}" for label, why in self.unmoved.items()]
        return LivePage(
            script, f"[{','.join(kernels.scripts)}]", data, self.sliders, *chain(self.plan),
            fixed=(*FIXED, *left),
        )  # fmt: skip

    def _scripts(self) -> tuple[str, ...]:
        """The scripts that these questions are searched by."""
        loaded = any(task.arrivals is not None for task in self.every)
        paired = bool(self.tasks.pools)
        return (
            *SCRIPTS, *(BESIDE if loaded or paired else ()), *(LOADED if loaded else ()),
            *(PAIRED if paired else ()), *(LOADED_PAIRS if loaded and paired else ()),
        )  # fmt: skip

    def _pool(self, task: Task, kernels: _Kernels, table: ColumnTable) -> dict[str, Any]:
        """The rows of a task, with the numbers of its kernels."""
        chosen = self.scenario.choose.cp is not None
        rows = PoolRows.of(task, self.longest, parts_chosen=chosen)
        made, follow = rows.script(), following(task, self.scenario)
        after = staged(follow.tape, {}, {"batch": follow.outputs})
        numbers = {"kernel": kernels.number(made), "follow": kernels.number(after)}
        document = rows.document(made, table)
        document["values"] |= demanded(self.scenario)
        return {**document, **numbers}

    def _pair(self, number: int, pair: TaskPair, kernels: _Kernels) -> dict[str, Any]:
        """Two pools by the numbers of their rows, and what they give together."""
        powered = all(task.power is not None for task in pair.tasks)
        tape = lowered("whole_pools", pair.load, powered)
        whole = staged(tape.tape, {}, {"batch": tape.outputs})
        place = len(self.tasks.tasks) + 2 * number
        numbers = {"read": place, "decode": place + 1, "kernel": kernels.number(whole)}
        # Where nobody chooses the mode, a given batch is one of a single pool: as `modes`.
        batched = "disaggregated" in (self.scenario.choose.mode or ())
        return {**_pair(pair), **numbers, "batched": batched}

    def _words(self) -> dict[str, Any]:
        """What all pools share: outputs, sliders, names, and the plan as Python has it."""
        outputs = ("name", "label", "unit", "word", "scale", "promise")
        moves = ("name", "sets", "adds", "times", "limit", "inverse")
        shown = [x for x in OUTPUTS if x.word != "grams_per_token" or self.every[0].carbon]
        return {
            "letters": DIGITS,
            "largest_batch": LARGEST_BATCH,
            "same_price": SAME_PRICE,
            "physics": list(PHYSICS),
            "parts": list(PARTS),
            "every": EVERY,
            "stride": STEP,
            "absent": {mode: list(names) for mode, names in ABSENT.items()},
            "outputs": [{name: getattr(x, name) for name in outputs} for x in shown],
            "titles": {limit.step: limit.title or limit.name for limit in LIMITS.values()},
            "carried": self._carried(),
            "sliders": [
                {**{name: getattr(row, name) for name in moves}, "value": slider.value}
                for row, slider in zip(self.rows, self.sliders, strict=False)
            ],
        }

    def refused(self) -> str:
        """Why the page cannot search by itself; empty if it can."""
        refused = (*map(_refused_pair, self.tasks.pools), *map(_refused, self.every))
        return next(filter(None, refused), "")

    def _slider(self, row: SliderRow) -> Slider:
        value = scenario_value(row, self.scenario, self.every[0]) or 0.0
        low, high = row.ends if row.ends[1] else (value / row.span, value * row.span)
        if row.whole:
            low, high = max(2.0, np.ceil(low)), np.floor(high)
        most = self.every[0].sizes.max_context
        if row.unit == "token" and most is not None:
            load = self.scenario.workload
            beside = load.output_tokens if row.name == "input" else load.input_tokens
            high = max(value, min(high, most - beside.mean))
        unit, written = row.unit, ""
        if row.path == "workload.demand":
            tokens = bool(tokens_asked(self.scenario))
            unit, written = ("token/s", "tokens/s") if tokens else (unit, "requests/s")
        return Slider(
            row.name, row.label, row.group, unit, value, float(low), float(high),
            self._paths(row), whole=row.whole, logarithmic=not row.ends[1], written=written,
        )  # fmt: skip

    def _paths(self, row: SliderRow) -> dict[str, float]:
        """What `--set` takes for a slider, with the values of the scenario."""
        if not row.path:
            return {}
        if row.path == "system.flops":
            return {f"{row.path}.{unit}": rate for unit, rate in self.every[0].chip.flops.items()}
        base = float(scenario_value(row, self.scenario, self.every[0]) or 0.0)
        lengths = getattr(self.scenario.workload, row.path.partition(".")[2], None)
        if isinstance(lengths, Distribution) and (lengths.cv or lengths.quantiles):
            return {} if lengths.quantiles else {f"{row.path}.mean": base}
        return {row.path: base}

    def _unmoved(self, row: SliderRow) -> str:
        """Why a slider is left out; empty if it is there, or the question has nothing to move."""
        value = scenario_value(row, self.scenario, self.every[0])
        if value is None:
            return "nothing is promised of it"
        hardware = len(self.tasks.hardware)
        if hardware > 1 and (row.group == "Hardware" or row.name == "price") and row.path:
            return "the scenario compares several systems"
        if row.path:
            return self._differs(row, value)
        return ""

    def _differs(self, row: SliderRow, value: float) -> str:
        """Which symbol a scenario would change otherwise than the slider does."""
        to = {row.name: value * NUDGE if value else 0.1}
        varied = self._varied(row, to[row.name])
        if varied is None:
            return "no scenario has another value of it"
        others = _every(varied)
        if len(others) != len(self.every):
            return "another value lets in other formats"
        for task, changed in zip(self.every, others, strict=True):
            layouts = Step(task, layouts_of(task), bound=task.uses_bound).layouts
            mine, after = (_symbols(each, layouts) for each in (task, changed))
            predicted = moved((row,), mine, task, self.scenario, to)
            for name in after:
                if not np.allclose(predicted[name], after[name], rtol=CLOSE, atol=0):
                    return f"it moves more than this page recomputes ({name})"
        return ""

    def _varied(self, row: SliderRow, value: float) -> ServingTasks | None:
        """The tasks of the scenario with another value where a slider moves it."""
        paths = {row.path, f"system.0.{row.path.removeprefix('system.')}"}
        scenario = self.scenario
        if row.name == "cached":
            load = scenario.workload.model_copy(update={"cached_input": value})
            return resolve(scenario.model_copy(update={"workload": load}))
        for parameter in serving_parameters(scenario, self.tasks.hardware):
            if parameter.path in paths and parameter.to is not None:
                try:
                    base = 1.0 if row.times else (parameter.value or 1.0)
                    return resolve(parameter.to(value / base))
                except InputError:
                    return None
        return None


def _every(tasks: ServingTasks) -> tuple[Task, ...]:
    """Tasks of one pool, then of either pool of each pair; the one that decodes knows no queue."""
    pairs = ((x.prefill, x.decode.with_layout(arrivals=None)) for x in tasks.pools)
    return (*tasks.tasks, *(task for pair in pairs for task in pair))


def _symbols(task: Task, layouts: Any) -> dict[str, Any]:
    step = Step(task, layouts, bound=task.uses_bound)
    return step.values(np.ones(len(layouts)))


@dataclass(frozen=True)
class _Kernels:
    """Kernels as JavaScript, equal ones once, and the order of what each takes and gives."""

    scripts: list[str]
    documents: list[dict[str, Any]]

    def number(self, script: StagedScript) -> int:
        """The place of a kernel, where it is put if it is not there yet."""
        if script.text not in self.scripts:
            self.scripts.append(script.text)
            names = [" ".join(each) for each in script.names]
            outputs = {name: " ".join(each) for name, each in script.outputs.items()}
            self.documents.append({"names": names, "width": script.width, "functions": outputs})
        return self.scripts.index(script.text)


def _refused(task: Task) -> str:
    """Why a page cannot search a task by itself; empty if it can."""
    if task.uses_bound and task.arrivals is not None:
        return "the roofline knows no queue: what load its plan bears is worked out in Python"
    if task.uses_bound and memory_rises(Step(task, layouts_of(task), bound=True)).any():
        return "on-chip memory holds all weights: the price on the roofline turns with the batch"
    if task.load == "most" and not task.pooled:
        return "how much the promises let a fleet serve is sought by bisection in Python"
    if task.loop is not None or task.static:
        return "in a closed loop first tokens wait for the prompts of others"
    if task.engine and slows(task):
        return "the engine's older kernels slow a step in a way that follows the batch"
    if task.conversations:
        return "room for caches is counted by chance, which this page does not"
    return ""


def _pair(pair: TaskPair) -> dict[str, Any]:
    """How two pools share the chips, and the network between them."""
    first, last = pair.tasks
    return {
        "rate": pair.rate,
        "loaded": pair.demand is not None,
        "busiest": [HALVINGS, float(np.finfo(float).tiny ** 0.5)],
        "first": [KEPT, FEW, POINTS, MOST_TIED],
        "latency": pair.latency,
        "drafted": resident(first).get("b_store", 0.0),
        "together": pair.together,
        "paid": sorted({int(chips) for chips in first.chips}),
        "reads": list(first.limits_of.get("replicas", (0,))),
        "decodes": list(last.limits_of.get("replicas", (0,))),
        "spare": first.spare,
        "headroom": first.headroom,
        "throughput": first.objective == "throughput",
    }


def _refused_pair(pair: TaskPair) -> str:
    """Why a page cannot search two pools by itself; empty if it can."""
    first, last = pair.tasks
    if pair.demand is None and first.arrivals is not None:
        return "how much the promises let two pools serve is sought by bisection in Python"
    if first.objective in ("latency", "energy") or first.electricity or last.electricity:
        return (
            "two pools of least latency or energy, or that pay their power, are weighed in Python"
        )
    if "e2e" in last.promises:
        return "a promise on the whole request ties two pools closer than this page does"
    if resident(first).get("R_bnd_mem"):
        return "of a drafter whose cache a window bounds, what is sent is worked out in Python"
    return ""
