"""Limits of bandwidths, latencies and counts, and the error for values beyond them.

A fault is a sentence that finishes "bandwidth ...", or None when the number is sound.

`TopologyError` is the one error of this package: every fault, each with its place.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real

# Cables of a machine room are below a microsecond; a tenth of a second is a slipped unit.
LATENCY_LIMIT = 0.1
# Slower than any link in use, faster than any package: GB/s written as B/s, or the reverse.
MIN_USUAL_RATE, MAX_USUAL_RATE = 1e6, 100e12
# Beyond these no unit slip explains the figure, and sums of such figures leave the number range.
MIN_RATE, MAX_RATE = 1e-12, 1e24
# More than are made: a product of such counts still is an exact number.
MAX_COUNT = 10**9
MAX_QUOTED_LENGTH = 60  # characters of a value in a message
WORD_SEPARATORS = re.compile(r"[-_ ./]+")
MODEL = re.compile(r"(?=.*[a-z])(?=.*\d).{4,}")  # a part that is of one product: mi300x, h100


def rate_fault(value: object) -> str | None:
    """Return the reason why `value` is no bandwidth [byte/s one way], or None if it is valid."""
    number = _number(value, "byte/s one way, such as 45e9 for 45 GB/s")
    if isinstance(number, str):
        return number
    if number == 0:
        return "is 0; leave the link out to model a failure"
    if number < 0:
        return f"is {quote(value)}; it must be above 0 (each direction is an arc of its own)"
    if not MIN_RATE <= number <= MAX_RATE:
        return f"is {number:g} byte/s; no network is that {'slow' if number < 1 else 'fast'}"
    return None


def latency_fault(value: object) -> str | None:
    """Return the reason why `value` is no latency [s], or None if it is valid."""
    number = _number(value, "seconds, such as 1e-6 for one microsecond")
    if isinstance(number, str):
        return number
    if number < 0:
        return f"is {quote(value)}; it cannot be below 0"
    if number >= LATENCY_LIMIT:
        return f"is {quote(value)}; less than {LATENCY_LIMIT} s was expected (given in us or ns?)"
    return None


def count_fault(value: object) -> str | None:
    """Return the reason why `value` is no positive count, or None if it is valid."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return f"is {quote(value)}; a whole number of at least 1 was expected"
    if int(value) > MAX_COUNT:
        return f"is {quote(value)}; at most {MAX_COUNT} was expected"
    return None if int(value) >= 1 else f"is {quote(value)}; it must be at least 1"


def rate_warning(value: float) -> str | None:
    """A warning about a bandwidth [byte/s] outside the usual range, else None."""
    if value < MIN_USUAL_RATE:
        return f"is {value:g} byte/s, below 1 MB/s (GB/s written as byte/s?)"
    if value > MAX_USUAL_RATE:
        return f"is {value:g} byte/s, above 100 TB/s (a multiple applied twice?)"
    return None


def quote(value: object) -> str:
    """`value` as a message quotes it: whole if it is short."""
    if isinstance(value, int) and value.bit_length() > 4 * MAX_QUOTED_LENGTH:
        return f"a whole number of about {int(value.bit_length() * math.log10(2))} digits"
    text = repr(value)
    return text if len(text) <= MAX_QUOTED_LENGTH else f"{text[: MAX_QUOTED_LENGTH - 3]}..."


def as_tuples(value: object) -> object:
    """Convert lists to tuples, nested lists too, so that they can be compared and hashed."""
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


def _number(value: object, expected: str) -> float | str:
    """`value` as a float, or why it is none."""
    if type(value) is float and math.isfinite(value):
        return value  # as nearly all of many thousands are
    if isinstance(value, str):
        return f"is the text {quote(value)}; a number was expected, in {expected}"
    if isinstance(value, bool) or not isinstance(value, Real):
        return f"is {quote(value)}; a number was expected, in {expected}"
    try:
        number = float(value)
    except OverflowError:
        return f"is {quote(value)}; a smaller number was expected, in {expected}"
    if not math.isfinite(number):
        return f"is {number}; a finite number was expected, in {expected}"
    return number


class TopologyError(ValueError):
    """A fabric, a machine or a question about them that cannot be answered.

    Args:
        where: What was looked at: the name of a fabric, a machine or a function.
        problems: Every problem found, one line each, its place first.

    >>> print(TopologyError("fabric 'pod'", ["node 3: no kind", "arc 1 -> 2: bandwidth is 0"]))
    fabric 'pod': 2 problems
      node 3: no kind
      arc 1 -> 2: bandwidth is 0
    """

    def __init__(self, where: str, problems: str | Sequence[str]) -> None:
        self.where = where
        self.problems: tuple[str, ...] = (
            (problems,) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__(where, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.where}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.where}: {len(self.problems)} problems{lines}"


def did_you_mean(word: object, candidates: Iterable[str]) -> str:
    """`; did you mean 'tpot'?` for the nearest of the candidates, or nothing."""
    names = [str(name) for name in candidates]
    text = str(word)[:200]
    parts = WORD_SEPARATORS.split(text.casefold())
    models = {part for part in parts if MODEL.fullmatch(part)}
    if alike := [name for name in names if models & {*WORD_SEPARATORS.split(name.casefold())}]:
        if parts[0] not in models:
            # A prefix, as in hgx-mi300x or p5-h100, asks for a machine: leave the bare chip out.
            alike = [name for name in alike if name.casefold() not in models] or alike
        return f"; did you mean {get_close_matches(text, alike, n=1, cutoff=0.0)[0]!r}?"
    near = get_close_matches(text, names, n=1, cutoff=0.6)
    if not near:
        folded = {name.casefold(): name for name in names}
        near = [folded[hit] for hit in get_close_matches(text.casefold(), folded, n=1)]
    return f"; did you mean {near[0]!r}?" if near else ""


def suggest(word: object, candidates: Iterable[str]) -> str:
    """`did you mean 'tpot'?` for the nearest candidate, else `known: ...` with all of them."""
    words = list(candidates)
    close = get_close_matches(str(word), words, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(words)}"


def check_arguments(
    builder: str,
    *,
    counts: Mapping[str, object] | None = None,
    rates: Mapping[str, object] | None = None,
    latencies: Mapping[str, object] | None = None,
    flags: Mapping[str, object] | None = None,
    others: Iterable[str | None] = (),
) -> None:
    """Raise unless every argument is sound.

    Args:
        counts, rates, latencies, flags: Whole numbers of at least 1, bandwidths [byte/s one way],
            latencies [s] and truth values, by the names under which the caller knows them.
        others: Faults that the builder found itself; None where there is none.
    """
    checks = (
        (counts, "", count_fault),
        (rates, ": bandwidth", rate_fault),
        (latencies, "", latency_fault),
        (flags, "", flag_fault),
    )
    faults = [
        f"{name}{word} {fault}"
        for values, word, fault_of in checks
        for name, value in (values or {}).items()
        if (fault := fault_of(value)) is not None
    ]
    faults += filter(None, others)
    if faults:
        raise TopologyError(builder, faults)


def flag_fault(value: object) -> str | None:
    """Return the reason why `value` is no bool, or None if it is valid."""
    return None if isinstance(value, bool) else f"is {value!r}; True or False was expected"


def choice_fault(name: str, value: object, choices: Sequence[str]) -> str | None:
    """Return the reason why `value` is not in `choices`, or None if it is valid."""
    return None if value in choices else f"{name} is {value!r}; {suggest(value, choices)}"


def ratio_fault(name: str, value: object) -> str | None:
    """Return the reason why `value` is no oversubscription o of o:1, at least 1; None if valid."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 1 <= float(value) < 1e6:
        return f"{name} is {value!r}; a number of at least 1 was expected, such as 4 for 4:1"
    return None
