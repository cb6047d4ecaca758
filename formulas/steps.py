"""One step of a derivation: what it says, what it neglects, and how it was shown to follow."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from formulas.expressions import text
from formulas.identity import Identity, limit_differs, shown

__all__ = ["DerivationError", "Step"]


class DerivationError(ValueError):
    """A step that does not follow."""


@dataclass(frozen=True)
class Step:
    """One form of the equation, and how it follows from the form before."""

    verb: str
    lhs: sp.Expr
    rhs: sp.Expr
    why: str
    identity: Identity | None = None
    size: sp.Expr | None = None  # of what was neglected, relative to what was kept
    neglected: str = ""
    approach: tuple[sp.Symbol, sp.Expr] | None = None
    solved: sp.Symbol | None = None

    @property
    def exact(self) -> bool:
        """Whether nothing was neglected."""
        return self.size is None

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

    def proof(self, before: Step | None) -> str:
        """How this step was shown to follow from the one before.

        Raises
        ------
        DerivationError
            If it does not.
        """
        if self.identity is not None:
            found = self.identity.difference(thorough=True)
            if found:
                raise DerivationError(f"the two sides differ by {found[1]} at {shown(found[0])}")
            shown_so = self.identity.proof()
            if self.solved is None or before is None:
                return shown_so
            return f"put back, {shown_so}{_uniqueness(before, self.solved)}"
        if self.approach is not None and before is not None:
            return _limit_proof(before.rhs, self.rhs, *self.approach)
        return _PROOFS[self.verb]


_PROOFS = {
    "begin": "stated",
    "substitute": "by definition",
    "drop": "approximate",
    "at": "numbers put in",
}


def _uniqueness(before: Step, x: sp.Symbol) -> str:
    """`, the only solution` when the equation is linear in the symbol solved for."""
    over, _ = sp.fraction(sp.together(before.lhs - before.rhs))
    linear = over.is_polynomial(x) and sp.degree(over, x) == 1
    return ", the only solution" if linear else ""


def _limit_proof(before: sp.Expr, after: sp.Expr, x: sp.Symbol, to: sp.Expr) -> str:
    against = limit_differs(before, after, x, to)
    if against:
        raise DerivationError(against)
    numerically = "limit, numerically at three points"
    if before.has(sp.Max, sp.Min, sp.ceiling, sp.floor):
        return numerically
    try:
        difference = sp.limit(before, x, to) - after
    except NotImplementedError:  # SymPy's way of saying that it cannot decide a sign
        return numerically
    return "limit, symbolically" if sp.simplify(difference) == 0 else numerically
