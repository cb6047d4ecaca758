"""Data of a serving question for a page that searches by itself, or the reason of refusal."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from formulas.numerics.javascript import StagedScript, to_javascript
from planner.problems.serving.deployment.missed_promises import PHYSICAL_LIMITS
from planner.problems.serving.deployment.plain_plans import (
    DOMAINS,
    HALVES,
    MAX_DOMAINS,
    OUTSIDE_FIT,
    STAGES,
)
from planner.problems.serving.deployment.promise_chances import PROMISE_TIMES
from planner.problems.serving.live import scenario_values
from planner.problems.serving.live.pool_bands import (
    CONSTANTS,
    hull_dimensions,
    pool_bands,
    time_bands,
)
from planner.problems.serving.live.pool_rows import DIGITS, ColumnTable, PoolRows, chain
from planner.problems.serving.outputs import ABSENT, OUTPUTS
from planner.problems.serving.pairs.pool_pairs import FIRST_SPLITS, MAX_SPLITS, MAX_TIES, N_PAIRS
from planner.problems.serving.parameters import serving_parameters
from planner.problems.serving.plan import ServingPlan
from planner.problems.serving.point import layout_text
from planner.problems.serving.question import Scenario
from planner.problems.serving.search.admitted_layouts import admissible_layouts
from planner.problems.serving.search.batch import SAME_PRICE
from planner.problems.serving.search.sizing import MAX_BISECTIONS, PROMPTS_PER_RANK, STEP
from planner.problems.serving.step.drafting import resident
from planner.problems.serving.step.kernels import STEP_PARTS, get_kernel
from planner.problems.serving.step.layouts import AXES
from planner.problems.serving.step.occupancy import LARGEST_BATCH
from planner.problems.serving.step.runnable import tied_stages
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.plan_limits import LIMITS
from planner.problems.serving.task.resolve import ServingTasks, resolve
from planner.problems.serving.task.task import Task, TaskPair
from planner.protocol.live_page import LivePage, Slider
from planner.scenario.keys.workload import Distribution
from planner.text.errors import InputError
from planner.text.quantities import needs_unit
from planner.text.tolerances import TIE

WAITING = "of more requests in flight than memory holds some wait: planner solve says how long"
# Factor on an input; the slider must then change the symbols as a changed scenario does.
CHECK_FACTOR = 1.07
CHECK_TOLERANCE = 1e-12
# Scripts of every page, and those of a load, of two pools, and of both.
SCRIPTS = ("bands.js", "bound_pool.js", "search.js")
LOAD_SCRIPTS, PAIRS, LOADED_PAIRS = (("crowding.js",), ("search_pools.js",), ("load_pools.js",))
WORKER_SCRIPTS = ("packing.js", "load.js")  # of a load or of two pools
FIXED = (
    "the model and its formats, the chips and their number, the shape of the network, the "
    "calibration of the engine and the ratio of its band are those of the scenario",
    "links scale rates, not latencies",
)


@dataclass(frozen=True)
class PageModel:
    """A question with its tasks and plan, the source of a page."""

    scenario: Scenario
    tasks: ServingTasks
    plan: ServingPlan

    @cached_property
    def every(self) -> tuple[Task, ...]:
        """Tasks of one pool, and then of either pool of each pair."""
        return _every(self.tasks)

    @cached_property
    def rows(self) -> tuple[scenario_values.SliderRow, ...]:
        """Sliders that have a value in this question and the effect of a scenario change."""
        return tuple(row for row in scenario_values.SLIDER_ROWS if row.label not in self.unmoved)

    @cached_property
    def unmoved(self) -> dict[str, str]:
        """Labels of the sliders that the page leaves out, and why."""
        pairs = ((row.label, self._unmoved(row)) for row in scenario_values.SLIDER_ROWS)
        return {label: why for label, why in pairs if why}

    @cached_property
    def sliders(self) -> tuple[Slider, ...]:
        """The sliders of the page."""
        return (*(self._slider(row) for row in self.rows), *self._batch())

    def _batch(self) -> Iterator[Slider]:
        """Yield a slider of the batch over all replicas (unset: largest), if it may move."""
        batch, reads = self.plan.batch, any(x.mode == "prefill" for x in self.tasks.tasks)
        # A given batch may be best on other numbers of chips than those that a free one is.
        paid = len({*self.every[0].chips}) > 1 and not self.tasks.pools
        users = self.scenario.workload.concurrency
        if users is not None and not paid:
            yield Slider("batch", "Requests in flight", "Load", "seq", float(users),
                         max(1.0, users // 8), 8.0 * users, {"workload.concurrency": float(users)},
                         whole=True)  # fmt: skip
        elif (
            self.scenario.choose.batch is None
            and batch
            and not (reads or paid or self.every[0].loaded)
        ):
            high = 10 ** np.ceil(np.log10(4.0 * batch))
            yield Slider("batch", "Sequences in flight", "Batch", "seq", None, 1.0, float(high),
                         {"choose.batch": 0.0}, whole=True)  # fmt: skip

    def _carried(self) -> dict[str, Any]:
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
        """Build the page: the search as a script, the layouts as data, and the sliders."""
        if refused := self.refused():
            return LivePage(refused=refused)
        kernels, table = _Kernels([], []), ColumnTable()
        bands, fits = _Distinct([]), _Distinct([])
        equations, letters = chain(self.plan)
        shown = {"T_wait", *(x.symbol for x in equations), *(x.symbol for x in letters)}
        pools = [self._pool(task, kernels, table, bands, fits, shown) for task in self.every]
        first, *others = [pool["values"] for pool in pools]
        shared = {k: v for k, v in first.items() if all(each.get(k) == v for each in others)}
        for pool in pools:
            pool["values"] = {k: v for k, v in pool["values"].items() if k not in shared}
        pairs = [self._pair(number, pair, kernels) for number, pair in enumerate(self.tasks.pools)]
        questions = [*({"pool": k} for k in range(len(self.tasks.tasks))), *pairs]
        data = {**self._words(), **table.document(), "kernels": kernels.documents, "pools": pools,
                "questions": questions, "bands": bands.every, "fits": fits.every,
                "values": shared}  # fmt: skip
        here = files("planner.problems.serving.live")
        script = "\n".join(here.joinpath(name).read_text("utf-8") for name in self._scripts())
        left = [f"{label}: {why}" for label, why in self.unmoved.items()]
        return LivePage(
            script, f"[{','.join(kernels.scripts)}]", data, self.sliders, equations, letters,
            fixed=(*FIXED, *left, *([WAITING] if self.every[0].loop is not None else [])),
        )  # fmt: skip

    def _scripts(self) -> tuple[str, ...]:
        loaded = any(task.arrivals is not None for task in self.every)
        paired = bool(self.tasks.pools)
        return (
            *SCRIPTS, *(WORKER_SCRIPTS if loaded or paired else ()),
            *(LOAD_SCRIPTS if loaded else ()),
            *(PAIRS if paired else ()), *(LOADED_PAIRS if loaded and paired else ()),
        )  # fmt: skip

    def _pool(
        self, task: Task, kernels: _Kernels, table: ColumnTable, bands: _Distinct, fits: _Distinct,
        shown: Collection[str],
    ) -> dict[str, Any]:  # fmt: skip
        """The rows of a task, with the numbers of its kernels, bands and hull."""
        chosen = self.scenario.choose.cp is not None
        used = (*self.plan.pools, *([self.plan.answer.current] if self.plan.answer.current else []))
        ways = [pool.layout.dcp for pool in used if pool.layout is not None]
        ranks = tuple(sorted({1, *ways}))
        rows = PoolRows.of(task, self.longest, parts_chosen=chosen, ranks=ranks)
        made, follow = rows.script(shown), scenario_values.following(task, self.scenario)
        after = to_javascript(follow.tape, {}, {"batch": follow.outputs})
        numbers = {"kernel": kernels.number(made), "follow": kernels.number(after)}
        numbers |= {
            "band": bands.number(pool_bands(rows)),
            "fit": fits.number(hull_dimensions(rows)),
        }
        numbers |= time_bands(rows)
        document = rows.document(made, table)
        document["values"] |= scenario_values.demand_symbols(self.scenario)
        return {**document, **numbers}

    def _pair(self, number: int, pair: TaskPair, kernels: _Kernels) -> dict[str, Any]:
        """Two pools by the indices of their rows, and the kernel of their joint outputs."""
        powered = all(task.power is not None for task in pair.tasks)
        tape = get_kernel("whole_pools", pair.load, powered)
        whole = to_javascript(tape.tape, {}, {"batch": tape.outputs})
        place = len(self.tasks.tasks) + 2 * number
        numbers = {"read": place, "decode": place + 1, "kernel": kernels.number(whole)}
        # Without a chosen mode, a given batch implies a single pool, as in `modes`.
        batched = "disaggregated" in (self.scenario.choose.mode or ())
        return {**_pair(pair), **numbers, "batched": batched}

    def _words(self) -> dict[str, Any]:
        """Data shared by all pools: outputs, sliders, names, and the plan as Python has it."""
        outputs = ("name", "label", "unit", "word", "scale", "promise")
        moves = ("name", "sets", "adds", "times", "limit", "inverse")
        shown = [x for x in OUTPUTS if x.word != "grams_per_token" or self.every[0].carbon]
        return {
            "letters": DIGITS,
            "largest_batch": LARGEST_BATCH,
            "same_price": SAME_PRICE,
            "tie": TIE,
            "constants": {
                **CONSTANTS,
                "axes": list(AXES),
                "odd": [OUTSIDE_FIT, DOMAINS, STAGES, HALVES, MAX_DOMAINS],
            },
            "physics": list(PHYSICAL_LIMITS),
            "parts": list(STEP_PARTS),
            "every": PROMPTS_PER_RANK,
            "stride": STEP,
            "absent": {mode: list(names) for mode, names in ABSENT.items()},
            "outputs": [{name: getattr(x, name) for name in outputs} for x in shown],
            "titles": {limit.step: limit.title or limit.name for limit in LIMITS.values()},
            "promises": [{"name": name, "step": LIMITS[name].step} for name in PROMISE_TIMES],
            "carried": self._carried(),
            "sliders": [
                {**{name: getattr(row, name) for name in moves}, "value": slider.value}
                for row, slider in zip(self.rows, self.sliders, strict=False)
            ],
        }

    def refused(self) -> str:
        """Reason why the page cannot search by itself; empty if it can."""
        reasons = (
            *map(scenario_values.refused_pair, self.tasks.pools),
            *map(scenario_values.refused_task, self.every),
        )
        if self.scenario.workload.concurrency and self.plan.batch:
            reasons = (*reasons, WAITING * (self.plan.batch < self.scenario.workload.concurrency))
        return next(filter(None, reasons), "")

    def _slider(self, row: scenario_values.SliderRow) -> Slider:
        value = scenario_values.scenario_value(row, self.scenario, self.every[0]) or 0.0
        low, high = row.ends if row.ends[1] else (value / row.span, value * row.span)
        if row.whole:
            low, high = max(2.0, np.ceil(low)), np.floor(high)
        most = self.every[0].sizes.max_context
        if row.unit == "token" and most is not None:
            load = self.scenario.workload
            beside = load.output_tokens if row.name == "input" else load.input_tokens
            high = max(value, min(high, most - beside.mean))
        unit, written = row.unit, row.unit if needs_unit(row.unit) else ""
        if row.path == "workload.demand":
            tokens = bool(scenario_values.token_demand(self.scenario))
            unit, written = ("token/s", "tokens/s") if tokens else (unit, "requests/s")
        return Slider(
            row.name, row.label, row.group, unit, value, float(low), float(high),
            self._paths(row), whole=row.whole, logarithmic=not row.ends[1], written=written,
        )  # fmt: skip

    def _paths(self, row: scenario_values.SliderRow) -> dict[str, float]:
        """Paths that a slider sets as by `--set`, with the values of the scenario."""
        if not row.path:
            return {}
        if row.path == "system.flops":
            return {f"{row.path}.{unit}": rate for unit, rate in self.every[0].chip.flops.items()}
        base = float(scenario_values.scenario_value(row, self.scenario, self.every[0]) or 0.0)
        lengths = getattr(self.scenario.workload, row.path.partition(".")[2], None)
        if isinstance(lengths, Distribution) and (lengths.cv or lengths.quantiles):
            return {} if lengths.quantiles else {f"{row.path}.mean": base}
        return {row.path: base}

    def _unmoved(self, row: scenario_values.SliderRow) -> str:
        """Reason why a slider is left out; empty if it is included or sets no scenario path."""
        value = scenario_values.scenario_value(row, self.scenario, self.every[0])
        if value is None:
            return "nothing is promised of it"
        hardware = len(self.tasks.hardware)
        if hardware > 1 and (row.group == "Hardware" or row.name == "price") and row.path:
            return "the scenario compares several systems"
        if not row.path:
            return ""
        # Find a symbol that a changed scenario would set differently from the slider.
        to = {row.name: value * CHECK_FACTOR if value else 0.1}
        varied = self._varied(row, to[row.name])
        if varied is None:
            return "no scenario has another value of it"
        others = _every(varied)
        if len(others) != len(self.every):
            return "another value lets in other formats"
        for task, changed in zip(self.every, others, strict=True):
            layouts = Step(task, admissible_layouts(task), bound=task.uses_bound).layouts
            mine, after = (_symbols(each, layouts) for each in (task, changed))
            predicted = scenario_values.apply_sliders((row,), mine, task, self.scenario, to)
            for name in after:
                if not np.allclose(predicted[name], after[name], rtol=CHECK_TOLERANCE, atol=0):
                    return f"it moves more than this page recomputes ({name})"
        return ""

    def _varied(self, row: scenario_values.SliderRow, value: float) -> ServingTasks | None:
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
    pairs = ((x.prefill, x.decode.with_layout(arrivals=None)) for x in tasks.pools)
    return (*tasks.tasks, *(task for pair in pairs for task in pair))


def _symbols(task: Task, layouts: Any) -> dict[str, Any]:
    step = Step(task, layouts, bound=task.uses_bound)
    return step.values(np.ones(len(layouts)))


@dataclass(frozen=True)
class _Kernels:
    """Distinct kernels as JavaScript, and the order of their arguments and outputs."""

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


@dataclass(frozen=True)
class _Distinct:
    """Values of pools, equal ones once."""

    every: list[Any]

    def number(self, value: Any) -> int:
        """The place of a value, where it is put if it is not there yet."""
        if value not in self.every:
            self.every.append(value)
        return self.every.index(value)


def _pair(pair: TaskPair) -> dict[str, Any]:
    """Data of two pools: their split of the chips, and the network between them."""
    first, last = pair.tasks
    # Numbers of chips that pairs are tried on; most of throughput is that on the most.
    paid = sorted({int(chips) for chips in pair.prefill.chips})
    most = pair.prefill.objective == "throughput" and pair.demand is None
    return {
        "rate": pair.rate,
        "loaded": pair.demand is not None,
        "busiest": [MAX_BISECTIONS, float(np.finfo(float).tiny ** 0.5)],
        "first": [N_PAIRS, FIRST_SPLITS, MAX_SPLITS, MAX_TIES],
        "latency": pair.latency,
        "drafted": resident(first).get("b_store", 0.0),
        "together": pair.together,
        "tied": tied_stages(),
        "units": [first.unit, last.unit],
        "paid": (paid[-1:] if most else paid),
        "reads": list(first.limits_of.get("replicas", (0,))),
        "decodes": list(last.limits_of.get("replicas", (0,))),
        "spare": first.spare,
        "headroom": first.headroom,
        "throughput": first.objective == "throughput",
    }
