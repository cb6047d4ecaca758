"""Equations of an engine's memory as cached programs: SymPy makes each program once."""

from collections.abc import Mapping
from functools import cache

from formulas.numerics.store import cached_program
from formulas.numerics.trees import ScalarProgram


def solved(table: str, values: Mapping[str, float]) -> dict[str, float]:
    """Evaluate a table of `formulas.memory.cache_room` at values by symbol; results by name."""
    return _program(table, frozenset(values))(values)


@cache
def _program(table: str, names: frozenset[str]) -> ScalarProgram:
    def make() -> ScalarProgram:
        from formulas.memory.cache_room import TABLES
        from formulas.numerics.evaluate import scalar_program

        equations = TABLES[table]
        return scalar_program(equations, [x.symbol for x in equations], names)

    return cached_program(f"memory-{table}", make)
