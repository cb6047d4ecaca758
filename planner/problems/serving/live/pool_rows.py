"""One pool as a page carries it: every layout a row, columns as distinct values and indices.

The equations of a plan from the price down to bytes, set in MathML, with their letters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from formulas.algebra.equation import Equation
from formulas.export.typesetting.layout import layout, relation
from formulas.export.typesetting.markup import mathml
from formulas.nomenclature.symbols import SYMBOLS, meaning, symbol_unit
from formulas.numerics.javascript import BATCH, LAYOUT, StagedScript, to_javascript
from planner.problems.serving.closed_form import closed_form
from planner.problems.serving.outputs import OUTPUTS
from planner.problems.serving.search.admitted_layouts import admissible_layouts, grows
from planner.problems.serving.step import equations
from planner.problems.serving.step.engine_effects import loop_symbols
from planner.problems.serving.step.kernels import BILLING, OF_A_STEP, STEP_PARTS, get_kernel
from planner.problems.serving.step.layouts import AXES, Layouts
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.requests import PART_DECODED, PART_READ, context_parts
from planner.protocol.live_page import LiveEquation, LiveSymbol

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingPlan
    from planner.problems.serving.task.task import Task


MEMORY = ("M_need", "M_weights", "M_kv", "M_reserve")
SLOT_SYMBOLS = ("T_tpot", "T_share", "T_ttft", "L_ctx")


def chain(plan: ServingPlan) -> tuple[tuple[LiveEquation, ...], tuple[LiveSymbol, ...]]:
    """The equations behind the price, the times and the memory, and every letter in them."""
    mode = plan.mode or "aggregated"
    bound = plan.answer.provenance.estimate == "bound"
    first = closed_form(mode, bound=bound, load="none", tpot=False, energy=False, counted=False)
    phase = "decode" if mode == "disaggregated" else mode
    defined = {e.symbol.name: e for e in equations.pool(phase, bound, "none")}
    parts = [name for names in STEP_PARTS.values() for name in names if name != "T_spec"]
    wanted = dict.fromkeys((*SLOT_SYMBOLS, *parts, *MEMORY))
    every = list(dict.fromkeys((*first, *(defined[name] for name in wanted if name in defined))))
    return tuple(map(_typeset, every)), tuple(_symbol_letters(every))


def _typeset(equation: Equation) -> LiveEquation:
    return LiveEquation(
        equation.name,
        mathml(relation(equation.symbol, "=", equation.rhs), display=True),
        equation.symbol.name,
        str(symbol_unit(equation.symbol)),
        str(equation.source),
    )


def _symbol_letters(every: Iterable[Equation]) -> list[LiveSymbol]:
    names: dict[str, None] = {}
    for equation in every:
        names |= dict.fromkeys([equation.symbol.name])
        names |= dict.fromkeys(sorted(x.name for x in equation.rhs.free_symbols))
    return [
        LiveSymbol(mathml(layout(SYMBOLS[x])), x, meaning(SYMBOLS[x]), str(symbol_unit(SYMBOLS[x])))
        for x in names
        if isinstance(SYMBOLS[x], sp.Symbol)
    ]


# Letters of an index: all that JSON and HTML leave as they are.
DIGITS = "".join(letter for letter in map(chr, range(33, 127)) if letter not in "\"\\<&>'")
LAYOUT_COLUMNS = (*AXES, "replicas", "chips", "halves", "engines")
BATCH_SYMBOLS = ("B", "r_fill", "n_others")  # symbols that a batch brings
# Symbols that come with a fleet's size and use under a load, and with how many caches find room.
REPLICA_COUNT_SYMBOLS, GATHERED_SYMBOLS = ("n_rep", "n_up", "n_chips", "r_busy"), ("n_flat",)


def min_context_part(task: Task) -> int:
    """Minimum tokens of one context part if the scenario does not choose parts."""
    return PART_DECODED if task.pooled and task.mode == "decode" else PART_READ


def all_layouts(
    task: Task, longest: float, *, parts_chosen: bool, ranks: tuple[int, ...] = (1,)
) -> Layouts:
    """All layouts that a slider may admit, including context parts for prompts of `longest` tokens.

    Of contexts cut over ranks those in `ranks` alone, which a plan and the layout in use have: all
    of them would make a page half as large again.
    """
    limits = {"dcp": ranks, **task.limits_of}
    task = task if task.lecture else task.with_layout(limits_of=limits)
    if task.loop is not None:  # how many are in flight is a slider
        task = task.with_layout(batches=None)
    if parts_chosen or task.lecture:
        return admissible_layouts(task)
    unasked = context_parts(longest, min_context_part(task))
    limits = {name: values for name, values in limits.items() if name != "cp"}
    if len(unasked) > 1:
        limits["cp"] = unasked
    return admissible_layouts(task.with_layout(limits_of=limits))


@dataclass(frozen=True)
class PoolRows:
    """One task on its layouts, with the values of every symbol of its kernel."""

    task: Task
    step: Step
    parts_chosen: bool

    @classmethod
    def of(
        cls, task: Task, longest: float, *, parts_chosen: bool, ranks: tuple[int, ...] = (1,)
    ) -> PoolRows:
        """A task with every layout that a slider may let in."""
        layouts = all_layouts(task, longest, parts_chosen=parts_chosen, ranks=ranks)
        return cls(task, Step(task, layouts, bound=task.uses_bound), parts_chosen)

    @property
    def values(self) -> dict[str, Any]:
        """Every symbol that a batch does not bring: numbers, or one for each layout."""
        values = self.step.values(np.ones(len(self.step.layouts)))
        values = {"x_free": self.task.headroom, **values}
        if self.task.mode == "decode":
            values["r_pf"] = 0.0
        if self.step.prompts_gather:
            values |= loop_symbols(self.task, {**values, "B": 1.0})
        return {name: value for name, value in values.items() if name not in self.followed}

    @property
    def followed(self) -> tuple[str, ...]:
        """The symbols that come with a batch, under a load also those of a fleet's size."""
        counted = REPLICA_COUNT_SYMBOLS if self.task.load != "none" else ()
        return (*BATCH_SYMBOLS, *counted, *(GATHERED_SYMBOLS if self.crowds else ()))

    @property
    def crowds(self) -> bool:
        """True if the overflow probability of KV caches is computed."""
        return self.step.crowds

    @property
    def occupancy_limits(self) -> tuple[str, ...]:
        """Outputs that bound a replica's occupancy: memory and the engine's limits of a step."""
        return tuple(name for name in ("need", *OF_A_STEP) if name in self.task.limits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The symbols that a layout changes."""
        rows = (len(self.step.layouts),)
        return tuple(n for n, x in self.values.items() if np.shape(x) == rows)

    def script(self, shown: Collection[str]) -> StagedScript:
        """The kernel of the pool as JavaScript; of symbols it gives those that are shown."""
        gathers = self.step.prompts_gather
        kernel = get_kernel("page_outputs", *self.step.model.key, self.crowds, gathers)
        stages = dict.fromkeys(self.columns, LAYOUT) | dict.fromkeys(self.followed, BATCH)
        limits = tuple(name for name in self.task.limits if name in kernel.outputs)
        dots = (OUTPUTS[0].word, "tpot") if self.task.mode != "prefill" else ()
        first = ("first",) if self.task.mode != "decode" else ()
        scored = dict.fromkeys((*limits, SCORES[self.task.objective], *dots, *_COMPARED, *first))
        scores = tuple(name for name in scored if name in kernel.outputs)
        outputs = tuple(x for x in kernel.outputs if x not in SYMBOLS or x in shown)
        functions = {"scored": scores, "batch": outputs}
        if self.task.loaded:
            functions["carried"] = ("load",)
        if self.task.load == "most":
            functions["occupied"] = ("slot", "S_occ")
        if self.task.loaded or self.crowds:
            functions["needed"] = self.occupancy_limits
        if self.crowds:
            functions |= {"paced": ("step",), "gathered": ("n_met", "x_need")}
        return to_javascript(kernel.tape, stages, functions)

    def document(self, script: StagedScript, table: ColumnTable) -> dict[str, Any]:
        """Document of the rows, the values and the limits; plain and finite."""
        values, task = self.values, self.task
        columns = {name: np.asarray(values[name], float) for name in script.names[1]}
        layouts = self.step.layouts
        ways = {f"way.{name}": np.asarray(getattr(layouts, name), float) for name in LAYOUT_COLUMNS}
        return {
            "mode": task.mode,
            "rows": len(self.step.layouts),
            "values": {name: float(values[name]) for name in (*script.names[0], *_LENGTHS)
                       if name in values and name not in columns},
            "columns": {
                name: table.place(column)
                for name, column in {**columns, **ways}.items()
            },
            "load": self._load() if task.loaded else None,
            "crowds": self.crowds,
            "gathers": self.step.prompts_gather,
            "bound": task.uses_bound,
            "limits": {name: float(limit) for name, limit in task.limits.items()},
            "occupancy_limits": list(self.occupancy_limits),
            "batches": list(task.batches or ()),
            "score": SCORES[task.objective],
            "least_part": 0 if self.parts_chosen else min_context_part(task),
            "words": self._words(),
        }  # fmt: skip

    def _load(self) -> dict[str, Any]:
        task = self.task
        return {
            "paid": sorted({int(chips) for chips in task.chips}),
            "grows": grows(task),
            "spare": task.spare,
            "priced": task.objective == "cost" and self.step.model.powered != BILLING,
        }

    def _words(self) -> dict[str, Any]:
        """Descriptions of the pool that do not depend on its layout."""
        sizes, task = self.task.sizes, self.task
        return {
            "chip": task.chip.name,
            "weights": sizes.weight_dtype["routed" if sizes.n_experts else "dense_ffn"],
            "kv": sizes.kv_dtype,
            "redundant_experts": task.redundant if sizes.n_experts else 0,
            "drafts": task.drafts if task.mode != "prefill" else 0,
            "state": sizes.state_bytes_per_sequence,
            "layers": sizes.n_layers,
            "kv_heads": sizes.n_kv_heads,
            "domain": task.machine.chips_per_domain,
            "experts": sizes.n_experts,
            "positions": float(task.positions_per_step),
        }


# Output minimised for each objective; for throughput its inverse.
SCORES: Mapping[str, str] = {
    "cost": "usd_per_request", "latency": "latency", "throughput": "requests",
    "energy": "joule_per_request",
}  # fmt: skip
_COMPARED = ("latency", "slot", "ttft")  # outputs of points under every objective
# Symbols that derive others, and symbols that a pair of pools takes from either pool.
_LENGTHS = ("L_in", "L_out", "L_dec", "v_out", "one_seq", "one_token", "x_hit", "b_store",
            "R_bnd_mem", "R_state", "p_chip", "p_power", "m_grid", "M_cap", "g")  # fmt: skip


@dataclass(frozen=True)
class ColumnTable:
    """Columns of all pools as distinct values and indices, equal ones once.

    An index is a text of letters: two of them, or one where that is enough; its first
    letter says which.
    """

    indices: dict[str, int] = field(default_factory=dict)
    columns: dict[tuple[int, tuple[float, ...]], int] = field(default_factory=dict)

    def place(self, column: np.ndarray) -> int:
        """The number of a column, which is put in if it is not there yet."""
        distinct, index = np.unique(column, return_inverse=True)
        order = list(dict.fromkeys(index.tolist()))
        number_of = {old: new for new, old in enumerate(order)}
        wide = len(order) > len(DIGITS)
        places = (divmod(number_of[i], len(DIGITS)) for i in index.tolist())
        text = "".join(DIGITS[high] * wide + DIGITS[low] for high, low in places)
        number = self.indices.setdefault(f"{int(wide)}{text}", len(self.indices))
        values = tuple(float(distinct[old]) for old in order)
        return self.columns.setdefault((number, values), len(self.columns))

    def document(self) -> dict[str, Any]:
        """The indices, and each column as the number of its index and its values."""
        columns = [[number, list(values)] for number, values in self.columns]
        return {"indices": list(self.indices), "columns": columns}
