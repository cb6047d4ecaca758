"""Layout: an expression as boxes side by side and above each other, before any markup.

MathML, Typst and LaTeX are written from one layout, so that a formula reads the same in each of
them. `formulas.export.breaking` makes a layout fit a width.
"""

from __future__ import annotations

import re

import sympy as sp

from formulas.export.boxes import (
    Accent,
    Big,
    Cases,
    Fence,
    Fraction,
    Layout,
    List,
    Mark,
    Root,
    Row,
    Script,
)
from formulas.symbols import latex_names

__all__ = ["GREEK", "figure", "layout", "relation"]

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε",
    "zeta": "ζ", "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ",
    "phi": "ϕ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ",
    "Omega": "Ω", "ell": "ℓ",
}  # fmt: skip

# Other commands that a symbol may be written with.
SPECIAL = {"infty": "∞", "ast": "*", "star": "⋆", "prime": "′", "circ": "∘", "dagger": "†"}

PLUS, MINUS, DOT = Mark("+", "sign"), Mark("−", "sign"), Mark("⋅", "sign")

_RELATIONS = {
    sp.Eq: "=", sp.Ne: "≠", sp.Lt: "<", sp.Le: "≤", sp.Gt: ">", sp.Ge: "≥",
}  # fmt: skip
_NAMES = {sp.Max: "max", sp.Min: "min", sp.log: "ln"}
_FENCES = {sp.ceiling: ("⌈", "⌉"), sp.floor: ("⌊", "⌋"), sp.Abs: ("|", "|")}
_ACCENT = re.compile(r"\\(hat|bar|tilde|dot)\{((?:[^{}]|\{[^{}]*\})*)\}(.*)")
_PIECES = re.compile(
    r"\\(?:mathrm|text|operatorname)\{([^{}]*)\}|\\mathcal\{(.)\}|\\([A-Za-z]+)|(\d+)|([^\\{}\s])"
)


def layout(x: sp.Basic) -> Layout:
    """The layout of an expression or condition.

    Raises
    ------
    TypeError
        If it holds a kind of node without a rule.
    """
    if x.is_Symbol:
        return _symbol(x)
    if isinstance(x, sp.Add):
        return _sum(x)
    if isinstance(x, sp.Rational | sp.Mul):
        return _product(x)
    if isinstance(x, sp.Pow | sp.exp):
        return _power(x)
    if isinstance(x, sp.Piecewise):
        return Cases(tuple((layout(value), layout(when)) for value, when in x.args))
    if type(x) in _RELATIONS:
        return relation(layout(x.args[0]), _RELATIONS[type(x)], layout(x.args[1]))
    if type(x) in _FENCES:
        left, right = _FENCES[type(x)]
        return Fence(left, layout(x.args[0]), right)
    if isinstance(x, sp.Max | sp.Min | sp.Function):
        name = _NAMES.get(type(x), type(x).__name__)
        return Row((Mark(name, "word"), Fence("(", List(tuple(map(layout, x.args))), ")")))
    if isinstance(x, sp.Sum | sp.Product):
        return _big(x)
    return _constant(x)


def relation(left: Layout, sign: str, right: Layout) -> Row:
    """Two sides with a sign between them."""
    return Row((left, Mark(sign, "sign"), right))


def figure(value: float) -> Layout:
    """A number to four digits, a large or small one with its power of ten."""
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    if mantissa.lstrip("-") in ("inf", "nan"):
        return Mark(mantissa.replace("inf", "∞"), "number")
    number = Mark(mantissa.replace("-", "−"), "number")
    if not exponent:
        return number
    tens = Script(Mark("10", "number"), above=Mark(str(int(exponent)).replace("-", "−"), "number"))
    return tens if mantissa == "1" else Row((number, DOT, tens))


def _symbol(x: sp.Symbol) -> Layout:
    latex = latex_names().get(x, x.name)
    accent = _ACCENT.match(latex)
    if accent:
        latex = accent[2] + accent[3]
    head, _, tail = latex.partition("_")
    base, _, prime = head.partition("^")
    below = _letters(tail.strip("{}") if "\\" not in tail else tail[1:-1]) if tail else None
    above = _letters(prime.strip("{}")) if prime else None
    inner = _letters(base)
    inner = Accent(inner, accent[1]) if accent else inner
    return Script(inner, below, above) if below or above else inner


def _letters(latex: str) -> Layout:
    """The few commands that symbols use: upright words, Greek letters, single letters."""
    found: list[Layout] = []
    for word, script, command, digits, letter in _PIECES.findall(latex.replace(r"\_", "_")):
        if command and command not in GREEK | SPECIAL:
            raise TypeError(f"no rule for the LaTeX command \\{command} of a symbol")
        if word:
            found.append(Mark(word, "word"))
        elif script:
            found.append(Mark(script, "script"))
        elif command:
            special = command in SPECIAL
            found.append(Mark((GREEK | SPECIAL)[command], "word" if special else "letter"))
        elif digits:
            found.append(Mark(digits, "number"))
        else:
            found.append(Mark(letter, "letter" if letter.isalpha() else "word"))
    return found[0] if len(found) == 1 else Row(tuple(found))


def _sum(x: sp.Add) -> Layout:
    parts: list[Layout] = []
    # A sum reads better when it begins with a term that is added.
    for term in sorted(x.args, key=_negative):
        negative = _negative(term)
        if parts or negative:
            parts.append(MINUS if negative else PLUS)
        parts.append(_enclosed(-term if negative else term, sp.Add))
    return Row(tuple(parts))


def _negative(term: sp.Expr) -> bool:
    coefficient, _ = term.as_coeff_Mul()
    return bool(coefficient.is_number and coefficient.is_negative)


def _product(x: sp.Expr) -> Layout:
    if _negative(x):
        return Row((MINUS, _enclosed(-x, sp.Add)))
    over, under = [], []
    for factor in sp.Mul.make_args(x):
        base, exponent = factor.as_base_exp()
        if factor.is_Rational:
            over += [sp.Integer(factor.p)] if factor.p != 1 else []
            under += [sp.Integer(factor.q)] if factor.q != 1 else []
        elif _negative(exponent) and not isinstance(factor, sp.exp):
            under.append(sp.Pow(base, -exponent, evaluate=False) if exponent != -1 else base)
        else:
            over.append(factor)
    if not under:
        return _factors(over)
    return Fraction(_factors(over), _factors(under))


def _factors(factors: list[sp.Expr]) -> Layout:
    if not factors:
        return Mark("1", "number")
    if len(factors) == 1:
        return _one(factors[0])
    parts: list[Layout] = []
    for number, factor in enumerate(factors):
        if number and _begins_with_digit(factor):
            parts.append(DOT)
        parts.append(_enclosed(factor, sp.Add, sp.Piecewise))
    return Row(tuple(parts), spaced=True)


def _one(factor: sp.Expr) -> Layout:
    """A factor that stands alone; a number or power must not come back to `_product`."""
    if factor.is_Integer:
        return Mark(str(factor), "number")
    return layout(factor)


def _begins_with_digit(factor: sp.Expr) -> bool:
    return bool(factor.as_base_exp()[0].is_Rational)


def _power(x: sp.Expr) -> Layout:
    if isinstance(x, sp.exp):
        return Script(Mark("e", "word"), above=layout(x.args[0]))
    base, exponent = x.args
    if _negative(exponent):
        return Fraction(Mark("1", "number"), layout(sp.Pow(base, -exponent)))
    if exponent.is_Rational and exponent.p == 1 and exponent.q > 1:
        index = None if exponent.q == 2 else Mark(str(exponent.q), "number")
        return Root(layout(base), index)
    inner, above = _enclosed(base, sp.Add, sp.Mul, sp.Pow, sp.Piecewise, sp.exp), layout(exponent)
    if base.is_Rational and not base.is_Integer:
        inner = Fence("(", inner, ")")
    if isinstance(exponent, sp.Rational) and not exponent.is_Integer:
        above = Row((_one(sp.Integer(exponent.p)), Mark("/", "word"), _one(sp.Integer(exponent.q))))
    if isinstance(inner, Script) and inner.above is None:
        return Script(inner.base, inner.below, above)
    return Script(inner, above=above)


def _enclosed(x: sp.Expr, *kinds: type) -> Layout:
    inner = _one(x)
    return Fence("(", inner, ")") if isinstance(x, kinds) else inner


def _big(x: sp.Expr) -> Layout:
    index, first, last = x.limits[0]
    below = relation(layout(index), "=", layout(first))
    sign = "∑" if isinstance(x, sp.Sum) else "∏"
    return Big(sign, below, layout(last), _enclosed(x.function, sp.Add))


def _constant(x: sp.Basic) -> Layout:
    words = {sp.oo: "∞", sp.true: "otherwise", sp.pi: "π", sp.E: "e"}
    if x in words:
        return Mark(words[x], "word")
    if isinstance(x, sp.And | sp.Or):
        word = " and " if isinstance(x, sp.And) else " or "
        parts: list[Layout] = [layout(x.args[0])]
        for each in x.args[1:]:
            parts += [Mark(word, "word"), layout(each)]
        return Row(tuple(parts))
    raise TypeError(f"no rule for setting {type(x).__name__}: {x}")
