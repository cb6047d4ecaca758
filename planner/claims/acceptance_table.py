"""The acceptance table: every claim with both columns of numbers and the verdict of the rule."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from formulas.claims import Claim, all_claims
from formulas.claims.claim import KINDS, RULE, Verdict, tally
from formulas.export.formula_document import AcceptanceTable, ClaimEntry
from planner.claims.physical_column import PhysicalFigure, physical


@dataclass(frozen=True)
class AcceptanceRow:
    """A claim, what the catalogues have to say, and what the rule makes of all its numbers."""

    claim: Claim
    physical: tuple[PhysicalFigure, ...]
    verdict: Verdict

    @property
    def why(self) -> str:
        """Under which conditions, and why not where it is not so, with counts filled in."""
        return self.claim.why.format(**self.verdict.counts) if "{" in self.claim.why else (
            self.claim.why
        )  # fmt: skip

    def entry(self) -> ClaimEntry:
        """As documents show it: labels and words."""
        claim = self.claim
        sides = (
            ("the lecture", claim.lecture_says),
            ("ours", claim.ours),
            ("physical", "; ".join(each.text for each in self.physical)),
            ("kind", "" if claim.kind == "derived" else KINDS[claim.kind]),
            ("verdict", self.verdict.text),
            ("why", self.why),
        )
        shown = tuple((label, words) for label, words in sides if words)
        far = self.verdict.farthest
        factor = f"{far.factor:.3g}" if far else ""
        return ClaimEntry(
            claim.id,
            claim.statement,
            self.verdict.word,
            factor,
            shown,
            claim.equations,
            claim.source,
        )


@cache
def acceptance_row(claim: Claim) -> AcceptanceRow:
    """The row of one claim; every number is computed here."""
    numbers = physical(claim.id)
    beside = tuple(each.compared for each in numbers if each.compared is not None)
    return AcceptanceRow(claim, numbers, Verdict(claim.compared(), beside))


def acceptance(claims: Iterable[Claim] | None = None, *, whole: bool = True) -> AcceptanceTable:
    """The table of these claims, or of all, with the rule and the tally of its verdicts.

    Parameters
    ----------
    whole : Whether a document shows the table, not only the claims beside each derivation.
    """
    rows = [acceptance_row(claim) for claim in (all_claims() if claims is None else claims)]
    entries = tuple(row.entry() for row in rows)
    return AcceptanceTable(RULE, tally(row.verdict for row in rows), entries, whole)
