"""What `planner derive` prints: the list, the table of claims, or derivations in a format.

Derivations are shown under two sets of assumptions. The lecture's figures are those that its claims
are worked with; the physical ones come from the catalogues, for one model on one domain of chips.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.claims import Claim, all_claims
from formulas.claims.claim import KINDS, LECTURE
from formulas.export import FORMATS, export
from formulas.nomenclature.symbols import SymbolError
from formulas.registry import by_name, find, name_of, tags
from planner.catalogue.listed_prices import default_price
from planner.claims import physical as physical_numbers
from planner.claims.physical_column import chip_case, counted, model_case
from planner.report.files import dumps, pdf
from planner.text.errors import InputError, SolverError, did_you_mean

WIDTH = 100
INDENT = 6
LABEL = 12  # width of `the lecture:`
MODEL, CHIP, CHIPS, FORMAT = "deepseek-v3", "h200", 8, "fp8"
# What is asked of it: a choice, not a measurement.
WORKLOAD: Mapping[str, float] = {"B": 256, "L_ctx": 4096, "m_pos": 1, "g": 1}


ABOUT = (
    "Two sets of assumptions stand side by side. The lecture counts a multiply-add as one FLOP; "
    "it takes a chip of 300 of them per byte of bandwidth, one byte per weight, and 100 of 800 "
    "billion parameters active. What stands under lecture is what its own figures give. Under "
    f"physical stands {MODEL} on {CHIPS} chips {CHIP} in {FORMAT}, decoding "
    f"{WORKLOAD['B']:g} sequences of {WORKLOAD['L_ctx']:g} tokens: dense data-sheet peaks at two "
    "FLOP per multiply-add, the model's own shape, a listed rent.",
)
CLAIMS = "claims"
PRINTED = (*FORMATS, "pdf")
SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".ipynb": "notebook",
    ".typ": "typst",
    ".pdf": "pdf",
}


def answered(
    names: Sequence[str], *, every: bool, form: str | None, out: Path | None, json: bool
) -> str | bytes:
    """What the command answers: the list, the table of claims, or a document.

    A format or a file without a name means all of them. Raises InputError if the arguments
    contradict each other, or as `rows` and `derived` do.
    """
    if names and every:
        raise InputError("name what to derive or say --all, not both")
    if json and form is not None:
        raise InputError("--json is a format of its own; leave out --format")
    if CLAIMS in names:
        if len(names) > 1 or form is not None:
            raise InputError("claims is a table of its own: planner derive claims [--json]")
        return dumps(claims_rows()) if json else claims_text(all_claims())
    if json or not (names or every or form or out):
        listed = rows(names)
        return dumps([asdict(row) for row in listed]) if json else rows_text(listed)
    return derived(names, format_of(form, out))


@dataclass(frozen=True)
class CheckedFormula:
    """An equation or derivation of the list, under its name in Python."""

    name: str
    title: str
    kind: str
    claims: tuple[str, ...]
    steps: int
    exact: bool
    checked: bool


def rows(names: Sequence[str] = ()) -> list[CheckedFormula]:
    """The named equations and derivations, or all, each checked.

    Raises InputError if a name is unknown; SolverError if one does not check: a fault of ours.
    """
    listed = []
    for entry in _chosen(names):
        name, steps, exact = name_of(entry), 1, True
        if isinstance(entry, Derivation):
            steps, exact = len(entry.steps), entry.exact
        checked = _checked(entry, name)
        listed.append(
            CheckedFormula(name, entry.name, _kind(entry), tags(name), steps, exact, checked)
        )
    return listed


def rows_text(listed: Sequence[CheckedFormula]) -> str:
    """The list on a terminal: derivations with their steps, then equations."""
    lines: list[str] = []
    for kind in ("derivation", "equation"):
        rows = [row for row in listed if row.kind == kind]
        if rows:
            lines += ["", f"{len(rows)} {kind}s"] if lines else [f"{len(rows)} {kind}s"]
        for row in rows:
            form = "exact" if row.exact else "approximate"
            steps = f"{row.steps} step{'s' * (row.steps > 1)}, {form}, "
            claims = f" ({', '.join(row.claims)})" if row.claims else ""
            lines.append(f"  {row.name:<26} {steps * (kind == 'derivation')}checked")
            lines.append(f"  {'':<26} {row.title}{claims}")
    return "\n".join(lines)


def format_of(form: str | None, out: Path | None) -> str:
    """The format asked for, else the one that the name of the output file says, else text.

    Raises InputError if the format is unknown, or the name of the file does not say which.
    """
    if form is None and out is not None:
        form = SUFFIXES.get(out.suffix.lower())
        if form is None:
            raise InputError(
                f"{out} does not say which format; end it in {', '.join(SUFFIXES)}, or add --format"
            )
    form = form or "text"
    if form not in PRINTED:
        raise InputError(
            f"no format {form!r}{did_you_mean(form, PRINTED)} (known: {', '.join(PRINTED)})"
        )
    return form


def derived(names: Sequence[str], form: str) -> str | bytes:
    """The named equations and derivations, or all, in a format; PDF as bytes.

    Every step is checked as it is written. Raises InputError if a name is unknown, or a package
    that the format needs is missing; SolverError if a step does not check: a fault of ours.
    """
    chosen = _chosen(names)
    # The title of all is the lecture's subject; of several, what they are.
    title = None if names else "The economics of a token, derived and checked"
    try:
        written = export(
            chosen, "typst" if form == "pdf" else form, cases(), title=title, about=ABOUT
        )
    except DerivationError as error:
        raise SolverError(str(error)) from error
    return pdf(written) if form == "pdf" else written


def _chosen(names: Sequence[str]) -> tuple[Equation | Derivation, ...]:
    """What is called so, each once; all where nothing is named."""
    try:
        entries = map(find, names) if names else by_name().values()
        return tuple({id(entry): entry for entry in entries}.values())
    except SymbolError as error:
        raise InputError(str(error)) from error


def _checked(entry: Equation | Derivation, name: str) -> bool:
    """True, or SolverError: an equation or derivation that does not check is a fault of ours."""
    try:
        return entry.check()
    except DerivationError as error:
        raise SolverError(str(error)) from error
    except ValueError as error:
        raise SolverError(f"the {_kind(entry)} {name} does not check: {error}") from error


def _kind(entry: Equation | Derivation) -> str:
    return "derivation" if isinstance(entry, Derivation) else "equation"


def cases() -> dict[str, dict[str, float]]:
    """`{"lecture": ..., "physical": ...}`, values of symbols in their own units.

    The lecture's machine and model, its cache and its fast mode are as its claims state them; the
    physical figures are of data sheets, the model's own shape and a listed rent.
    """
    stated = {claim.id: claim.lecture for claim in all_claims()}
    lecture = {**LECTURE, **stated["C13"], **stated["C6"]}
    physical = {
        **chip_case(CHIP, FORMAT, CHIPS),
        **model_case(MODEL, FORMAT),
        **WORKLOAD,
        "n_chips": float(CHIPS),
        "n_domain": float(CHIPS),
        "n_layers": float(counted(MODEL, FORMAT).n_attention_layers),
        "p_chip": default_price(CHIP).value,
    }
    return {"lecture": {x: float(value) for x, value in lecture.items()}, "physical": physical}


def claims_rows() -> list[dict[str, object]]:
    """Every claim as plain data; its equations are checked on the way.

    `reproduces` is true when every number that the lecture gives comes out within rounding, false
    when one does not, None where it gives none. `lecture` and `physical` are the two columns.
    Raises SolverError if an equation that a claim rests on does not check: a fault of ours.
    """
    return [_claim_row(claim) for claim in all_claims()]


def claims_text(claims: Sequence[Claim]) -> str:
    """The table on a terminal: one block a claim.

    Raises SolverError as `claims_rows` does.
    """
    blocks = [_block(claim) for claim in claims if _rests_on_checked(claim)]
    numbered = [r for r in (claim.reproduces for claim in claims) if r is not None]
    return "\n".join(blocks) + (
        f"\n{len(claims)} claims; {len(numbered)} give numbers, of which {sum(numbered)} come out "
        "within rounding from the lecture's own inputs."
    )


def _rests_on_checked(claim: Claim) -> bool:
    return all(_checked(by_name()[name], name) for name in claim.equations)


def _claim_row(claim: Claim) -> dict[str, object]:
    plain = ("id", "kind", "statement", "lecture_says", "ours", "reproduces", "verdict")
    return {
        **{name: getattr(claim, name) for name in plain},
        "equations": list(claim.equations),
        "checked": _rests_on_checked(claim),
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
            for each, value in zip(claim.worked, claim.values(), strict=True)
        ],
        "physical": [asdict(each) | {"text": each.text} for each in physical_numbers(claim.id)],
    }


def _block(claim: Claim) -> str:
    """A claim in four or five paragraphs, each behind its label."""
    sides = (
        ("the lecture", claim.lecture_says),
        ("ours", claim.ours),
        ("physical", "; ".join(each.text for each in physical_numbers(claim.id))),
        ("kind", "" if claim.kind == "derived" else KINDS[claim.kind]),
        ("verdict", claim.verdict),
        ("equations", ", ".join(claim.equations)),
    )
    head = _wrapped(f"{claim.id:<{INDENT - 1}} ", claim.statement)
    indent = " " * INDENT
    lines = [_wrapped(f"{indent}{label:<{LABEL}} ", text) for label, text in sides if text]
    return "\n".join([head, *lines, ""])


def _wrapped(first: str, text: str) -> str:
    rest = " " * len(first)
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
