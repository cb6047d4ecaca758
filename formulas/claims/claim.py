"""Claim: one quantitative statement of the lecture beside what the equations make of it.

What the lecture says is typed; what we say is computed, from the lecture's own inputs, by the
equations that the claim names.
"""

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.sources import SOURCES, Citation
from formulas.numerics.closeness import ROUNDING
from formulas.numerics.evaluate import scalar
from formulas.registry import by_name


def _exact(values: Mapping[str, int | str]) -> dict[str, int | Fraction]:
    """Numbers of a row; "5/2" is a fraction."""
    return {name: Fraction(v) if isinstance(v, str) else v for name, v in values.items()}


_ROWS = tomllib.loads(Path(__file__).with_name("lecture.toml").read_text("utf-8"))
KINDS: Mapping[str, str] = _ROWS["kinds"]
UNITS = _exact(_ROWS["units"])
LECTURE = _exact(_ROWS["machine_and_model"])


@dataclass(frozen=True)
class Worked:
    """One worked number: an equation of the catalogue at given values.

    Parameters
    ----------
    what : What the number is, in words.
    equation : Name in the catalogue.
    says : The lecture's number in `unit`, or None where it gives none.
    unit : A key of `UNITS`, or a word that is printed as it stands (base units).
    inputs : Values that differ from the claim's, in base units.
    """

    what: str
    equation: str
    says: int | Fraction | None = None
    unit: str = ""
    inputs: Mapping[str, int | Fraction] = field(default_factory=dict, hash=False)

    def value(self, values: Mapping[str, float | int | Fraction]) -> float:
        """The number in `unit`; `inputs` override `values`.

        Raises KeyError if the catalogue has no such equation; SymbolError if a symbol has no value.
        """
        entry = by_name()[self.equation]
        equation: Equation = entry.equation() if isinstance(entry, Derivation) else entry
        name = equation.symbol.name
        numbers = {x: float(v) for x, v in {**values, **self.inputs}.items() if x != name}
        return scalar([equation], [name], numbers)[name] / float(UNITS.get(self.unit, 1))


@dataclass(frozen=True)
class Claim:
    """A statement of the lecture in words and numbers, with a verdict.

    Parameters
    ----------
    id : `C1` ... `C51`.
    statement : The claim, in our words.
    source : Where the lecture says so.
    lecture_says : The number or formula as stated.
    verdict : One sentence: whether it holds, and why not where it does not.
    kind : A key of `KINDS`.
    equations : Names in the catalogue of what the claim rests on.
    lecture : Values of symbols, on top of `LECTURE`, that the worked numbers are computed with.
    worked : The numbers, computed when asked for.
    note : Our side where it is not a number: a formula, a record, a reason.
    """

    id: str
    statement: str
    source: Citation
    lecture_says: str
    verdict: str
    kind: str = "derived"
    equations: tuple[str, ...] = ()
    lecture: Mapping[str, int | Fraction] = field(default_factory=dict, hash=False)
    worked: tuple[Worked, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.id}: kind {self.kind!r} is none of {', '.join(KINDS)}")

    def values(
        self, assumed: Mapping[str, float | int | Fraction] | None = None
    ) -> tuple[float, ...]:
        """The worked numbers, in their units, under the lecture's values or others on top."""
        case = {**LECTURE, **self.lecture, **(assumed or {})}
        return tuple(each.value(case) for each in self.worked)

    @property
    def ours(self) -> str:
        """Our numbers in one line."""
        numbers = [
            f"{each.what}: {shown(value, each.unit)}"
            for each, value in zip(self.worked, self.values(), strict=True)
        ]
        return "; ".join([*numbers, *([self.note] if self.note else [])])

    @property
    def reproduces(self) -> bool | None:
        """True if all numbers of the lecture are reproduced within rounding; None without."""
        stated = [
            abs(value / float(each.says) - 1) <= ROUNDING
            for each, value in zip(self.worked, self.values(), strict=True)
            if each.says is not None
        ]
        return all(stated) if stated else None


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every claim, C1 first: the rows of `lecture.toml`."""
    claims = []
    for row in deepcopy(_ROWS["claim"]):
        key, place = row.pop("source")
        row["source"] = SOURCES[key].at(place)
        row["equations"] = tuple(row.get("equations", "").split())
        row["lecture"] = _exact(row.get("lecture", {}))
        for number in row.get("worked", ()):
            number["inputs"] = _exact(number.get("inputs", {}))
            number.update(_exact({key: number[key] for key in number if key == "says"}))
        row["worked"] = tuple(Worked(**each) for each in row.get("worked", ()))
        claims.append(Claim(**row))
    return tuple(claims)


def shown(value: float, unit: str = "") -> str:
    """Four digits and a unit: `2,400`, `14.4 ms`, `2.592e+14`."""
    plain = 1e-3 <= abs(value) < 1e7 or value == 0
    digits = f"{float(f'{value:.4g}'):,.10g}" if plain else f"{value:.4g}"
    return f"{digits}{unit}" if unit == "%" else f"{digits} {unit}".rstrip()
