"""Equations and derivations written out: text, Markdown, LaTeX, HTML, a notebook, Typst."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export.blocks import BlockDocument
from formulas.export.formula_blocks import formula_blocks
from formulas.export.formula_document import AcceptanceTable, document

__all__ = ["FORMATS", "export", "writer"]

FORMATS = ("text", "markdown", "latex", "html", "notebook", "typst")

# Formats that share a module.
_WRITERS = dict.fromkeys(("text", "markdown", "notebook"), "plain_text")


def export(
    objects: Equation | Derivation | Iterable[Equation | Derivation],
    format: str,
    cases: Mapping[str, Mapping[str, float]] | None = None,
    *,
    title: str | None = None,
    about: Sequence[str] = (),
    acceptance: AcceptanceTable | None = None,
) -> str:
    """Write equations and derivations out, every step checked on the way, behind a cover.

    Raises ValueError if the format is not one of `FORMATS`, or there is nothing to write;
    DerivationError if a derivation does not check; SymbolError if a case gives a symbol a value it
    cannot take.

    Parameters
    ----------
    objects : What to write; those of one subject stand together where they come together.
    format : One of `FORMATS`.
    cases : Sets of assumptions by name, such as `{"lecture": {"B": 64}, "physical": {"B": 128}}`:
        values of symbols in their own units. Values and sizes of neglected terms are computed for
        each, and the cover shows where they differ.
    title : Of the document; by default the name of a single object.
    about : Paragraphs for the cover, such as what the cases are.
    acceptance : Claims with their verdicts; each entry names those that rest on it, and the table
        itself stands before the entries where it is to be shown whole.
    """
    if format not in FORMATS:
        raise ValueError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    single = isinstance(objects, Equation | Derivation)
    listed: tuple[Equation | Derivation, ...] = (objects,) if single else tuple(objects)  # type: ignore[assignment, arg-type]
    if not listed:
        raise ValueError("there is nothing to write")
    whole = document(listed, cases or {}, title, tuple(about), acceptance)
    return writer(format)(formula_blocks(whole))


def writer(format: str) -> Callable[[BlockDocument], str]:
    """Return the function that writes blocks in one of `FORMATS`."""
    written: Callable[[BlockDocument], str] = getattr(
        import_module(f"formulas.export.{_WRITERS.get(format, format)}"), format
    )
    return written
