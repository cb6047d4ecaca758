"""What `planner derive` prints: the list, or equations and derivations in a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.export import FORMATS, export
from formulas.nomenclature.symbols import SymbolError
from formulas.registry import by_name, find
from planner.report.formats import dumps, pdf
from planner.report.text.cases import ABOUT, cases
from planner.text.errors import InputError, SolverError, did_you_mean

__all__ = ["PRINTED", "answered", "derived", "format_of", "rows", "rows_text"]

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

    A format or a file without a name means all of them.

    Raises
    ------
    InputError
        If the arguments contradict each other, or as `rows` and `derived` do.
    """
    if names and every:
        raise InputError("name what to derive or say --all, not both")
    if json and form is not None:
        raise InputError("--json is a format of its own; leave out --format")
    if CLAIMS in names:
        if len(names) > 1 or form is not None:
            raise InputError("claims is a table of its own: planner derive claims [--json]")
        return claims(json)
    if json or not (names or every or form or out):
        listed = rows(names)
        return dumps(listed) if json else rows_text(listed)
    return derived(names, format_of(form, out))


def claims(json: bool) -> str:
    """The acceptance table of the lecture's claims."""
    from planner.report.text.claims import claims_rows, claims_text

    found = claims_rows()
    return dumps(found) if json else claims_text(found)


def rows(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Equations and derivations: name, claims, number of steps, exact or approximate, checked.

    Raises
    ------
    InputError
        If a name is unknown.
    SolverError
        If one does not check: a fault of ours.
    """
    python = {id(value): name for name, value in by_name().items()}
    chosen = _chosen(names) if names else tuple(by_name().values())
    return [
        {
            "name": python[id(each)],
            "title": each.name,
            "kind": "derivation" if isinstance(each, Derivation) else "equation",
            "claims": list(each.tags),
            "steps": len(each.steps) if isinstance(each, Derivation) else 1,
            "exact": each.exact if isinstance(each, Derivation) else True,
            "checked": _checked(each),
        }
        for each in chosen
    ]


def rows_text(listed: Sequence[Mapping[str, Any]]) -> str:
    """The list on a terminal: derivations with their steps, then equations."""
    lines: list[str] = []
    for kind in ("derivation", "equation"):
        some = [row for row in listed if row["kind"] == kind]
        if some:
            lines += ["", f"{len(some)} {kind}s"] if lines else [f"{len(some)} {kind}s"]
        for row in some:
            form = "exact" if row["exact"] else "approximate"
            steps = f"{row['steps']} step{'s' * (row['steps'] > 1)}, {form}, "
            claims = f" ({', '.join(row['claims'])})" if row["claims"] else ""
            lines.append(f"  {row['name']:<26} {steps * (kind == 'derivation')}checked")
            lines.append(f"  {'':<26} {row['title']}{claims}")
    return "\n".join(lines)


def format_of(form: str | None, out: Path | None) -> str:
    """The format asked for, else the one that the name of the output file says, else text.

    Raises
    ------
    InputError
        If the format is unknown, or the name of the file does not say which.
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

    Every step is checked as it is written.

    Raises
    ------
    InputError
        If a name is unknown, or a package that the format needs is missing.
    SolverError
        If a step does not check: a fault of ours.
    """
    chosen = _chosen(names) if names else tuple(by_name().values())
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
    """What is called so, each once."""
    try:
        return tuple({id(each): each for each in map(find, names)}.values())
    except SymbolError as error:
        raise InputError(str(error)) from error


def _checked(each: Equation | Derivation) -> bool:
    try:
        return each.check()
    except DerivationError as error:
        raise SolverError(str(error)) from error
