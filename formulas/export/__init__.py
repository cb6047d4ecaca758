"""Equations and derivations as text, Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from formulas.derivation import Derivation
from formulas.equation import Equation
from formulas.export.latex import latex
from formulas.export.markdown import markdown
from formulas.export.text import text

__all__ = ["FORMATS", "export"]

FORMATS: dict[str, Callable[[tuple[Equation | Derivation, ...]], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
}


def export(objects: Equation | Derivation | Iterable[Equation | Derivation], format: str) -> str:
    """Write equations and derivations out, every step checked on the way, with their symbols.

    Raises
    ------
    ValueError
        If the format is not one of `FORMATS`.
    DerivationError
        If a derivation does not check.
    """
    writer = FORMATS.get(format)
    if writer is None:
        raise ValueError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    single = isinstance(objects, Equation | Derivation)
    return writer((objects,) if single else tuple(objects))  # type: ignore[arg-type]
