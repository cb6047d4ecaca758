"""Equations and derivations written out: text, Markdown, LaTeX, HTML, a notebook, Typst, code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation, slug
from formulas.export.blocks import BlockDocument
from formulas.export.formula_blocks import formula_blocks
from formulas.export.formula_document import AcceptanceTable, document
from formulas.nomenclature.symbols import describe
from formulas.numerics.evaluate import LANGUAGES, source_code
from formulas.registry import by_name

__all__ = ["FORMATS", "LANGUAGES", "code", "export", "writer"]

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

    Args:
        objects: What to write; those of one subject stand together where they come together.
        format: One of `FORMATS`.
        cases: Sets of assumptions by name, such as `{"lecture": {"B": 64}, "physical": {"B":
            128}}`: values of symbols in their own units. Values and sizes of neglected terms are
            computed for each, and the cover shows where they differ.
        title: Of the document; by default the name of a single object.
        about: Paragraphs for the cover, such as what the cases are.
        acceptance: Claims with their verdicts; each entry names those that rest on it, and the
            table itself stands before the entries where it is to be shown whole.
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


def code(objects: Iterable[Equation | Derivation], language: str) -> str:
    """A file of a language of `LANGUAGES`: one function for each object, in base units.

    Raises ValueError if an object gives no symbol: a bound of one, or numbers put in.
    """
    names, parts = {id(value): name for name, value in by_name().items()}, []
    for item in objects:
        name = names.get(id(item), slug(item.name).replace("-", "_"))
        if not item.lhs.is_Symbol or (isinstance(item, Derivation) and item.numeric):
            raise ValueError(f"{item.name} does not end in one symbol, so it is no function")
        exact = "" if isinstance(item, Equation) or item.exact else ", approximately"
        notes = [item.name, describe(item.lhs.name) + exact, f"source: {item.source}"]
        notes += [f"assumes: {each}" for each in item.assumes]
        parts.append(source_code(name, item.where, item.rhs, language, notes))
    return "\n\n".join(filter(None, [LANGUAGES[language]["head"].strip(), *parts])) + "\n"
