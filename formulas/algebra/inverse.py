"""Turning an equation round: the closed form of one symbol, put back before it is believed."""

from collections.abc import Mapping

import sympy as sp

from formulas.algebra.identity import Identity, NoPointError
from formulas.nomenclature.symbols import describe
from formulas.numerics.expressions import put, text

BRANCHING = (sp.Max, sp.Min, sp.Piecewise, sp.ceiling, sp.floor)


def inverse(
    name: str, lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol, branches: Mapping[str, sp.Expr] | None
) -> sp.Expr:
    """The one expression for `x` that makes `lhs = rhs` true.

    Raises
    ------
    ValueError
        If there is none in closed form, or several; with the solutions, or those of each branch.
    """
    if rhs.has(*BRANCHING):
        raise ValueError(_by_branch(name, lhs, x, branches))
    solutions = _solutions(lhs, rhs, x)
    if len(solutions) > 1:
        several = ", ".join(map(text, solutions))
        raise ValueError(f"{name}: {len(solutions)} solutions for {describe(x.name)}: {several}")
    if not solutions:
        raise ValueError(f"{name}: no solution in closed form for {describe(x.name)}")
    return solutions[0]


def _solutions(lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol) -> list[sp.Expr]:
    """By peeling if that can be done, else what SymPy finds; only what satisfies the equation."""
    others = {lhs, *rhs.free_symbols} - {x}
    peeled = _peeled(lhs, rhs, x)
    if peeled is not None and _plain(peeled, others) and _satisfies(lhs, rhs, x, peeled):
        return [peeled]
    unknown, in_unknown, ratios = _ratios(rhs, x)
    back = {short: ratio for ratio, short in ratios.items()}
    try:
        candidates = sp.solve(sp.Eq(lhs, put(put(rhs, {x: in_unknown}), ratios)), unknown)
    except NotImplementedError:  # SymPy's way of saying that it knows no closed form
        return []
    plain = [each for each in candidates if isinstance(each, sp.Expr)]
    whole = [put(put(in_unknown, {unknown: each}), back) for each in plain]
    return [each for each in whole if _plain(each, others) and _satisfies(lhs, rhs, x, each)]


def _peeled(left: sp.Expr, right: sp.Expr, x: sp.Symbol) -> sp.Expr | None:
    """`x` where it occurs once: what stands around it is undone from the outside in.

    None where it occurs more often, or where an even power could have two roots.
    """
    while right != x:
        inside = [part for part in right.args if part.has(x)]
        if len(inside) != 1:
            return None
        outside = [part for part in right.args if not part.has(x)]
        if isinstance(right, sp.Add):
            left = left - sp.Add(*outside)
        elif isinstance(right, sp.Mul):
            left = left / sp.Mul(*outside)
        elif isinstance(right, sp.exp):
            left = sp.log(left)
        elif isinstance(right, sp.log):
            left = sp.exp(left)
        elif isinstance(right, sp.Pow) and right.base.has(x):
            if right.exp.is_even and not right.base.is_positive:
                return None
            left = left ** (1 / right.exp)
        elif isinstance(right, sp.Pow):
            left = sp.log(left) / sp.log(right.base)
        else:
            return None
        right = inside[0]
    return left


def _ratios(rhs: sp.Expr, x: sp.Symbol) -> tuple[sp.Symbol, sp.Expr, dict[sp.Expr, sp.Symbol]]:
    """Ratios raised to symbols, under short names, so that SymPy does not take them apart.

    Where `x` over a scale is such a ratio, that ratio is the unknown to solve for: it comes first,
    then `x` in terms of it. A part of a ratio, raised alone, would have no unit.
    """
    powers = [each for each in rhs.atoms(sp.Pow) if each.exp.free_symbols and each.base.is_Mul]
    bases = sorted({each.base for each in powers}, key=text)
    named = {base: sp.Dummy("ratio", positive=True) for base in bases if not base.has(x)}
    ratio = sp.Dummy("ratio", positive=True)
    for base in (base for base in bases if base.has(x)):
        for scale, in_ratio in ((x / base, ratio), (x * base, 1 / ratio)):
            if not scale.has(x):
                return ratio, scale * in_ratio, named
    return x, x, named


def _plain(solution: sp.Expr, symbols: set[sp.Symbol]) -> bool:
    """True if only the equation's own symbols and the functions of this package occur."""
    if solution.has(sp.I) or solution.free_symbols - symbols:
        return False
    return all(isinstance(each, sp.exp | sp.log) for each in solution.atoms(sp.Function))


def _satisfies(lhs: sp.Symbol, rhs: sp.Expr, x: sp.Symbol, solution: sp.Expr) -> bool:
    try:
        return Identity(lhs, put(rhs, {x: solution})).difference() is None
    except NoPointError:
        return False


def _by_branch(
    name: str, lhs: sp.Symbol, x: sp.Symbol, branches: Mapping[str, sp.Expr] | None
) -> str:
    """Why there is no one solution, with that of every branch that has one."""
    if not branches:
        return (
            f"{name} has steps or pieces inside: no solution in closed form for {describe(x.name)}"
        )
    parts = []
    for branch, expression in branches.items():
        if not expression.has(x):
            parts.append(f"where {branch} decides, {x.name} does not occur")
        elif expression.has(*BRANCHING) or len(solutions := _solutions(lhs, expression, x)) != 1:
            parts.append(f"where {branch} decides, there is no closed form")
        else:
            parts.append(f"where {branch} decides, {x.name} = {text(solutions[0])}")
    head = f"{name} has branches, so no one solution for {describe(x.name)}"
    return "\n  ".join([f"{head}:", *parts])
