"""Layout: an expression as boxes side by side and above each other, before any markup.

MathML, Typst and LaTeX are written from one layout, so that a formula reads the same in each of
them. How a symbol looks is read from the little LaTeX that the nomenclature is written in.
"""

import re

import sympy as sp

from formulas.export.typesetting.boxes import (
    Accent,
    BoxRow,
    Cases,
    Fence,
    Fraction,
    Glyph,
    Layout,
    List,
    Root,
    Script,
)
from formulas.nomenclature.symbols import GREEK, latex_names

ATOMS = (Glyph, Script)
PLUS, MINUS, DOT = Glyph("+", "sign"), Glyph("−", "sign"), Glyph("⋅", "sign")

_RELATIONS = {sp.Eq: "=", sp.Ne: "≠", sp.Lt: "<", sp.Le: "≤", sp.Gt: ">", sp.Ge: "≥"}
_NAMES = {sp.Max: "max", sp.Min: "min", sp.log: "ln"}
_FENCES = {sp.ceiling: ("⌈", "⌉"), sp.floor: ("⌊", "⌋"), sp.Abs: ("|", "|")}


def layout(x: sp.Basic) -> Layout:
    """The layout of an expression or condition.

    Raises TypeError if it holds a kind of node without a rule.
    """
    if x.is_Symbol:
        return notation(latex_names().get(x, x.name))
    if isinstance(x, sp.Add):
        parts: list[Layout] = []
        # A sum reads better when it begins with a term that is added.
        for term in sorted(x.args, key=_negative):
            negative = _negative(term)
            if parts or negative:
                parts.append(MINUS if negative else PLUS)
            parts.append(_enclosed(-term if negative else term, sp.Add))
        return BoxRow(tuple(parts))
    if isinstance(x, sp.Rational | sp.Mul):
        return _product(x)
    if isinstance(x, sp.Pow | sp.exp):
        return _power(x)
    if isinstance(x, sp.Piecewise):
        return Cases(tuple((layout(value), layout(when)) for value, when in x.args))
    if type(x) in _RELATIONS:
        return relation(x.args[0], _RELATIONS[type(x)], x.args[1])
    if type(x) in _FENCES:
        left, right = _FENCES[type(x)]
        return Fence(left, layout(x.args[0]), right)
    if isinstance(x, sp.Max | sp.Min | sp.Function):
        name = _NAMES.get(type(x), type(x).__name__)
        return BoxRow((Glyph(name, "word"), Fence("(", List(tuple(map(layout, x.args))), ")")))
    return _constant(x)


def relation(left: sp.Basic, sign: str, right: sp.Basic) -> BoxRow:
    """Two sides with a sign between them."""
    return BoxRow((layout(left), Glyph(sign, "sign"), layout(right)))


def layout_number(value: float) -> Layout:
    """A number to four digits, a large or small one with its power of ten."""
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    if mantissa.lstrip("-") in ("inf", "nan"):
        return Glyph(mantissa.replace("inf", "∞"), "number")
    number = Glyph(mantissa.replace("-", "−"), "number")
    if not exponent:
        return number
    tens = Script(
        Glyph("10", "number"), above=Glyph(str(int(exponent)).replace("-", "−"), "number")
    )
    return tens if mantissa == "1" else BoxRow((number, DOT, tens))


def _negative(term: sp.Expr) -> bool:
    coefficient, _ = term.as_coeff_Mul()
    return bool(coefficient.is_number and coefficient.is_negative)


def _product(x: sp.Expr) -> Layout:
    if _negative(x):
        return BoxRow((MINUS, _enclosed(-x, sp.Add)))
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
        return Glyph("1", "number")
    if len(factors) == 1:
        return _factor(factors[0])
    parts: list[Layout] = []
    for number, factor in enumerate(factors):
        if number and factor.as_base_exp()[0].is_Rational:  # it begins with a digit
            parts.append(DOT)
        parts.append(_enclosed(factor, sp.Add, sp.Piecewise))
    return BoxRow(tuple(parts), spaced=True)


def _factor(factor: sp.Expr) -> Layout:
    if factor.is_Integer:
        return Glyph(str(factor), "number")
    return layout(factor)


def _power(x: sp.Expr) -> Layout:
    if isinstance(x, sp.exp):
        return Script(Glyph("e", "word"), above=layout(x.args[0]))
    base, exponent = x.args
    if _negative(exponent):
        return Fraction(Glyph("1", "number"), layout(sp.Pow(base, -exponent)))
    if exponent.is_Rational and exponent.p == 1 and exponent.q > 1:
        index = None if exponent.q == 2 else Glyph(str(exponent.q), "number")
        return Root(layout(base), index)
    inner, above = _enclosed(base, sp.Add, sp.Mul, sp.Pow, sp.Piecewise, sp.exp), layout(exponent)
    if base.is_Rational and not base.is_Integer:
        inner = Fence("(", inner, ")")
    if isinstance(above, Fraction) and isinstance(above.over, ATOMS):
        # A fraction would be too small to read up there.
        under = above.under
        under = under if isinstance(under, ATOMS) else Fence("(", under, ")")
        above = BoxRow((above.over, Glyph("/", "word"), under))
    if isinstance(inner, Script) and inner.above is None:
        return Script(inner.base, inner.below, above)
    return Script(inner, above=above)


def _enclosed(x: sp.Expr, *kinds: type) -> Layout:
    inner = _factor(x)
    return Fence("(", inner, ")") if isinstance(x, kinds) else inner


def _constant(x: sp.Basic) -> Layout:
    words = {sp.oo: "∞", sp.true: "otherwise", sp.pi: "π", sp.E: "e"}
    if x in words:
        return Glyph(words[x], "word")
    if isinstance(x, sp.And | sp.Or):
        word = " and " if isinstance(x, sp.And) else " or "
        parts: list[Layout] = [layout(x.args[0])]
        for argument in x.args[1:]:
            parts += [Glyph(word, "word"), layout(argument)]
        return BoxRow(tuple(parts))
    raise TypeError(f"no rule for setting {type(x).__name__}: {x}")


# Other commands that a symbol may be written with.
SPECIAL = {"infty": "∞", "ast": "*", "star": "⋆", "prime": "′", "circ": "∘", "dagger": "†"}
ACCENTS = ("hat", "bar", "tilde", "dot")

_TOKEN = re.compile(r"\\[A-Za-z]+|[_^{}]|\d+|[^\\{}_^\s]")


def notation(latex: str) -> Layout:
    """The boxes of a symbol.

    Raises TypeError if it uses a command without a rule.
    """
    return _atoms(_TOKEN.findall(latex)[::-1])


def _atoms(tokens: list[str]) -> Layout:
    """Atoms up to the end of the group, each with its scripts; tokens are taken from the back."""
    layouts: list[Layout] = []
    while tokens and tokens[-1] != "}":
        if tokens[-1] in "_^" and layouts:
            below = tokens.pop() == "_"
            layouts[-1] = _scripted(layouts[-1], _atom(tokens), below)
        else:
            layouts.append(_atom(tokens))
    return layouts[0] if len(layouts) == 1 else BoxRow(tuple(layouts))


def _scripted(base: Layout, script: Layout, below: bool) -> Script:
    if isinstance(base, Script):
        both = (script, base.above) if below else (base.below, script)
        return Script(base.base, *both)
    return Script(base, script) if below else Script(base, above=script)


def _atom(tokens: list[str]) -> Layout:
    token = tokens.pop() if tokens else ""
    command = token.removeprefix("\\")
    if token == "{":
        inner = _atoms(tokens)
        tokens.pop()
        return inner
    if command in ("mathrm", "text", "operatorname"):
        return Glyph(_letters(tokens), "word")
    if command == "mathcal":
        return Glyph(_letters(tokens), "script")
    if command in ACCENTS:
        return Accent(_atom(tokens), command)
    if command != token and command not in GREEK | SPECIAL:
        raise TypeError(f"no rule for the LaTeX command {token} of a symbol")
    if command != token:
        return Glyph((GREEK | SPECIAL)[command], "letter" if command in GREEK else "word")
    kind = "number" if token.isdigit() else "letter" if token.isalpha() else "word"
    return Glyph(token, kind)


def _letters(tokens: list[str]) -> str:
    end = len(tokens) - tokens[::-1].index("}") - 1
    inner = tokens[end + 1 : -1][::-1]
    del tokens[end:]
    return "".join(inner)


def alternating(words: str) -> dict[str, str]:
    """{character: command} from words that take turns."""
    listed = words.split()
    return dict(zip(listed[::2], listed[1::2], strict=True))
