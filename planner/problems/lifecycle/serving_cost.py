"""Cost of serving a model of a family: the serving planner's price at any size.

`ServingQuestion.cheapest` is the search itself, over every layout, batch, format and system, for
one member. `ServedMember` holds what it chose and moves the size around it: layouts stay, the
batch is a real number, and the price answers as the geometric program of that layout says. The
price of the whole numbers (ceilings, idle chips) stays in it as a constant factor, so both agree
at the member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from planner.problems import serving
from planner.problems.lifecycle.members import FamilyRule, Formats, Member, ScaledModel
from planner.programs.geometric import ProgramSolution
from planner.protocol.plan import DataSource
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.workload import Choose
from planner.text.errors import FieldError, error_paths
from planner.text.quantities import base_units

if TYPE_CHECKING:
    from planner.architecture.counts import ModelSizes
    from planner.problems.lifecycle.question import Serving


MTOK = 1e6
DIFFERENCE_STEP = 1e-5  # relative change of the size, for central differences of its symbols
SPAN = math.log1p(DIFFERENCE_STEP) - math.log1p(-DIFFERENCE_STEP)
# Placeholder model: the machines, prices and promises of the scenario do not depend on it.
PLACEHOLDER = {"total_params": 1e9, "weights": "bf16", "kv_bytes_per_token": 1e5}


@dataclass(frozen=True)
class ServingQuestion:
    """Serving scenario, hardware and utilisation for any model.

    `hardware` are the machines it may run on, `utilisation` the share of their time that is sold.
    """

    scenario: serving.Scenario
    hardware: tuple[serving.Hardware, ...]
    utilisation: float
    data: tuple[DataSource, ...]
    warnings: tuple[str, ...]

    def cheapest(
        self, family: FamilyRule | ScaledModel, n_active: float, sparsity: float
    ) -> ServedMember | None:
        """The cheapest plan for the member of this size; None if no plan keeps the promises.

        Raises FieldError if the limits on the choices admit no layout; ModelError if the family has
        no such member.
        """
        best: tuple[float, serving.PlanPoint, Member] | None = None
        for formats, chunk, redundant, drafts in self._formats():
            member = family.member(n_active, sparsity, formats)
            if redundant and not member.sizes.n_experts:
                continue
            builder = serving.TaskBuilder(self.scenario, member.sizes, chunk, redundant, drafts)
            points = serving.ranked_points(list(self._questions(builder)))
            if points and (best is None or points[0].score < best[0]):
                best = points[0].score, points[0], member
        if best is None:
            return None
        return ServedMember(best[2], best[1].candidate, self.utilisation)

    def _questions(self, builder: serving.TaskBuilder) -> Iterator[serving.Question]:
        with error_paths("serving.{}".format):
            for mode in serving.modes(self.scenario):
                if mode == "disaggregated":
                    yield from serving.double_pools(list(builder.pools(self.hardware)))
                else:
                    tasks = [builder.task(each, mode) for each in self.hardware]
                    yield from serving.single_pools(tasks)

    def _formats(self) -> Iterator[tuple[Formats, int | None, int, int]]:
        choose = self.scenario.choose
        for weights, kv, activations, chunk, redundant, drafts in product(
            choose.weights or (None,),
            choose.kv or (None,),
            choose.activations or (None,),
            choose.chunk or (None,),
            choose.redundant_experts or (0,),
            serving.depths(self.scenario.speculation),
        ):
            yield Formats(weights, kv, activations), chunk, redundant, drafts


@dataclass(frozen=True)
class ServedMember:
    """A member, the plan that serves it, and its price; sizes around it on the same layout."""

    member: Member
    candidate: serving.Candidate
    utilisation: float
    pools: tuple[tuple[serving.EvaluatedPool, float, float], ...] | None = None

    @cached_property
    def plan(self) -> serving.ServingPoint:
        """The plan as a serving answer has it."""
        return self.candidate.plan()

    @cached_property
    def band(self) -> serving.ServingBand | None:
        """Ranges of the serving plan that hold the stated share of measured runs."""
        band = self.candidate.band(self.plan, self.candidate.floor())
        if band is None or band.usd_per_mtok is None:
            return band
        low, high = (end / self.utilisation for end in band.usd_per_mtok)
        return replace(band, usd_per_mtok=(low, high))  # idle time is paid too

    @property
    def price(self) -> float:
        """USD per token, input and output together at the mix asked for."""
        return self.candidate.usd_per_mtok / MTOK / self.utilisation

    @property
    def tokens_per_s(self) -> float:
        """Tokens read and written per second by the chips of the plan, at their utilisation."""
        rates = (self.plan.tokens_per_s or 0.0) + (self.plan.input_tokens_per_s or 0.0)
        return rates * self.utilisation

    @property
    def tokens_per_chip_second(self) -> float:
        """Tokens per second of one chip of the plan [token/(chip*s)]."""
        return self.tokens_per_s / self.plan.chips

    @property
    def peak(self) -> float:
        """Arithmetic peak for the weights of the model [flop/s]."""
        return float(self.candidate.task.peak(self.plan.weights, bound=False))

    def at(self, n_active: float) -> float:
        """USD per token at another size on the same layout."""
        return self.price * sum(part for *_, part in self._solved_at(n_active))

    def tangent(self, n_active: float) -> tuple[float, float]:
        """USD per token and d ln price / d ln N at another size on the same layout.

        Every symbol of the model follows the size; what the price gives for each is its dual.
        """
        pools = list(self._solved_at(n_active))
        whole = sum(part for *_, part in pools)
        chained = sum(part * self._chained(pool, solved, n_active) for pool, solved, part in pools)
        return self.price * whole, chained / whole

    def elasticities_at(self, n_active: float) -> dict[str, float]:
        """d ln price / d ln quantity of machine, model, engine and promises, layouts held."""
        total: dict[str, float] = {}
        whole = 0.0
        for pool, solved, part in self._solved_at(n_active):
            whole += part
            powers = _step(pool, self.member.at(n_active)).coefficient_powers(pool.batch)
            for name, slope in serving.parameter_elasticities(solved, powers).items():
                total[name] = total.get(name, 0.0) + part * slope
        return {name: slope / whole for name, slope in total.items()}

    def warnings_at(self, n_active: float) -> tuple[str, ...]:
        """Warnings of the solvers that found the price and its slopes at a size."""
        return tuple(each for _, solved, _ in self._solved_at(n_active) for each in solved.warnings)

    def _solved_at(
        self, n_active: float
    ) -> Iterator[tuple[serving.EvaluatedPool, ProgramSolution, float]]:
        grown = self.member.at(n_active)
        for pool, weight, value in self.parts:
            solved = _solved(pool, grown)
            yield pool, solved, weight * solved.value / value

    def changed(self, change: Callable[[serving.Task], serving.Task]) -> ServedMember:
        """The member on its layouts under a changed task, such as one with a faster memory.

        The factor of whole numbers stays that of the question as it was, so prices compare.
        """
        pools = tuple((replace(c, task=change(c.task)), w, v) for c, w, v in self.parts)
        return replace(self, pools=pools)

    @cached_property
    def parts(self) -> tuple[tuple[serving.EvaluatedPool, float, float], ...]:
        """The pools, the share of each in the price, and its value at the member."""
        if self.pools is not None:
            return self.pools
        pools = _pools(self.candidate)
        whole = sum(weight for _, weight in pools)
        return tuple((c, w / whole, _solved(c, c.task.sizes).value) for c, w in pools)

    def _chained(
        self, pool: serving.EvaluatedPool, solved: ProgramSolution, n_active: float
    ) -> float:
        """d ln value / d ln N: the duals of the model's symbols times how each follows the size."""
        grown = growth_of_symbols(self.member, pool.step, n_active)
        slopes = {str(symbol): slope for symbol, slope in solved.elasticities().items()}
        powers = _step(pool, self.member.at(n_active)).coefficient_powers(pool.batch)
        return sum(
            slope * grown[symbol] / SPAN
            for symbol, slope in serving.propagate_slopes(slopes, powers).items()
            if slope and symbol in grown
        )


def growth_of_symbols(member: Member, step: serving.Step, n_active: float) -> dict[str, float]:
    """{symbol of a model: by how much its logarithm grows over `SPAN` of that of the size}."""
    task = step.task
    low, high = (
        # As a step binds them: copies of attention may share the weights of the rest.
        serving.Step(replace(task, sizes=member.at(n_active * factor)), step.layouts,
                     bound=task.uses_bound).values(np.ones(1))
        for factor in (1 - DIFFERENCE_STEP, 1 + DIFFERENCE_STEP)
    )  # fmt: skip
    least, most = ({x: float(np.ravel(end[x])[0]) for x in end} for end in (low, high))
    names = {*serving.shared_values(task), "h_wide", "f_held", "f_read"}
    grown = {x: math.log(most[x] / least[x]) for x in names if least.get(x, 0) > 0}
    return {**grown, "f_pace_w": grown["f_read"]}  # with a sequence in every stage


def serving_question(part: Serving) -> ServingQuestion:
    """The serving part of a lifecycle, with everything looked up but the model.

    Raises FieldError for what contradicts itself, or is not known.
    """
    keys = {"problem": "serving", "model": ModelDescription(**PLACEHOLDER), **dict(part)}
    del keys["utilisation"]
    try:
        with base_units():
            scenario = serving.Scenario.model_validate(keys)
    except ValidationError as error:
        faults = [
            (".".join(("serving", *map(str, one["loc"]))), one["msg"]) for one in error.errors()
        ]
        raise FieldError(*faults) from error
    with error_paths("serving.{}".format):
        plain = scenario.model_copy(update={"choose": Choose(mode="aggregated")})
        resolved = serving.resolve(plain)
    data = tuple(source for source in resolved.data if source.what != "model")
    return ServingQuestion(scenario, resolved.hardware, part.utilisation, data, resolved.warnings)


def _pools(chosen: serving.Candidate) -> list[tuple[serving.EvaluatedPool, float]]:
    if len(chosen.pools) == 1:
        return [(chosen.pools[0], 1.0)]
    costs = (pool.chosen_by["usd_per_request"] * pool.utilisation for pool in chosen.pools)
    return list(zip(chosen.resized(), costs, strict=True))


def _solved(pool: serving.EvaluatedPool, sizes: ModelSizes) -> ProgramSolution:
    return serving.optimum(_step(pool, sizes), pool.batch)


def _step(pool: serving.EvaluatedPool, sizes: ModelSizes) -> serving.Step:
    task = replace(pool.task, sizes=sizes)
    return serving.Step(task, pool.layouts, bound=task.uses_bound)
