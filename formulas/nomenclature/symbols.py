"""The nomenclature: every symbol once, with its unit and its meaning.

All symbols are positive: it is what makes roots, logarithms and Max safe. This is the only module
that makes SymPy symbols: `symbol` registers a quantity, a second registration of a name is refused;
`auxiliary` makes a variable of an optimisation problem, which no equation holds. The tables beside
this module hold nothing but symbols, so that a file of equations takes those of its subject by
`from formulas.nomenclature.SUBJECT import *` and writes them as a blackboard does.
"""

import difflib
from collections.abc import Iterable

import sympy as sp

from formulas.nomenclature.dimensions import UnitProduct, unit
from formulas.nomenclature.symbol_error import SymbolError

SYMBOLS: dict[str, sp.Symbol] = {}

_UNITS: dict[sp.Symbol, UnitProduct] = {}
_MEANINGS: dict[sp.Symbol, str] = {}
_LATEX: dict[sp.Symbol, str] = {}
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi "
    "rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi "
    "Psi Omega ell"
)
GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδϵεζηθικλμνξπρστυϕφχψωΓΔΘΛΞΠΣΦΨΩℓ", strict=True))
_OWNED_BY_SYMPY = frozenset("EINOQS") | {"C"}


def symbol(name: str, unit_text: str, meaning: str, latex: str | None = None) -> sp.Symbol:
    """A positive symbol, registered once.

    Raises SymbolError if the name is taken, or is one that SymPy gives a meaning of its own (E I N
    O Q S C); UnitError if the unit cannot be read.
    """
    if name in SYMBOLS:
        raise SymbolError(f"the symbol {describe(name)} is registered already")
    if name in _OWNED_BY_SYMPY:
        raise SymbolError(f"{name!r} alone means something else to SymPy; choose another name")
    x = sp.Symbol(name, positive=True)
    _UNITS[x] = unit(unit_text)
    _MEANINGS[x] = meaning
    _LATEX[x] = latex or _subscripted(name)
    SYMBOLS[name] = x
    return x


def auxiliary(name: str, **assumptions: bool) -> sp.Symbol:
    """A variable of an optimisation problem or a substitution: no unit, no meaning, unregistered.

    Args:
        name: How it prints; it should not be that of a registered symbol.
        assumptions: What SymPy may assume of it, such as `nonnegative=True`.
    """
    return sp.Symbol(name, **assumptions)


def symbol_unit(x: sp.Symbol | str) -> UnitProduct:
    """The unit of a registered symbol."""
    return _UNITS[_registered(x)]


def meaning(x: sp.Symbol | str) -> str:
    """The meaning of a registered symbol, in words."""
    return _MEANINGS[_registered(x)]


def latex_names() -> dict[sp.Symbol, str]:
    """LaTeX of every symbol, as `sympy.latex(symbol_names=...)` takes it."""
    return dict(_LATEX)


def describe(name: str) -> str:
    """`'L_ctx' (tokens of context held per sequence) [token/seq]`, for messages."""
    if name not in SYMBOLS:
        return repr(name)
    x = SYMBOLS[name]
    return f"{name!r} ({_MEANINGS[x]}) [{_UNITS[x]}]"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean 'L_ctx' (...) [token/seq]?`, or nothing when no candidate is near."""
    candidates = list(candidates)
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    near = near or [c for c in candidates if c.lower() == name.lower()][:1]
    return f"; did you mean {describe(near[0])}?" if near else ""


def _registered(x: sp.Symbol | str) -> sp.Symbol:
    name = x if isinstance(x, str) else x.name
    registered = SYMBOLS.get(name)
    if registered is None or (not isinstance(x, str) and registered != x):
        raise SymbolError(f"no symbol {name!r} is registered{did_you_mean(name, SYMBOLS)}")
    return registered


def _subscripted(name: str) -> str:
    """`L_ctx` with an upright subscript, `gamma_c` with a Greek letter, `one_chip` with a 1."""
    head, _, tail = name.partition("_")
    if head in GREEK:
        head = rf"\{head}"
    elif len(head) > 1:
        head = "1" if head == "one" else rf"\mathrm{{{head}}}"
    if not tail:
        return head
    below = rf"\{tail}" if tail in GREEK else rf"\mathrm{{{tail.replace('_', ',')}}}"
    return rf"{head}_{{{below}}}"
