"""Where a step holds: the conditions in force, and those that a solution asks for."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp

from formulas.algebra.identity import positive_somewhere, sign_of, under_roots
from formulas.algebra.points import TRIES, points, satisfied, symbols_of
from formulas.algebra.steps import DerivationError, DerivationStep, approximations
from formulas.numerics.evaluate import Definition, collect, scalar, unfolded
from formulas.numerics.expressions import Condition, put, text


def relations_of(assumes: Iterable[str], where: Iterable[Definition] = ()) -> tuple[sp.Basic, ...]:
    """The relations among some assumptions, with definitions put in."""
    where = tuple(where)
    relations = (each.relation for each in assumes if isinstance(each, Condition))
    return tuple(unfolded(relation, where) if where else relation for relation in relations)


def domain_of(
    x: sp.Symbol, claim: sp.Expr, relations: tuple[sp.Basic, ...], where: Iterable[Definition] = ()
) -> list[Condition]:
    """What must be positive for a claim to be a value of a symbol, if the relations leave it open.

    Every symbol is positive, and so must be what stands under a root or a logarithm.
    """
    where = tuple(where)

    def open_to(parts: Iterable[sp.Expr], within: tuple[sp.Basic, ...]) -> list[sp.Expr]:
        return [part for part in parts if sign_of(unfolded(part, where), within) < 1]

    needed = open_to(under_roots(claim), relations)
    within = (*relations, *(unfolded(part, where) > 0 for part in needed))
    if not claim.is_positive and open_to([claim], within):
        factors = open_to(sp.Mul.make_args(sp.factor_terms(sp.together(claim))), within)
        needed.append(sp.Mul(*(f.base if f.is_Pow and f.exp == -1 else f for f in factors)))
    why = f"else {x.name} has no positive value"
    if odd := [part for part in needed if part.has(sp.zoo, sp.nan, sp.I)]:
        raise DerivationError(f"{x.name} = {text(claim)} is not a real number: {text(odd[0])}")
    return [Condition(exceeds(part), why) for part in dict.fromkeys(needed)]


def exceeds(part: sp.Expr) -> sp.Basic:
    """`part > 0`, its negative terms on the other side."""
    terms = sp.Add.make_args(part)
    below = [-term for term in terms if term.as_coeff_Mul()[0] < 0]
    above = [term for term in terms if term.as_coeff_Mul()[0] > 0]
    larger, smaller = sp.Add(*above), sp.Add(*below)
    return smaller < larger if larger.is_Number else larger > smaller


def outside(
    assumes: Iterable[str], where: Iterable[Definition], values: Mapping[str, float]
) -> tuple[str, ...]:
    """The conditions that some values break, as they are listed; one that lacks a value is not."""
    where = [each for each in where if each.symbol.name not in values]
    broken = []
    for condition in assumes:
        if isinstance(condition, Condition):
            relation = unfolded(condition.relation, where)
            point = {x: values[x.name] for x in relation.free_symbols if x.name in values}
            if len(point) == len(relation.free_symbols) and not _holds(relation, point):
                broken.append(str(condition))
    return tuple(broken)


def _holds(relation: sp.Basic, point: Mapping[sp.Symbol, float]) -> bool:
    """Whether a relation holds at a point in floats; where it has no value, it does not."""
    if any(math.isinf(value) or math.isnan(value) for value in point.values()):
        return bool(relation.subs(point) == sp.true)
    return satisfied((relation,), {x: Fraction(value) for x, value in point.items()})


def first_form(lhs: sp.Expr, rhs: sp.Expr, why: str, parts: tuple[object, ...]) -> DerivationStep:
    """The first form. Raises DerivationError if no positive values make the two sides equal."""
    side = sign_of(lhs - rhs) if lhs.free_symbols & rhs.free_symbols else 0
    if side and side == sign_of(lhs - rhs, seed=1):
        more = "more" if side > 0 else "less"
        raise DerivationError(f"{text(lhs)} is {more} than {text(rhs)} wherever both exist")
    borrowed = tuple(step for part in parts for step in approximations(part))
    return DerivationStep("begin", lhs, rhs, why, borrowed=borrowed)


def impossible_claim(x: sp.Symbol, claim: sp.Expr) -> str:
    """Why a claim cannot be a value of a symbol, whatever the equation; empty when it can."""
    if claim.has(x):
        return f"the claim for {x.name} still contains {x.name}"
    if not (claim.is_positive or positive_somewhere(claim)):
        return f"{x.name} = {text(claim)} is positive at no point, and every symbol is positive"
    return ""


def contradiction(relations: tuple[sp.Basic, ...]) -> str:
    """That no positive values satisfy all of some conditions; empty where some do."""
    drawn = zip(range(TRIES), points(symbols_of(relations), 0), strict=False)
    if not relations or any(satisfied(relations, point) for _, point in drawn):
        return ""
    return f"no positive values satisfy {', '.join(map(text, relations))}"


def refused_values(values: Mapping[sp.Symbol, sp.Expr], relations: tuple[sp.Basic, ...]) -> str:
    """Why some values cannot be put in: floats, or outside a condition; empty when they can."""
    for x, value in values.items():
        if value.atoms(sp.Float):
            return f"{x.name} = {value} is not exact; write a fraction"
    broken = [relation for relation in relations if put(relation, values) == sp.false]
    return f"outside: {text(broken[0])} is not true of these values" if broken else ""


class SolvedDefinition(NamedTuple):
    """A symbol that was solved for, and what it is."""

    symbol: sp.Symbol
    rhs: sp.Expr


def solved_for(derivation: Any) -> list[SolvedDefinition]:
    """Definitions of solved symbols, of this derivation and of the approximate ones it uses."""
    definitions: dict[sp.Symbol, SolvedDefinition] = {}
    if derivation.lhs.is_Symbol and not derivation.numeric:
        roots = {s.solved for s in derivation.steps if s.solved} | {derivation.lhs}
        definitions = {
            x: SolvedDefinition(x, derivation.rhs) for x in roots if not derivation.rhs.has(x)
        }
    for step in derivation.steps:
        inner = (step.arguments.get("equation"), *step.arguments.get("where", ()))
        for item in inner if step.borrowed else ():
            for definition in solved_for(item) if approximations(item) else ():
                definitions.setdefault(definition.symbol, definition)
    return list(definitions.values())


def strain_of(derivation: Any, case: Mapping[str | sp.Symbol, float]) -> dict[str, float]:
    """{what is neglected: its size over what is kept}; see `Derivation.strain`."""
    values = {x if isinstance(x, str) else x.name: float(v) for x, v in case.items()}
    sizes = {s.neglected: abs(s.size) for s in approximations(derivation) if s.size is not None}
    if not sizes:
        return {}
    defined = collect(derivation.where)
    inner = [
        definition for definition in solved_for(derivation) if definition.symbol not in defined
    ]
    return scalar([*derivation.where, *inner], sizes, values)
