"""One step of a derivation: what it says, what it neglects, and how it was shown to follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from formulas.algebra.identity import Identity, limit_differs, limit_points, never_positive, shown
from formulas.numerics.expressions import text


class DerivationError(ValueError):
    """A step that does not follow."""


@dataclass(frozen=True)
class DerivationStep:
    """One form of the equation, and how it follows from the form before.

    `arguments` is what the verb was called with, so that it can be called again; `borrowed` holds
    the approximate steps of a derivation that was put in, whose neglect this step inherits.
    """

    verb: str
    lhs: sp.Expr
    rhs: sp.Expr
    why: str
    identity: Identity | None = None
    size: sp.Expr | None = None  # of what was neglected, relative to what was kept
    neglected: str = ""
    approach: tuple[sp.Symbol, sp.Expr] | None = None
    solved: sp.Symbol | None = None
    borrowed: tuple[DerivationStep, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @property
    def exact(self) -> bool:
        """True if no term was neglected, here or in the equations used."""
        return self.size is None and not self.borrowed

    @property
    def relation(self) -> str:
        """`=` or `≈`."""
        return "=" if self.exact else "≈"

    def __str__(self) -> str:
        return f"{text(self.lhs)} {self.relation} {text(self.rhs)}"

    def text(self, number: int, proof: str) -> str:
        """Three lines: what is done and why, the new form, how it was shown."""
        why = f": {self.why}" if self.why else ""
        size = "" if self.size is None else f"; neglected over kept: {text(self.size)}"
        return f"  {number}. {self.verb}{why}\n       {self}\n       [{proof}{size}]"

    def proof(self, before: DerivationStep | None) -> str:
        """The proof that this step follows from the one before, in words.

        Raises DerivationError if it does not.
        """
        if self.identity is not None:
            difference = self.identity.difference(thorough=True)
            if difference:
                point, size = difference
                raise DerivationError(f"the two sides differ by {size} at {shown(point)}")
            proof = self.identity.proof() + self._borrowing()
            if self.solved is None or before is None:
                return proof
            return f"put back, {proof}{_uniqueness(before, self.solved)}"
        if self.approach is not None and before is not None:
            return _limit_proof(before.rhs, self.rhs, *self.approach)
        return _PROOFS[self.verb] + self._borrowing()

    def _borrowing(self) -> str:
        names = ", ".join(dict.fromkeys(step.neglected for step in self.borrowed))
        return f", of an approximation: {names}" if names else ""


def approximations(derivation: object) -> tuple[DerivationStep, ...]:
    """Every approximate step of a derivation and of what it puts in; an equation has none."""
    approximate: dict[str, DerivationStep] = {}
    for step in getattr(derivation, "steps", ()):
        for part in (*step.borrowed, step):
            if part.size is not None:
                approximate.setdefault(part.neglected, part)
    return tuple(approximate.values())


def dropped(
    last: DerivationStep, term: sp.Expr, beside: sp.Expr, why: str
) -> DerivationStep | None:
    """The form without an addend of one of its sides; None unless both are addends of that side."""
    term, beside = sp.expand(term), sp.expand(beside)
    for side in ("rhs", "lhs"):
        parts = list(sp.Add.make_args(sp.expand(getattr(last, side))))
        if term in parts and beside in parts and term != beside:
            parts.remove(term)
            left = {side: sp.factor_terms(sp.Add(*parts))}
            sides = {"lhs": last.lhs, "rhs": last.rhs} | left
            return DerivationStep(
                "drop", **sides, why=why, size=term / beside, neglected=f"drop {text(term)}"
            )
    return None


def unfit(x: sp.Symbol, claim: sp.Expr) -> str:
    """Why a claim cannot be a value of a symbol, whatever the equation; empty when it can."""
    if claim.has(x):
        return f"the claim for {x.name} still contains {x.name}"
    if never_positive(claim):
        return f"{x.name} = {text(claim)} is positive at no point, and every symbol is positive"
    return ""


_PROOFS = {
    "begin": "stated",
    "substitute": "by definition",
    "drop": "approximate",
    "at": "numbers put in",
}


def _uniqueness(before: DerivationStep, x: sp.Symbol) -> str:
    """`, the only solution` when the equation is linear in the symbol solved for."""
    over, _ = sp.fraction(sp.together(before.lhs - before.rhs))
    linear = over.is_polynomial(x) and sp.degree(over, x) == 1
    return ", the only solution" if linear else ""


def _limit_proof(before: sp.Expr, after: sp.Expr, x: sp.Symbol, to: sp.Expr) -> str:
    against = limit_differs(before, after, x, to)
    if against:
        raise DerivationError(against)
    numerically = f"limit, numerically at {limit_points(before, after)} points"
    if before.has(sp.Max, sp.Min, sp.ceiling, sp.floor):
        return numerically
    try:
        difference = sp.limit(before, x, to) - after
    except NotImplementedError:  # SymPy's way of saying that it cannot decide a sign
        return numerically
    return "limit, symbolically" if sp.simplify(difference) == 0 else numerically
