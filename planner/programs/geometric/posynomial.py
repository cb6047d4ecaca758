"""Sums of monomials in the choices, with coefficients that are any expression of the givens.

A signomial is kept as a dictionary from the powers of its monomial to its coefficient, so that
(tp - 1)/tp stays one number to the solver although it is no posynomial in tp.
"""

from collections.abc import Iterable

import sympy as sp

Powers = frozenset[tuple[sp.Symbol, sp.Expr]]
Signomial = dict[Powers, sp.Expr]

LARGEST_EXPANSION = 48
"""Monomials beyond which a power is given a variable of its own instead of being multiplied out."""


def constant(value: sp.Expr) -> Signomial:
    """The signomial with no choice in it; empty for zero."""
    return {} if value.is_zero else {frozenset(): value}


def monomial(symbol: sp.Symbol, exponent: sp.Expr = sp.S.One) -> Signomial:
    """One choice raised to a power."""
    return {frozenset({(symbol, exponent)}): sp.S.One}


def total(signomials: Iterable[Signomial]) -> Signomial:
    """Their sum; monomials with the same powers share one coefficient."""
    terms: dict[Powers, list[sp.Expr]] = {}
    for signomial in signomials:
        for powers, coefficient in signomial.items():
            terms.setdefault(powers, []).append(coefficient)
    merged = {powers: sp.Add(*several) for powers, several in terms.items()}
    return {powers: value for powers, value in merged.items() if not value.is_zero}


def product(left: Signomial, right: Signomial) -> Signomial:
    """Their product, multiplied out."""
    return total({_joined(p, q): a * b} for p, a in left.items() for q, b in right.items())


def monomial_power(base: Signomial, exponent: sp.Expr) -> Signomial:
    """A single monomial raised to any exponent of the givens."""
    ((powers, coefficient),) = base.items()
    raised = frozenset((symbol, each * exponent) for symbol, each in powers)
    return {raised: coefficient**exponent}


def expanded_power(base: Signomial, exponent: sp.Expr) -> Signomial | None:
    """base**exponent multiplied out, or None unless it is a small whole power."""
    if not (
        exponent.is_Integer and exponent > 0 and len(base) ** int(exponent) <= LARGEST_EXPANSION
    ):
        return None
    raised = base
    for _ in range(int(exponent) - 1):
        raised = product(raised, base)
    return raised


def signed_parts(signomial: Signomial) -> tuple[Signomial, Signomial]:
    """The positive part and the negative part, the second with its sign turned.

    A coefficient whose sign SymPy cannot tell, such as M - reserve, counts as positive; its value
    is checked at every solve.
    """
    positive, negative = {}, {}
    for powers, coefficient in signomial.items():
        if coefficient.is_negative or coefficient.as_coeff_Mul()[0].is_negative:
            negative[powers] = -coefficient
        else:
            positive[powers] = coefficient
    return positive, negative


def to_sympy(signomial: Signomial) -> sp.Expr:
    """The signomial as one SymPy expression, for messages."""
    return sp.Add(
        *(
            coefficient * sp.Mul(*(symbol**exponent for symbol, exponent in powers))
            for powers, coefficient in signomial.items()
        )
    )


def truncate(expression: sp.Basic, width: int = 240) -> str:
    """The expression as text, its floats without padding, not longer than `width`."""
    text: str = sp.sstr(expression, full_prec=False)
    return text if len(text) <= width else text[: width - 3] + "..."


def _joined(left: Powers, right: Powers) -> Powers:
    if not left:
        return right
    if not right:
        return left
    exponents = dict(left)
    for symbol, exponent in right:
        exponents[symbol] = exponents.get(symbol, sp.S.Zero) + exponent
    return frozenset((s, e) for s, e in exponents.items() if not e.is_zero)
