"""Explanation of a plan in the words of the scenario: binding limits and elasticities.

Programs of the serving equations, lowered once and kept on disk: solving them needs no SymPy.

What they are made of stands in `programs`. Symbols go by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from formulas.numerics.store import cached_json
from planner.problems.serving.parameters import QUANTITIES
from planner.problems.serving.task.plan_limits import LIMITS
from planner.programs import geometric
from planner.programs.geometric import Program, ProgramSolution, ProgramStructure
from planner.protocol.plan import BindingLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.problems.serving.point import ServingPoint


NAME_SEPARATOR = "_"  # ends the names of parameters that are no symbols of the equations
# Objectives: energy with power that follows the work, and cost with that power billed.
POWER_DRAWN, POWER_PAID = "energy drawn", "cost with power drawn"
# Beside the equations.
SOURCES = (Path(__file__), Path(__file__).with_name("programs.py"), Path(geometric.__file__).parent)


@cache
def relaxable(
    *,
    bound: bool,
    objective: str,
    promises: frozenset[str],
    given_batch: bool,
    mode: str,
    halved: bool = False,
) -> Program:
    """The program whose optimum no layout of a group beats, at any batch of an interval."""

    def plain() -> dict[str, object]:
        from planner.problems.serving.bounds.programs import relaxed_layouts

        program = relaxed_layouts(
            bound, objective, promises, mode, given_batch=given_batch, halved=halved
        )
        return program.structure.plain()

    flags = {"bound": bound, "batch": given_batch, "halved": halved}
    return _stored_program(("relaxed", objective, mode), flags, promises, plain)


@cache
def continuous(
    *,
    bound: bool,
    objective: str,
    promises: frozenset[str],
    mode: str,
    loop: bool = False,
    halved: bool = False,
) -> Program:
    """The program of one layout with a real batch; its multipliers are elasticities."""

    def plain() -> dict[str, object]:
        from planner.problems.serving.bounds.programs import layout

        P = geometric.GeometricProgram("serving plan")
        P.minimise(
            layout(
                P,
                bound=bound,
                objective=objective,
                promises=promises,
                mode=mode,
                loop=loop,
                halved=halved,
            )
        )
        return P.compile().structure.plain()

    flags = {"bound": bound, "loop": loop, "halved": halved}
    return _stored_program(("layout", objective, mode), flags, promises, plain)


def _stored_program(
    words: tuple[str, ...],
    flags: Mapping[str, bool],
    promises: frozenset[str],
    plain: Callable[[], dict[str, object]],
) -> Program:
    name = "-".join([*words, *(flag for flag, on in flags.items() if on), *sorted(promises)])
    return Program(ProgramStructure.of_plain(cached_json(name, plain, SOURCES)))


SYMBOLS = {row.path: row.symbols for row in QUANTITIES if row.symbols}
RANKS, MIN_WAIT_SHARE = 4, 0.05  # minimum DP ranks and prefill share of a step for a warning
# Constraints of the programs as a person would say them; times go by the step's names there.
BINDS = {key: row.binds for row in LIMITS.values() if row.binds for key in (row.name, row.step)}


def synchronized_ranks_warning(plan: ServingPoint) -> tuple[str, ...]:
    """Warn if a plan assumes synchronised ranks and this matters; else an empty tuple.

    Ranks that decode in step wait for one that reads a prompt. Nine measured runs with eight ranks
    took 19 % longer than ranks that all read at once would, and 7 % less than if none did.
    """
    parts, ranks = plan.time_per_step, plan.layout.dp_attention if plan.layout else 1
    if plan.mode != "aggregated" or not parts or ranks < RANKS:
        return ()
    share = parts.prefill / sum(vars(parts).values())
    if share < MIN_WAIT_SHARE:
        return ()
    return (
        f"assumes that {ranks} DP ranks prefill together; if yours do not, TPOT rises (prefill is "
        f"{share:.0%} of a step)",
    )


def binding(solution: ProgramSolution) -> list[BindingLimit]:
    """Promises and limits that bind, most costly first.

    `elasticity` is d ln objective / d ln limit: -0.13 means that one percent more of it saves
    0.13 percent.
    """
    return [
        BindingLimit(BINDS[name], -multiplier)
        for name, multiplier in solution.binding
        if name in BINDS
    ]


def propagate_slopes(
    slopes: Mapping[str, float], coefficients: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Slopes by symbol, those of an engine's coefficients passed on to the symbols they follow.

    `coefficients` say d ln coefficient / d ln symbol.
    """
    total = dict(slopes)
    for name, powers in coefficients.items():
        for symbol, power in powers.items():
            total[symbol] = total.get(symbol, 0.0) + power * slopes.get(name, 0.0)
    return total


def parameter_elasticities(
    solution: ProgramSolution,
    coefficients: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> dict[str, float]:
    """{path in the scenario: d ln objective / d ln quantity}; zeros left out.

    `coefficients` say d ln coefficient / d ln symbol where an engine's coefficient follows others.
    """
    slopes = {str(symbol): slope for symbol, slope in solution.elasticities().items()}
    slopes = propagate_slopes(slopes, coefficients)
    values = {
        quantity: sum(slopes.get(name, 0.0) for name in names)
        for quantity, names in SYMBOLS.items()
    }
    for promise in ("ttft", "tpot", "e2e"):
        values[f"promises.{promise}"] = slopes.get(f"{LIMITS[promise].step}{NAME_SEPARATOR}", 0.0)
    return {name: value for name, value in values.items() if abs(value) > 5e-7}
