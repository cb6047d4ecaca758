"""The numbers of a training plan, each the value of one equation, and the check of all of them.

What may be varied in a training question, and what one percent of it does to a fixed layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.store import cached_program
from planner.problems.training import plan as records
from planner.problems.training import worth as worths
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.resolve import TrainingCase, resolve_training
from planner.problems.training.search import RatedLayout
from planner.problems.training.step import step_times as timing
from planner.protocol.output import Output, output_values
from planner.protocol.parameter import Parameter, settable
from planner.scenario.keys.training_fields import DAY
from planner.text.errors import InputError, SolverError

if TYPE_CHECKING:
    import sympy as sp

    from formulas.numerics.trees import ScalarProgram
    from planner.protocol.plan import Plan

COMMUNICATION = ("tp", "cp", "ep", "pp", "dp_exposed")
AGREE = 1e-9  # of the scalar evaluation and the arrays, relative


def formula(name: str) -> Callable[[Plan], sp.Expr | None]:
    """The expression of an equation of a training run; it loads SymPy."""

    def expression(plan: Plan) -> sp.Expr | None:
        (equation,) = worths.equations(name)
        scale = {"training_token_cost": worths.MTOK, "training_run_time": 1 / DAY}.get(name)
        return equation.expanded.rhs * (scale or 1)

    return expression


def _runs(question: TrainingQuestion) -> bool:
    return question.work.tokens is not None


USD = Output("usd", "USD", ("cost",), promise="limits.usd", equation=formula("training_run_cost"))
# The first applicable output of a question is its objective.
OUTPUTS = (
    replace(USD, applies=lambda q: q.objective == "cost" and _runs(q)),
    Output("step_time", "s", ("time", "step"),
           applies=lambda q: q.objective == "time" and not _runs(q)),
    Output("joule_per_token", "J/token", ("energy",), equation=formula("training_token_energy"),
           applies=lambda q: q.objective == "energy"),
    Output("days", "day", ("time",), promise="limits.days", equation=formula("training_run_time"),
           applies=_runs),
    Output("usd_per_mtok", "USD per million tokens", ("cost",),
           equation=formula("training_token_cost"),
           applies=lambda q: q.objective == "cost" and not _runs(q)),
    replace(USD, applies=lambda q: q.objective != "cost" and _runs(q)),
    Output("tokens_per_s", "token/s", ("rate",), equation=formula("trained_rate"), rises=True),
    Output("tokens_per_s_per_chip", "token/(s*chip)", equation=formula("trained_rate_per_chip"),
           rises=True),
    Output("mfu", "1", equation=formula("model_utilisation"), rises=True),
    Output("hfu", "1", equation=formula("hardware_utilisation"), rises=True),
    Output("bubble", "1"),
    Output("energy", "J", equation=formula("training_run_energy")),
    Output("goodput", "1", rises=True),
    Output("checkpoint_interval", "s"),
)  # fmt: skip
FROM_SYMBOL = {
    "tokens_per_s": "X_train", "tokens_per_s_per_chip": "X_train_c", "mfu": "mfu", "hfu": "hfu",
}  # fmt: skip


def training_point(rated: RatedLayout) -> records.TrainingPoint:
    """The plan of a layout: the step by the scalar path, everything else by its equation."""
    chips, case = rated.chips, rated.chips.case
    question, layout = chips.question, rated.layout
    words = layout.words()
    times = timing.step_times(case.task, layout)
    step = float(times.step)  # type: ignore[arg-type]
    values = chips.worth(step, case.forward_again[int(layout.recompute)])
    worth = {name: float(value) for name, value in values.items()}
    run, drawn = question.work.tokens is not None, case.draw is not None
    fails = question.reliability is not None
    n_micro = question.work.sequences // (int(words["dp"]) * int(words["micro_batch"]))
    total = timing.usable(rated.chips.case.task)
    parts = {name: float(value) for name, value in times.memory.items()}
    terms = {name: float(value) for name, value in times.terms.items()}
    hidden = {name: float(value) for name, value in times.hidden.items()}
    return records.TrainingPoint(
        system=case.system.name,
        chips=chips.paid,
        chips_used=chips.used,
        layout=records.TrainingLayout(**words),  # type: ignore[arg-type]
        step_time=step,
        **{name: worth[symbol] for name, symbol in FROM_SYMBOL.items()},
        bubble=float(times.bubble),  # type: ignore[arg-type]
        micro_batches=n_micro,
        steps=question.work.tokens / question.work.batch_tokens if question.work.tokens else None,
        days=worth["T_run"] / DAY if run else None,
        usd=worth["K_run"] if run else None,
        usd_per_mtok=worth["w_train"] * worths.MTOK,
        energy=worth["E_run_all"] if run and drawn else None,
        joule_per_token=worth["e_train"] if drawn else None,
        goodput=chips.goodput if fails else None,
        checkpoint_interval=chips.checkpoint_interval,
        time_between_failures=chips.time_between_failures if fails else None,
        memory_per_chip=records.MemoryPerChip(
            worst_stage=int(np.asarray(times.worst_stage)),
            stages=int(rated.layout.pp),
            **parts,
            free=total - float(times.used),  # type: ignore[arg-type]
            total=total,
        ),
        time_per_step=records.StepTerms(
            {name: value for name, value in terms.items() if value},
            {name: value for name, value in hidden.items() if value},
            sum(terms.get(name, 0.0) for name in COMMUNICATION),
            sum(hidden.values()),
        ),
        fits=bool(float(times.used) <= timing.usable(case.task)),  # type: ignore[arg-type]
    )


def recheck(rated: RatedLayout, point: records.TrainingPoint) -> float:
    """Recompute every number of a plan; return the relative deviation of the search's step.

    The step of the scalar evaluation is compared with that of the arrays, its terms and the parts
    of its memory with their sums, and what follows from the step by walking its equations.

    Raises SolverError for a number that is not what its equation gives.
    """

    def same(name: str, number: float, again: float) -> float:
        off = abs(number - again) / max(abs(again), 1e-300)
        if not off <= AGREE:
            words = f"{name} is {number:.12g} in the plan, but {again:.12g} when computed anew"
            raise SolverError(words)
        return off

    # Step [s] and memory [byte] of a layout by walking the equations, no array in it.
    symbols = timing.bound_symbols(rated.chips.case.task, rated.layout)
    program = cached_program("training-step-walked", _step_program, timing.SOURCES)
    walked_step = program({name: float(np.asarray(symbols[name])) for name in program.arguments})
    off = same("step_time", rated.step, walked_step["step"])
    same("step_time", point.step_time, walked_step["step"])
    same("the sum of time_per_step", sum(point.time_per_step.terms.values()), point.step_time)
    memory = point.memory_per_chip
    parts = sum(getattr(memory, part) for part in timing.MEMORY)
    same("the sum of memory_per_chip", parts, walked_step["used"])
    same("memory", rated.used, walked_step["used"])
    chips = rated.chips
    again = chips.case.forward_again[int(rated.layout.recompute)]
    values = {**chips.symbols(), "T_opt": point.step_time, "C_again": again}
    walked = cached_program("training-worth-walked", _worth_program, worths.RUN_SOURCES)(values)
    for name, symbol in FROM_SYMBOL.items():
        same(name, getattr(point, name), float(walked[symbol]))
    same("usd_per_mtok", point.usd_per_mtok, float(walked["w_train"]) * worths.MTOK)
    if point.days is not None and point.usd is not None:
        same("days", point.days, float(walked["T_run"]) / DAY)
        same("usd", point.usd, float(walked["K_run"]))
    return off


def _step_program() -> ScalarProgram:
    from formulas.numerics.evaluate import scalar_program
    from planner.problems.training.step.step_tables import equation_table

    return scalar_program(*equation_table("both"), ())


def _worth_program() -> ScalarProgram:
    from formulas.numerics.evaluate import scalar_program

    every = worths.equations(*worths.RUN_OUTPUT_EQUATIONS, *worths.OF_A_RUN)
    return scalar_program(every, [each.symbol for each in every], ())


STEP = 1e-4  # of a parameter, in logarithms, to either side
OF_SYSTEM = ("memory", "memory_bandwidth", "scale_up", "scale_out")
UNITS = {
    "memory": "byte", "memory_bandwidth": "byte/s", "scale_up": "byte/s", "scale_out": "byte/s",
}  # fmt: skip


def parameters(question: TrainingQuestion) -> list[Parameter]:
    """Every number of a question, each varied as `--set` would vary it."""
    case = resolve_training(question).cases[0]
    return settable(question, _rows(question, case))


def _rows(question: TrainingQuestion, case: TrainingCase) -> Iterator[Parameter]:
    """Parameters with the numbers of a question, or the catalogue's where it gives none."""
    yield Parameter("price", case.price.value, "USD/(chip*s)", "prices")
    yield Parameter("power_price", question.power_price, "USD/J", "prices")
    yield Parameter("pue", question.pue, "1", "prices")
    yield Parameter("work.tokens", question.work.tokens, "token", "workload")
    for name, value in question.state:
        yield Parameter(f"state.{name}", value, "byte/param", "state")
    for name, value in question.reliability or ():
        yield Parameter(f"reliability.{name}", value, "s", "reliability")
    yield Parameter("limits.days", question.limits.days, "day", "limits")
    yield Parameter("limits.usd", question.limits.usd, "USD", "limits")
    if isinstance(question.system, tuple):
        return
    system = case.system
    peak = system.chip.peak(question.precision)
    yield Parameter(f"system.flops.{question.precision}", peak, "flop/s", "chip")
    for name in OF_SYSTEM if system.file is None else OF_SYSTEM[:2]:  # a file has its own links
        owner = system.chip if name == "memory_bandwidth" else system
        # A step can fill the memory that the driver reports, so that size is the parameter to vary.
        value = case.task.machine.memory if name == "memory" else getattr(owner, name)
        yield Parameter(f"system.{name}", value, UNITS[name], "chip")


def outputs_of_layout(question: TrainingQuestion, best: RatedLayout) -> Mapping[str, float]:
    """The outputs of a question when its chips run one layout; empty where it is refused."""
    try:
        cases = resolve_training(question).cases
    except InputError:
        return {}
    case = next(x for x in cases if x.system.name == best.chips.case.system.name)
    chips = worths.ChipCount(question, case, best.chips.paid, best.chips.used)
    step = float(np.asarray(timing.step_times(case.task, best.layout, ("step",)).step))
    rated = RatedLayout(chips, best.layout, math.nan, step, best.used)
    return output_values(OUTPUTS, training_point(rated))


def slopes_of_layout(
    question: TrainingQuestion, best: RatedLayout, output: str
) -> dict[str, tuple[float, float]]:
    """d ln output / d ln parameter to the left and to the right, the layout held, by path."""
    at = outputs_of_layout(question, best).get(output)
    slopes: dict[str, tuple[float, float]] = {}
    if not at:
        return slopes
    for row in parameters(question):
        sides = []
        for step in (-STEP, STEP):
            assert row.to is not None
            value = None
            with suppress(InputError):  # beyond the range of its key: the other side is taken
                value = outputs_of_layout(row.to(math.exp(step)), best).get(output)
            sides.append(math.log(value / at) / step if value else math.nan)
        left, right = sides
        slopes[row.path] = (
            right if math.isnan(left) else left,
            left if math.isnan(right) else right,
        )
    return slopes


def layout_slopes(question: TrainingQuestion, best: RatedLayout) -> dict[str, float]:
    """d ln objective / d ln parameter, the layout held; those that are zero left out."""
    objective = next(x.name for x in OUTPUTS if x.applies is not None and x.applies(question))
    slopes = slopes_of_layout(question, best, objective)
    return {
        path: right for path, (_, right) in slopes.items()
        if not math.isnan(right) and abs(right) > STEP / 10
    }  # fmt: skip
