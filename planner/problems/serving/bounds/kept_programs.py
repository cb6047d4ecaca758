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
    from collections.abc import Callable


MARK = "_"  # ends the names of parameters that are no symbols of the equations
# Beside the equations.
SOURCES = (Path(__file__), Path(__file__).with_name("programs.py"), Path(geometric.__file__).parent)


@cache
def relaxed(
    *, bound: bool, objective: str, promises: frozenset[str], given_batch: bool, mode: str
) -> Program:
    """The program whose optimum no layout of a group beats, at any batch of an interval."""
    words = ("relaxed", objective, mode, *(["bound"] if bound else []),
             *(["batch"] if given_batch else []), *sorted(promises))  # fmt: skip

    def compiled() -> Program:
        from planner.problems.serving.bounds.programs import relaxed_layouts

        return relaxed_layouts(bound, objective, promises, mode, given_batch=given_batch)

    return _stored_program(words, compiled)


@cache
def continuous(
    *, bound: bool, objective: str, promises: frozenset[str], mode: str, loop: bool = False
) -> Program:
    """The program of one layout with a real batch; its multipliers are elasticities."""
    words = ("layout", objective, mode, *(["bound"] if bound else []),
             *(["loop"] if loop else []), *sorted(promises))  # fmt: skip

    def compiled() -> Program:
        from planner.problems.serving.bounds.programs import layout

        P = geometric.GeometricProgram("serving plan")
        P.minimise(
            layout(P, bound=bound, objective=objective, promises=promises, mode=mode, loop=loop)
        )
        return P.compile()

    return _stored_program(words, compiled)


def _stored_program(words: tuple[str, ...], compiled: Callable[[], Program]) -> Program:
    """A program as it was kept, else compiled and kept."""

    def plain() -> dict[str, object]:
        return compiled().structure.plain()

    return Program(ProgramStructure.of_plain(stored("-".join(words), plain, SOURCES)))
