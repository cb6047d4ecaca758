"""The programs that are kept on disk are those that the equations give today."""

from __future__ import annotations

import json
from typing import Any

from planner.problems.serving.bounds import programs
from planner.problems.serving.bounds.kept_programs import continuous, relaxed
from planner.programs.geometric import Program

PROMISES = frozenset({"ttft", "tpot"})


def plain_of(program: Program) -> Any:
    """A program as a file holds it."""
    return json.loads(json.dumps(program.structure.plain()))


def test_kept_programs_are_those_of_the_equations() -> None:
    """Rows, exponents and coefficients of both programs, lowered afresh and as they were kept."""
    kept = relaxed(
        bound=False, objective="cost", promises=PROMISES, given_batch=False, mode="aggregated"
    )
    fresh = programs.relaxed_layouts(False, "cost", PROMISES, "aggregated", given_batch=False)
    assert plain_of(kept) == plain_of(fresh)
    layout = continuous(bound=False, objective="cost", promises=PROMISES, mode="aggregated")
    P = programs.GeometricProgram("serving plan")
    P.minimise(
        programs.layout(P, bound=False, objective="cost", promises=PROMISES, mode="aggregated")
    )
    assert plain_of(layout) == plain_of(P.compile())
