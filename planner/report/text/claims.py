"""What `planner derive claims` prints: the lecture's numbers, ours, and a verdict for each."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.claims import Claim, all_claims
from formulas.claims.claim import KINDS
from formulas.registry import by_name
from planner.claims import physical
from planner.text.errors import SolverError

__all__ = ["claims_rows", "claims_text"]

WIDTH = 100
INDENT = 6
LABEL = 12  # width of `the lecture:`


def claims_rows() -> list[dict[str, Any]]:
    """Every claim as plain data; its equations are checked on the way.

    `reproduces` is true when every number that the lecture gives comes out within rounding, false
    when one does not, None where it gives none. `lecture` and `physical` are the two columns.

    Raises
    ------
    SolverError
        If an equation that a claim rests on does not check: a fault of ours.
    """
    return [_row(claim) for claim in all_claims()]


def claims_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table on a terminal: one block a claim."""
    numbered = [row for row in rows if row["reproduces"] is not None]
    agree = sum(row["reproduces"] for row in numbered)
    end = (
        f"{len(rows)} claims; {len(numbered)} give numbers, of which {agree} come out within "
        f"rounding from the lecture's own inputs."
    )
    return "\n".join([*map(_block, rows), end])


def _row(claim: Claim) -> dict[str, Any]:
    values = claim.values()
    return {
        "id": claim.id,
        "kind": claim.kind,
        "statement": claim.statement,
        "lecture_says": claim.lecture_says,
        "ours": claim.ours,
        "reproduces": claim.reproduces,
        "verdict": claim.verdict,
        "equations": list(claim.equations),
        "checked": all(_checked(name) for name in claim.equations),
        "source": str(claim.source),
        "link": claim.source.link,
        "lecture": [
            {
                "what": each.what,
                "says": None if each.says is None else float(each.says),
                "value": value,
                "unit": each.unit,
                "equation": each.equation,
            }
            for each, value in zip(claim.worked, values, strict=True)
        ],
        "physical": [
            {
                "what": each.what,
                "value": each.value,
                "unit": each.unit,
                "equation": each.equation,
                "source": each.source,
                "note": each.note,
                "text": each.text,
            }
            for each in physical(claim.id)
        ],
    }


def _checked(name: str) -> bool:
    value = by_name()[name]
    try:
        return value.check()
    except DerivationError as error:
        raise SolverError(str(error)) from error
    except ValueError as error:
        kind = "derivation" if isinstance(value, Derivation) else "equation"
        raise SolverError(f"the {kind} {name} does not check: {error}") from error


def _block(row: Mapping[str, Any]) -> str:
    """A claim in four or five paragraphs, each behind its label."""
    sides = [("the lecture", row["lecture_says"]), ("ours", row["ours"])]
    sides.append(("physical", "; ".join(each["text"] for each in row["physical"])))
    if row["kind"] != "derived":
        sides.append(("kind", KINDS[row["kind"]]))
    sides.append(("verdict", row["verdict"]))
    sides.append(("equations", ", ".join(row["equations"])))
    head = _wrapped(f"{row['id']:<{INDENT - 1}} ", row["statement"])
    return "\n".join([head, *(_labelled(label, text) for label, text in sides if text), ""])


def _labelled(label: str, text: str) -> str:
    return _wrapped(f"{'':<{INDENT}}{label:<{LABEL}} ", text)


def _wrapped(first: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )
