"""Uncertain values of a scenario: `uncertain:` maps paths to distributions or to `catalogue`.

Ends are written as the path itself would be (`$2/hour`, `50 ms`); what they mean is known only with
the path, so that they are read where they are drawn (`planner.uncertainty.evaluate_samples`).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from planner.scenario.keys.fields import Faults, FieldType, Path, Refusals
from planner.text.errors import did_you_mean, quote

# Number of values of each distribution (None: two or more), and their description.
FAMILIES: Mapping[str, tuple[int | None, str]] = {
    "uniform": (2, "[least, most]"),
    "log_uniform": (2, "[least, most]"),
    "triangular": (3, "[least, likeliest, most]"),
    "normal": (2, "[mean, standard deviation], the latter in the same unit or as 5%"),
    "lognormal": (2, "[low, high], between which nine of ten values lie"),
    "one_of": (None, "two or more values, each as likely"),
}
CATALOGUE = "catalogue"
MAX_PATH_DEPTH = 8
IGNORED_NOTE = "uncertain: is left aside here; planner sensitivity --sobol N studies it"
EXAMPLE = "{uniform: [$2/hour, $4/hour]}, or catalogue"


@dataclass(frozen=True)
class _Spreads(FieldType):
    """Distributions by dotted path."""

    def read(self, value: object) -> dict[str, object]:
        if not isinstance(value, Mapping) or not value:
            raise ValueError(f"expected paths such as price: {EXAMPLE}, got {quote(value)}")
        spreads: dict[str, object] = {}
        refused: Faults = []
        for path, spread in _flat(value, ()):
            try:
                spreads[".".join(map(str, path))] = _spread(spread)
            except ValueError as error:
                refused.append((path, error))
        if refused:
            raise Refusals(refused)
        return spreads

    def schema(self) -> dict[str, object]:
        ends = {"type": "array", "items": {"type": ["string", "number"]}}
        kinds = {
            name: {**ends, "description": meaning, "minItems": count or 2,
                   **({"maxItems": count} if count else {})}
            for name, (count, meaning) in FAMILIES.items()
        }  # fmt: skip
        spread = {
            "type": "object", "properties": kinds, "minProperties": 1, "maxProperties": 1,
        }  # fmt: skip
        return {"type": "object", "additionalProperties": {"anyOf": [{"const": CATALOGUE}, spread]}}


Uncertain = Annotated[dict[str, object], _Spreads()]
"""{dotted path: "catalogue" or {kind: [value, ...]}}"""
Distributions = Annotated[
    Uncertain | None,
    Field(description="distributions of what is not known, by path; for planner sensitivity"),
]


def _flat(value: Mapping[object, object], above: Path) -> Iterator[tuple[Path, object]]:
    for key, item in value.items():
        path = (*above, str(key))
        if len(path) < MAX_PATH_DEPTH and isinstance(item, Mapping) and _has_paths(item):
            yield from _flat(item, path)
        else:
            yield path, item


def _has_paths(item: Mapping[object, object]) -> bool:
    below = all(isinstance(each, Mapping | str) for each in item.values())
    return (
        bool(item) and below and not any(x in FAMILIES or did_you_mean(x, FAMILIES) for x in item)
    )


def _spread(value: object) -> object:
    if value == CATALOGUE:
        return CATALOGUE
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"expected one distribution such as {EXAMPLE}, got {quote(value)}")
    ((kind, ends),) = value.items()
    if kind not in FAMILIES:
        hint = did_you_mean(kind, FAMILIES) or f" (known: {', '.join(FAMILIES)})"
        raise ValueError(f"unknown distribution {quote(kind)}{hint}")
    count, meaning = FAMILIES[kind]
    if not isinstance(ends, list | tuple) or (len(ends) != count if count else len(ends) < 2):
        raise ValueError(f"{kind}: expected {meaning}, got {quote(ends)}")
    for end in ends:
        number = isinstance(end, int | float) and not isinstance(end, bool)
        if not isinstance(end, str) and not (number and math.isfinite(end)):
            raise ValueError(f"{kind}: expected a quantity such as 50 ms, got {quote(end)}")
    return {str(kind): list(ends)}
