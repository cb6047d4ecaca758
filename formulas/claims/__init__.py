"""The claims of the lecture: what it says, what the equations say, and whether the two agree."""

from importlib import import_module

from formulas.claims.claim import Claim, Worked

__all__ = ["MODULES", "Claim", "Worked", "all_claims"]

MODULES = ("batches", "racks", "training", "caches")  # each holds a tuple CLAIMS


def all_claims() -> tuple[Claim, ...]:
    """Every claim, C1 first."""
    claims = [c for name in MODULES for c in import_module(f"formulas.claims.{name}").CLAIMS]
    return tuple(sorted(claims, key=lambda claim: int(claim.id[1:])))
