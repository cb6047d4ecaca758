"""The least bill of a small fleet whose models have one layout on each kind of machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

from tests.cases.fleet_brute_force import Scenario


def one_layout_each(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with one column of each model, kind of machine and phase, in every way."""
    groups: dict[tuple[str, str, str], list[Scenario]] = {}
    for name, model in scenario["models"].items():
        for column in model["columns"]:
            kind = name, column["pool"], column.get("phase", "")
            groups.setdefault(kind, []).append(column)
    for columns in product(*groups.values()):
        models = {
            name: {
                **model,
                "columns": [
                    column
                    for (m, *_), column in zip(groups, columns, strict=True)
                    if m == name
                ],
            }
            for name, model in scenario["models"].items()
        }  # fmt: skip
        yield {**scenario, "models": models}


def least_of_one_layout(scenario: Scenario, least_of: Callable[[Scenario], float]) -> float:
    """The least over every choice of layouts; NaN where one has too many plans to try."""
    bills = [least_of(each) for each in one_layout_each(scenario)]
    return float("nan") if any(map(math.isnan, bills)) else min(bills)
