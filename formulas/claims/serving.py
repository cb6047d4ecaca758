"""Claims C1 to C28: the roofline, batching, experts, racks and pipelines."""

from __future__ import annotations

from formulas.claims.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = ()
