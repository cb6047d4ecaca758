"""Claim: one quantitative statement of the lecture beside what the equations make of it.

What the lecture says is typed, or computed by a formula of its own; what we say is computed, from
the lecture's own inputs, by the equations that the claim names.

The verdict is one word by one rule over the numbers, whatever the claim. How far a stated and a
computed number are apart is a factor, the larger over the smaller; of a stated range, or several
accounts, the nearest counts.
"""

import ast
import math
import operator
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TypeAlias

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.sources import SOURCES, Citation
from formulas.nomenclature.symbols import SYMBOLS, SymbolError, describe
from formulas.numerics.digits import AGREEMENT_TOLERANCE, MAX_DISTANCE, ROUNDING
from formulas.numerics.evaluate import scalar
from formulas.numerics.trees import TIE
from formulas.registry import by_name

# Verdict, and the largest factor of the farthest number for it; above the last it is "far".
VERDICT_WORDS = (
    ("holds", 1 + float(ROUNDING)),
    ("near", float(AGREEMENT_TOLERANCE)),
    ("off", float(MAX_DISTANCE)),
)
FAR_KIND, NO_NUMBER_KINDS = "far", "unnumbered"
RULE = (
    "One rule gives every verdict. Each number that the lecture states, as a figure or by its own "
    "formula, is held against the one computed for it, from the lecture's own inputs and from real "
    "chips and models; the one farthest apart decides. A claim "
    + ", is ".join(
        f"{word}"
        + (f" within {100 * (up_to - 1):g} %" if up_to < 1.1 else f" within a factor of {up_to:g}")
        for word, up_to in VERDICT_WORDS
    )
    + f", else {FAR_KIND}; {NO_NUMBER_KINDS} where nothing computed stands beside a number of it. "
    "Of a range the nearest end counts. A number that takes an assumption of ours is shown, not "
    "judged."
)


@dataclass(frozen=True)
class ClaimComparison:
    """Comparison of a computed number with the number or range that the lecture states.

    Args:
        what: What the number is, in words.
        value: As computed, in the unit of `low` and `high`.
        low, high: What is stated; equal for one number, 0 and infinity for an open end.
        text: Both sides as they are printed, such as `37 for 300`.
    """

    what: str
    value: float
    low: float
    high: float
    text: str

    @property
    def factor(self) -> float:
        """Larger over smaller of the value and the nearest stated end; 1 within the range [-]."""
        if self.low <= self.value <= self.high:
            return 1.0
        end = self.low if self.value < self.low else self.high
        small, large = sorted((self.value, end))
        return large / small if small > 0 else math.inf

    @property
    def agrees(self) -> bool:
        """True within the lecture's rounding."""
        return self.factor <= VERDICT_WORDS[0][1] * (1 + TIE)


@dataclass(frozen=True)
class Verdict:
    """Verdict on a claim: its numbers compared, from its own inputs and from the catalogues."""

    stated: tuple[ClaimComparison, ...] = ()
    catalogue: tuple[ClaimComparison, ...] = ()

    @property
    def farthest(self) -> ClaimComparison | None:
        """The number that decides; None without any."""
        return max((*self.stated, *self.catalogue), key=lambda pair: pair.factor, default=None)

    @property
    def word(self) -> str:
        """Label of the verdict: a word of `VERDICT_WORDS`, `FAR_KIND` or `NO_NUMBER_KINDS`."""
        if self.farthest is None:
            return NO_NUMBER_KINDS
        by = self.farthest.factor
        return next((word for word, up_to in VERDICT_WORDS if by <= up_to * (1 + TIE)), FAR_KIND)

    @property
    def counts(self) -> dict[str, int]:
        """Number of catalogue comparisons that agree (`agree`) and of all of them (`of`)."""
        return {"agree": sum(pair.agrees for pair in self.catalogue), "of": len(self.catalogue)}

    @property
    def text(self) -> str:
        """`off: 5 of 15 from the catalogue agree; farthest: h20, fp8, 37 for 300, by 8.1`."""
        if self.farthest is None:
            return f"{NO_NUMBER_KINDS}: nothing computed stands beside a number of the lecture"
        sides = (("from its own inputs", self.stated), ("from the catalogue", self.catalogue))
        agreeing = ", ".join(
            f"{sum(pair.agrees for pair in group)} of {len(group)} {where}"
            for where, group in sides
            if group
        )
        far = self.farthest
        by = f"{far.factor:.3g}"
        by = "" if by == "1" else f"; farthest: {far.what}, {far.text}, by {by}"
        return f"{self.word}: {agreeing} agree{by}"


def verdict_counts(verdicts: Iterable[Verdict]) -> str:
    """`57 claims: 20 holds, 9 near, ...`, in the order of the rule."""
    counted = Counter(verdict.word for verdict in verdicts)
    words = (*(word for word, _ in VERDICT_WORDS), FAR_KIND, NO_NUMBER_KINDS)
    listed = ", ".join(f"{word} {counted[word]}" for word in words)
    return f"{counted.total()} claims: {listed}."


# A number in the unit of its row, a formula of the lecture in symbols (which gives base units), or
# a range of two of them; "" leaves an end open.
Stated: TypeAlias = int | str | Sequence[int | str]


def _exact(values: Mapping[str, int | str]) -> dict[str, int | Fraction]:
    return {name: Fraction(v) if isinstance(v, str) else v for name, v in values.items()}


_ROWS = tomllib.loads(Path(__file__).with_name("lecture.toml").read_text("utf-8"))
CLAIM_KINDS: Mapping[str, str] = _ROWS["kinds"]
UNITS = _exact(_ROWS["units"])
LECTURE = _exact(_ROWS["machine_and_model"])


@dataclass(frozen=True)
class ComputedNumber:
    """One worked number: an equation of the catalogue at given values.

    Args:
        what: What the number is, in words.
        equation: Name in the catalogue.
        says: What the lecture states, `Stated`, or None where it states nothing.
        unit: A key of `UNITS`, or a word that is printed as it stands (base units).
        inputs: Values that differ from the claim's, in base units.
    """

    what: str
    equation: str
    says: Stated | None = field(default=None, hash=False)
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

    def compared(self, values: Mapping[str, float | int | Fraction]) -> ClaimComparison | None:
        """Compare the number with the lecture's statement; None if the lecture states no number.

        Raises as `value` does; ValueError if a formula of the lecture holds an unknown symbol.
        """
        case = {x: float(v) for x, v in {**values, **self.inputs}.items()}
        return compare_with_claim(self.what, self.value(values), self.says, case, self.unit)


def compare_with_claim(
    what: str, value: float, says: Stated | None, case: Mapping[str, float], unit: str = ""
) -> ClaimComparison | None:
    """Compare a computed number, in `unit`, with the lecture's statement; None if `says` is None.

    Formulas of the lecture are evaluated at `case`, values in base units. Raises SymbolError if it
    lacks a symbol.
    """
    if says is None:
        return None
    ends = (says, says) if isinstance(says, int | str) else says
    low, high = (_end(end, case, unit, which) for which, end in enumerate(ends))
    words = figure_text(low, unit)
    if low != high:
        words = f"{figure_text(low)} to {figure_text(high, unit)}"
        words = f"at least {figure_text(low, unit)}" if high == math.inf else words
        words = f"at most {figure_text(high, unit)}" if low == 0 else words
    return ClaimComparison(what, value, low, high, f"{figure_text(value, unit)} for {words}")


def _end(end: int | str, case: Mapping[str, float], unit: str, which: int) -> float:
    if end == "":
        return (0.0, math.inf)[which]
    if isinstance(end, int):
        return float(end)
    node = ast.parse(end, mode="eval").body
    plain = not any(isinstance(part, ast.Name) and part.id in SYMBOLS for part in ast.walk(node))
    return _evaluated(node, case) / (1.0 if plain else float(UNITS.get(unit, 1)))


_OPERATORS: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {"max": max, "sqrt": math.sqrt, "log": math.log}


def _evaluated(node: ast.expr, values: Mapping[str, float]) -> float:
    """A formula of numbers, symbols, the four operators and a few functions."""
    match node:
        case ast.Constant(int(value)):
            return value
        case ast.Name(name):
            if name not in values:
                raise SymbolError(f"a statement needs {describe(name)}")
            return values[name]
        case ast.BinOp(left, kind, right) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_evaluated(left, values), _evaluated(right, values))
        case ast.Call(ast.Name(name), arguments) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_evaluated(argument, values) for argument in arguments))
    raise SymbolError(f"a statement cannot hold {ast.unparse(node)}")


@dataclass(frozen=True)
class Claim:
    """Statement of the lecture in words and numbers, with the reasons for its verdict.

    Args:
        id: `C1` ... `C51`.
        statement: The claim, in our words.
        source: Where the lecture says so.
        lecture_says: The number or formula as stated.
        why: Under which conditions it is so, and why not where it is not; the verdict itself is
            computed. `{agree}` of `{of}` are numbers of the catalogues that agree.
        kind: A key of `CLAIM_KINDS`.
        equations: Names in the catalogue of what the claim rests on.
        lecture: Values of symbols, on top of `LECTURE`, that the worked numbers are computed with.
        worked: The numbers, computed when asked for.
        note: Our side where it is not a number: a formula, a record, a reason.
    """

    id: str
    statement: str
    source: Citation
    lecture_says: str
    why: str
    kind: str = "derived"
    equations: tuple[str, ...] = ()
    lecture: Mapping[str, int | Fraction] = field(default_factory=dict, hash=False)
    worked: tuple[ComputedNumber, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if self.kind not in CLAIM_KINDS:
            raise ValueError(
                f"{self.id}: unknown kind {self.kind!r}; known: {', '.join(CLAIM_KINDS)}"
            )

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
            f"{each.what}: {figure_text(value, each.unit)}"
            for each, value in zip(self.worked, self.values(), strict=True)
        ]
        return "; ".join([*numbers, *([self.note] if self.note else [])])

    def compared(self) -> tuple[ClaimComparison, ...]:
        """Comparisons of the worked numbers that have a number of the lecture."""
        case = {**LECTURE, **self.lecture}
        pairs = (each.compared(case) for each in self.worked)
        return tuple(pair for pair in pairs if pair is not None)


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
        row["worked"] = tuple(ComputedNumber(**each) for each in row.get("worked", ()))
        claims.append(Claim(**row))
    return tuple(claims)


def figure_text(value: float, unit: str = "") -> str:
    """Four digits and a unit: `2,400`, `14.4 ms`, `2.592e+14`."""
    plain = 1e-3 <= abs(value) < 1e7 or value == 0
    digits = f"{float(f'{value:.4g}'):,.10g}" if plain else f"{value:.4g}"
    return f"{digits}{unit}" if unit == "%" else f"{digits} {unit}".rstrip()
