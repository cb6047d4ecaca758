"""Formulas in boxes: read back, they have the value of the expression they were made of."""

import math
import random
from xml.etree import ElementTree

import pytest
import sympy as sp
from sympy.core.function import AppliedUndef

from formulas.algebra.derivation import Derivation
from formulas.export.typesetting.boxes import (
    Accent,
    Align,
    BoxRow,
    Cases,
    Fence,
    Fraction,
    Glyph,
    List,
    Root,
    Script,
    text_width,
    wrap,
)
from formulas.export.typesetting.layout import layout, layout_number
from formulas.export.typesetting.markup import latex_math, mathml, typst_math
from formulas.nomenclature.lecture import B, F, L_ctx, N_active, W
from formulas.nomenclature.symbols import SYMBOLS
from formulas.numerics.evaluate import scalar
from formulas.registry import by_name
from tests.loops import for_all

KINDS = {"=": math.isclose, "<": float.__lt__, ">": float.__gt__, "≤": float.__le__,
         "≥": float.__ge__, "≠": float.__ne__}  # fmt: skip
FUNCTIONS = {"max": max, "min": min, "ln": math.log}
ANY = {"f": lambda x: 3 * x + 1, "g": lambda x: 2 * x * x + 5}  # a meaning for arbitrary functions
SIDES = [
    pytest.param(side, id=f"{name}-{number}")
    for name, value in by_name().items()
    for number, side in enumerate(
        [x for s in value.steps for x in (s.lhs, s.rhs)]
        if isinstance(value, Derivation)
        else [value.rhs]
    )
    if not side.is_Symbol
]


@pytest.mark.parametrize("width", [math.inf, 36.0, 21.0, 8.0])
def test_every_formula_reads_back_to_its_value(width):
    """At a random point, whole and broken into lines: what is shown is what is meant."""
    draw = random.Random(7)
    for case in SIDES:
        (expression,) = case.values
        shown, meant = at_a_point(expression, wrap(layout(expression), width), draw)
        assert math.isclose(shown, meant, rel_tol=1e-9) or shown == meant, case.id


def test_symbols_of_one_formula_look_different():
    """No equation shows two of its symbols alike."""
    for case in SIDES:
        symbols = case.values[0].free_symbols
        assert len({layout(x) for x in symbols}) == len(symbols), case.id


def test_every_symbol_can_be_set():
    """In every notation."""
    for x in SYMBOLS.values():
        ElementTree.fromstring(mathml(layout(x)))
        assert typst_math(layout(x)).count("$") == 2
        assert latex_math(layout(x))


def test_mathml_of_every_formula_is_well_formed():
    """And holds only elements of MathML Core."""
    core = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub",
            "msup", "msubsup", "munderover", "mover", "mtable", "mtr", "mtd"}  # fmt: skip
    for case in SIDES:
        tree = ElementTree.fromstring(mathml(wrap(layout(case.values[0]), 21.0), display=True))
        assert {element.tag for element in tree.iter()} <= core, case.id


def test_breaking_brings_every_formula_near_a_phone():
    """Nothing is much wider than asked for; what fits is left alone."""
    for case in SIDES:
        whole = layout(case.values[0])
        assert text_width(wrap(whole, 21.0)) <= 23.0, case.id
        assert wrap(whole, text_width(whole)) is whole


def test_a_sum_is_broken_before_its_signs():
    """Each line but the first begins with the sign."""
    lines = wrap(layout(B + F + W + L_ctx + N_active), 5.0)
    assert isinstance(lines, Align)
    assert all(row.parts[0] == Glyph("+", "sign") for row in lines.rows[1:])


def test_a_sum_begins_with_what_is_added():
    """`1 - x`, never `-x + 1`."""
    assert layout(1 - B / F).parts[0] == Glyph("1", "number")


@for_all(
    ("expression", "latex"),
    [
        (sp.Rational(1, 2) * B, r"\frac{{B}}{2}"),
        (sp.sqrt(B), r"\sqrt{B}"),
        (B ** sp.Rational(2, 3), r"{B}^{2 / 3}"),
        (2 * 3**B, r"2 \, \cdot \, {3}^{B}"),
        (-B / F, r"- \frac{B}{F}"),
        ((B / F) ** W, r"{\left( \frac{B}{F} \right)}^{W}"),
        (sp.exp(-B), r"{\mathrm{e}}^{- B}"),
        (sp.Max(B, F, evaluate=False), r"\mathrm{max} \left( B,\; F \right)"),
        (sp.ceiling(B / F), r"\left\lceil \frac{B}{F} \right\rceil"),
    ],
)
def test_forms(expression, latex):
    """As a textbook writes them."""
    assert latex_math(layout(expression)).replace("{{B}}", "{B}") == latex.replace("{{B}}", "{B}")


@pytest.mark.parametrize(
    ("value", "latex"),
    [(2400.0, "2400"), (6.71e11, r"6.71 \cdot {10}^{11}"), (1e12, "{10}^{12}"), (0.25, "0.25"),
     (1.5e-7, r"1.5 \cdot {10}^{-7}"), (math.inf, r"\infty")],
)  # fmt: skip
def test_figures(value, latex):
    """Four digits; a power of ten where that is shorter."""
    assert latex_math(layout_number(value)) == latex


def test_a_node_without_a_rule_is_refused():
    """Nothing is printed that might be wrong."""
    with pytest.raises(TypeError, match="no rule for setting Integral"):
        layout(sp.Integral(B, B))


def at_a_point(expression, box, draw):
    """The values of a box and of its expression, at a point where both are real numbers."""
    for _ in range(100):
        symbols = sorted(expression.free_symbols, key=str)  # a set has another order every time
        values = {x: draw.uniform(0.3, 9.0) for x in symbols}
        named = {x.name: value for x, value in values.items()}
        try:
            plain = expression.replace(
                lambda part: isinstance(part, AppliedUndef),
                lambda part: ANY[part.func.__name__](part.args[0]),
            )
            meant = scalar((), {"value": plain}, named)["value"]
            shown = value_of(box, {layout(x): value for x, value in values.items()})
        except (ValueError, ArithmeticError, TypeError):
            continue  # a root of something negative, a division by nothing, a power beyond floats
        if not isinstance(shown, complex):
            return shown, meant
    raise AssertionError(f"{expression} has no value anywhere")


def value_of(box, known):
    """The value of a box, by its looks alone."""
    if box in known:
        return known[box]
    match box:
        case Glyph("∞", _):
            return math.inf
        case Glyph(text, "number"):
            return float(text)
        case Glyph("e", "word"):
            return math.e
        case Glyph("π", "word"):
            return math.pi
        case Script(base, below, above):
            inner = base if below is None else Script(base, below)
            return value_of(inner, known) ** value_of(above, known)
        case Fraction(over, under):
            return value_of(over, known) / value_of(under, known)
        case Root(inside, index):
            return value_of(inside, known) ** (1 / (2 if index is None else value_of(index, known)))
        case Fence(left, inside, _):
            inner = value_of(inside, known)
            return {"⌈": math.ceil, "⌊": math.floor, "|": abs}.get(left, lambda x: x)(inner)
        case Cases(pairs):
            return next(value_of(v, known) for v, when in conditions(pairs) if holds(when, known))
        case BoxRow() | Align():
            return total(flat(box, known), known)
    raise AssertionError(f"{box} has no value")


def total(parts, known):
    """Terms added, factors multiplied, functions called, `a/b` divided."""
    sums, sign, product, divide, call = 0.0, 1.0, None, False, None
    for part in parts:
        if isinstance(part, Glyph) and part.text in "+−":
            sums += sign * (product or 0.0) if product is not None else 0.0
            sign, product = (1.0 if part.text == "+" else -1.0), None
        elif part == Glyph("⋅", "sign"):
            continue
        elif part == Glyph("/", "word"):
            divide = True
        elif isinstance(part, Glyph) and part.kind == "word" and part.text in FUNCTIONS | ANY:
            call = (FUNCTIONS | ANY)[part.text]
        else:
            value = call(*arguments(part.inside, known)) if call else value_of(part, known)
            call = None
            product = value if product is None else product / value if divide else product * value
            divide = False
    return sums + sign * product


def arguments(inside, known):
    """What stands between commas."""
    if isinstance(inside, List):
        return [value_of(part, known) for part in inside.parts]
    if isinstance(inside, Align) and Glyph(",", "word") in flat(inside):
        rows = [r.parts[0] if isinstance(r, BoxRow) and Glyph(",", "word") in r.parts else r
                for r in inside.rows]  # fmt: skip
        return [value_of(row, known) for row in rows]
    return [value_of(inside, known)]


def flat(box, known=()):
    """Rows and lines as one sequence, save those that are a symbol."""
    if box in known or not isinstance(box, BoxRow | Align):
        return [box]
    parts = box.rows if isinstance(box, Align) else box.parts
    return [x for part in parts for x in flat(part, known)]


def conditions(pairs):
    """(value, condition), wherever the condition stands."""
    for value, when in pairs:
        if when == BoxRow(()):
            shown, below = value.rows
            written = isinstance(below, BoxRow) and below.parts[0] == Glyph("if ", "word")
            yield shown, below.parts[1] if written else below
        else:
            yield value, when


def holds(when, known):
    """Whether a relation is true."""
    if when == Glyph("otherwise", "word"):
        return True
    if isinstance(when, Align):
        when = BoxRow((when.rows[0], *when.rows[1].parts))
    left, sign, right = when.parts
    return KINDS[sign.text](float(value_of(left, known)), float(value_of(right, known)))


def test_accents_are_set():
    """As commands over their letter."""
    hat = Accent(Glyph("N", "letter"), "hat")
    assert latex_math(hat) == r"\hat{N}"
