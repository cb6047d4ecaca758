"""The verdict on a claim: one word by one rule over the numbers, whatever the claim.

A number that the lecture states is held against the one computed for it. How far they are apart is
a factor, the larger over the smaller; of a stated range, or several accounts, the nearest counts.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from formulas.numerics.closeness import FAR, NEAR, ROUNDING, TIE

# Word, and the factor up to which the farthest number is so; beyond the last it is "far".
WORDS = (("holds", 1 + float(ROUNDING)), ("near", float(NEAR)), ("off", float(FAR)))
BEYOND, WITHOUT = "far", "unnumbered"
RULE = (
    "One rule gives every verdict. Each number that the lecture states, as a figure or by its own "
    "formula, is held against the one computed for it, from the lecture's own inputs and from real "
    "chips and models; the one farthest apart decides. A claim "
    + ", is ".join(
        f"{word}"
        + (f" within {100 * (up_to - 1):g} %" if up_to < 1.1 else f" within a factor of {up_to:g}")
        for word, up_to in WORDS
    )
    + f", else {BEYOND}; {WITHOUT} where nothing computed stands beside a number of it. "
    "Of a range the nearest end counts. A number that takes an assumption of ours is shown, not "
    "judged."
)


@dataclass(frozen=True)
class Compared:
    """A computed number beside what the lecture states.

    Parameters
    ----------
    what : What the number is, in words.
    value : As computed, in the unit of `low` and `high`.
    low, high : What is stated; equal for one number, 0 and infinity for an open end.
    text : Both sides as they are printed, such as `37 for 300`.
    """

    what: str
    value: float
    low: float
    high: float
    text: str

    @property
    def factor(self) -> float:
        """How far apart they are, the larger over the smaller; 1 within the range [-]."""
        if self.low <= self.value <= self.high:
            return 1.0
        end = self.low if self.value < self.low else self.high
        small, large = sorted((self.value, end))
        return large / small if small > 0 else math.inf

    @property
    def agrees(self) -> bool:
        """True within the lecture's rounding."""
        return self.factor <= WORDS[0][1] * (1 + TIE)


@dataclass(frozen=True)
class Verdict:
    """What the rule makes of the numbers of a claim, from its own inputs and the catalogues."""

    stated: tuple[Compared, ...] = ()
    catalogue: tuple[Compared, ...] = ()

    @property
    def farthest(self) -> Compared | None:
        """The number that decides; None without any."""
        return max((*self.stated, *self.catalogue), key=lambda pair: pair.factor, default=None)

    @property
    def word(self) -> str:
        """One of the words of the rule."""
        if self.farthest is None:
            return WITHOUT
        by = self.farthest.factor
        return next((word for word, up_to in WORDS if by <= up_to * (1 + TIE)), BEYOND)

    @property
    def counts(self) -> dict[str, int]:
        """How many numbers agree, of how many: `agree` and `of` for those of the catalogues."""
        return {"agree": sum(pair.agrees for pair in self.catalogue), "of": len(self.catalogue)}

    @property
    def text(self) -> str:
        """`off: 5 of 15 from the catalogue agree; farthest: h20, fp8, 37 for 300, by 8.1`."""
        if self.farthest is None:
            return f"{WITHOUT}: nothing computed stands beside a number of the lecture"
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


def tally(verdicts: Iterable[Verdict]) -> str:
    """`57 claims: 20 holds, 9 near, ...`, in the order of the rule."""
    counted = Counter(verdict.word for verdict in verdicts)
    words = (*(word for word, _ in WORDS), BEYOND, WITHOUT)
    listed = ", ".join(f"{word} {counted[word]}" for word in words)
    return f"{counted.total()} claims: {listed}."
