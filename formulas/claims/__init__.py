"""The claims of the lecture: what it says, what the equations say, and whether the two agree."""

from formulas.claims.claim import Claim, ComputedNumber, all_claims

__all__ = ["Claim", "ComputedNumber", "all_claims"]
