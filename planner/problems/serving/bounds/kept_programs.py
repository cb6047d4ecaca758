"""Programs of the serving equations, lowered once and kept on disk: solving them needs no SymPy.

What they are made of stands in `programs`. Symbols go by their names.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from formulas.numerics.store import stored
from planner.programs import geometric
from planner.programs.geometric import Program, ProgramStructure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


MARK = "_"  # ends the names of parameters that are no symbols of the equations
# The objective where power follows from the work, and where that is paid beside the rent.
DRAWN, PAID = "energy drawn", "cost with power drawn"
# Beside the equations.
SOURCES = (Path(__file__), Path(__file__).with_name("programs.py"), Path(geometric.__file__).parent)


@cache
def relaxed(
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
    """A program as it was kept under its words, else compiled to plain data and kept."""
    name = "-".join([*words, *(flag for flag, on in flags.items() if on), *sorted(promises)])
    return Program(ProgramStructure.of_plain(stored(name, plain, SOURCES)))
