"""The size and the tokens that a law gives to an arithmetic of training: its compute optimum.

A law with a loss is minimised along `flop_per * n * d = arithmetic`; a rule that gives no loss is
read off. The first is a search in one unknown, the closed forms of `formulas` are its check.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.laws.scaling_law import UNITS, ScalingLaw
from planner.text.errors import FieldError, SolverError

FLOP_PER = 6.0  # of training, per active parameter and token
WIDEST = math.log(1e80)  # sizes and tokens are looked for between its inverse and this
CLOSE = 1e-13


@dataclass(frozen=True)
class Allocation:
    """A compute-optimal model.

    Attributes
    ----------
    n, d
        Active parameters and training tokens.
    arithmetic
        Of its training [FLOP].
    loss
        [nat]; None for a rule that gives none.
    """

    n: float
    d: float
    arithmetic: float
    loss: float | None


def allocation(
    law: ScalingLaw,
    arithmetic: float,
    *,
    sparsity: float | None = None,
    unique: float | None = None,
    flop_per: float = FLOP_PER,
) -> Allocation:
    """The compute-optimal model of a law for an arithmetic [FLOP].

    Parameters
    ----------
    sparsity
        Total over active parameters; that of the law, or 1, where none is given.
    unique
        Distinct tokens, for a law that knows repetition.
    flop_per
        Arithmetic of training per active parameter and token [FLOP].

    Raises
    ------
    FieldError
        If the law gives neither a rule nor a loss in both size and tokens, or lacks what is asked.
    """
    if law.form in ("allocation", "ratio"):
        n, d = _by_rule(law, arithmetic, flop_per)
        return Allocation(n, d, arithmetic, None)
    _need_both(law)
    ratio = _sparsity(law, sparsity)
    pairs = math.log(arithmetic / flop_per)

    def loss_at(ln_n: float) -> float:
        n = math.exp(ln_n)
        return float(law.loss(n, arithmetic / (flop_per * n), sparsity=ratio, unique=unique))

    if unique is None:
        ln_n = _root(_slope(law, ratio, pairs), pairs - WIDEST, WIDEST)
    else:
        law.need("repetition")
        ln_n = _golden(loss_at, 0.0, pairs)
    n = math.exp(ln_n)
    return Allocation(n, arithmetic / (flop_per * n), arithmetic, loss_at(ln_n))


def size_of_loss(
    law: ScalingLaw, loss: float, *, sparsity: float | None = None, flop_per: float = FLOP_PER
) -> Allocation:
    """The compute-optimal model that reaches a loss [nat].

    Raises
    ------
    FieldError
        If the law has no loss in both size and tokens, or the loss is at or below its floor.
    """
    _need_both(law)
    ratio = _sparsity(law, sparsity)
    terms = law.terms(ratio)
    if terms is None:
        raise FieldError(("law", f"{law.name} does not say how to split an arithmetic"))
    if loss <= terms.floor:
        raise FieldError(
            ("quality.loss", f"{law.name} leaves a loss of {terms.floor:.4g} at any size and with "
                             f"any tokens; {loss:.4g} is not above it")
        )  # fmt: skip

    def gap(pairs: float) -> float:
        ln_n = _root(_slope(law, ratio, pairs), pairs - WIDEST, WIDEST)
        excess = float(terms.excess(math.exp(ln_n), math.exp(pairs - ln_n)))
        return math.log(excess) - math.log(loss - terms.floor)

    pairs = _root(gap, 0.0, WIDEST)
    return allocation(law, flop_per * math.exp(pairs), sparsity=ratio, flop_per=flop_per)


def _need_both(law: ScalingLaw) -> None:
    for choice in ("loss", "size", "tokens"):
        law.need(choice)


def _sparsity(law: ScalingLaw, sparsity: float | None) -> float:
    return (law.fixed_sparsity or 1.0) if sparsity is None else sparsity


def _by_rule(law: ScalingLaw, arithmetic: float, flop_per: float) -> tuple[float, float]:
    """Size and tokens by a rule, each from what the rule gives."""
    from formulas.scaling import allocation as rules

    case = {**UNITS, **law.values, "C_pt": arithmetic, "c_fwd": flop_per / 3}

    def of(name: str) -> float:
        run = getattr(rules, name).numpy()
        return float(run(**{x: case[x] for x in run.kernel.names}))

    if law.form == "ratio":
        n = of("ratio_parameters")
    elif "k_size" in law.values:
        n = of("allocated_parameters")
    elif "k_model" in law.values:
        n = of("allocated_size_by_arithmetic")
    elif "k_tokens" in law.values:
        n = of("allocated_size_by_tokens")
    else:
        raise FieldError(
            ("law", f"{law.name} gives exponents alone: without a prefactor there is no size")
        )
    if "k_tokens" in law.values:
        return n, of("allocated_tokens")
    return n, arithmetic / (flop_per * n)


def _slope(law: ScalingLaw, sparsity: float, pairs: float) -> Callable[[float], float]:
    """Gain of one percent of tokens less that of one percent of size, at equal arithmetic."""
    terms = law.terms(sparsity)
    if terms is None:
        raise FieldError(("law", f"{law.name} does not say how to split an arithmetic"))

    def at(ln_n: float) -> float:
        pull = [
            (math.log(t.coefficient) + t.size * ln_n + t.tokens * (pairs - ln_n), t.size - t.tokens)
            for t in terms.terms
        ]
        top = max(height for height, _ in pull)
        return sum(lever * math.exp(height - top) for height, lever in pull)

    return at


def _root(at: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a function that changes sign once between two points, by halving."""
    first = at(low)
    if first * at(high) > 0:
        raise SolverError("no compute-optimal model lies within eighty orders of magnitude")
    while high - low > CLOSE * max(1.0, abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if at(middle) * first > 0 else (low, middle)
    return (low + high) / 2


def _golden(at: Callable[[float], float], low: float, high: float) -> float:
    """The lowest point of a function with one valley, by the golden section."""
    share = (math.sqrt(5) - 1) / 2
    inner = [high - share * (high - low), low + share * (high - low)]
    values = [at(inner[0]), at(inner[1])]
    while high - low > 1e-9 * abs(high):
        if values[0] <= values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - share * (high - low)
            values[0] = at(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + share * (high - low)
            values[1] = at(inner[1])
    return (low + high) / 2
