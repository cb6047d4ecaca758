"""Mutants of derivations: every step broken on purpose, one small change at a time.

`python -m tests.scripts.mutants` breaks every step of every derivation, prints how many of the
mutants the checks refuse, and the survivors (with NAMEs: of these derivations). A mutant is a
derivation whose verbs are called again with one changed argument; it is killed when a verb or
`check` refuses it. A change that leaves an expression equal to what it was is not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import sympy as sp

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.algebra.identity import Identity, NoPointError
from formulas.nomenclature.dimensions import UnitError
from formulas.nomenclature.symbols import SymbolError, symbol_unit
from formulas.numerics.expressions import sstr
from formulas.registry import all_derivations, by_name

__all__ = ["Mutant", "Verdict", "expression_mutants", "figure", "judged", "mutants"]

REFUSALS = (DerivationError, UnitError, SymbolError)
CLAIMS = (
    "rewrite",
    "solve",
    "limit",
    "bound",
    "mean",
    "stationary",
)  # verbs that state a form to be compared
# Of a bound and of an optimum, which way it goes.
TURNED: dict[str, dict[Any, Any]] = {
    "direction": {"<=": ">=", ">=": "<="},
    "least": {True: False, False: True},
}
FLIPPED = {
    sp.StrictLessThan: sp.StrictGreaterThan,
    sp.LessThan: sp.GreaterThan,
    sp.StrictGreaterThan: sp.StrictLessThan,
    sp.GreaterThan: sp.LessThan,
    sp.Equality: sp.Unequality,
    sp.Unequality: sp.Equality,
    sp.Max: sp.Min,
    sp.Min: sp.Max,
    sp.ceiling: sp.floor,
    sp.floor: sp.ceiling,
}
Changed = Iterator[tuple[str, sp.Basic]]
Change = tuple[str, Any, sp.Basic, sp.Basic]  # what was done, the argument, and in it before, after


@dataclass(frozen=True)
class Mutant:
    """One changed argument of one step, numbered from 1, and what in it became what."""

    number: int
    what: str
    arguments: dict[str, Any]
    before: sp.Basic
    after: sp.Basic

    @property
    def equal(self) -> bool:
        """Whether the change leaves an expression equal to what it was, at every point tried."""
        if not isinstance(self.before, sp.Expr):
            return False
        try:
            return Identity(self.before, self.after).difference(thorough=True) is None
        except NoPointError:
            return False


@dataclass(frozen=True)
class Verdict:
    """What became of the mutants of one derivation."""

    name: str
    killed: int
    survivors: tuple[str, ...]

    @property
    def total(self) -> int:
        """Mutants that differ from the original."""
        return self.killed + len(self.survivors)


def mutants(derivation: Derivation) -> Iterator[Mutant]:
    """Every mutant of every step, always in the same order, equal ones among them."""
    for number, step in enumerate(derivation.steps, 1):
        claims = any(each.verb in CLAIMS for each in derivation.steps[number:])
        for key, argument in step.arguments.items():
            value = argument
            if step.verb == "begin" and key == "lhs" and getattr(value, "is_Symbol", False):
                continue  # a name
            if step.verb == "begin" and step.arguments["rhs"] is not None:
                value = getattr(value, "rhs", value)  # of two equations the right sides are equated
            if step.verb in ("at", "substitute") and not claims:
                continue  # numbers of a case, or a premise, of which nothing is claimed
            for what, changed, before, after in _argument_mutants(key, value):
                told = f"{step.verb}, {key}: {what}"
                yield Mutant(number, told, {key: changed}, before, after)


def judged(name: str, every: int = 1) -> Verdict:
    """What the checks make of the mutants of one derivation; one in `every` is tried.

    From the middle of each `every` on: the first mutants are all of the premise, of which a sample
    that began with them would hold more than there are.
    """
    derivation = by_name()[name]
    killed, survivors = 0, []
    for count, mutant in enumerate(mutants(derivation)):
        if count % every != every // 2 or mutant.equal:
            continue
        if _refused(derivation, mutant):
            killed += 1
        else:
            survivors.append(f"{name}, step {mutant.number}, {mutant.what}")
    return Verdict(name, killed, tuple(survivors))


def figure(verdicts: list[Verdict]) -> str:
    """`7512 of 7600 mutants killed (98.8 %)`, and the survivors."""
    killed, total = sum(v.killed for v in verdicts), sum(v.total for v in verdicts)
    survivors = [f"  survived: {each}" for v in verdicts for each in v.survivors]
    head = f"{killed} of {total} mutants killed ({100 * killed / total:.1f} %) in"
    return "\n".join([*survivors, f"{head} {len(verdicts)} derivations"])


def expression_mutants(expression: sp.Basic) -> Changed:
    """Small changes of an expression, each once, those that SymPy sees to be equal left out."""
    seen = {expression}
    for what, changed in (*_swaps(expression), *_inside(expression)):
        if changed not in seen:
            seen.add(changed)
            yield what, changed


def _refused(derivation: Derivation, mutant: Mutant) -> bool:
    try:
        return not derivation.replayed({mutant.number: mutant.arguments}).check()
    except REFUSALS:
        return True


# -- arguments of a verb ------------------------------------------------------------------------


def _argument_mutants(key: str, value: Any) -> Iterator[Change]:
    """Changed values of one argument of a verb."""
    if key in ("why", "named", "x", "traded", "over", "of") or value is None:
        return
    if key in TURNED:
        other = TURNED[key][value]
        yield f"{other} for {value}", other, sp.true, sp.false
        return
    if key == "relations":
        yield from _each(value, _flips)
    elif key == "where":
        yield from _each(value, _equation_mutants)
    elif key == "to":
        other = sp.S.Zero if value == sp.oo else sp.oo
        yield f"{other} for {value}", other, sp.sympify(value), other
    elif key == "values":
        for x, number in value.items():
            for what, changed, before, after in _plain_mutants(sp.sympify(number)):
                yield f"{x} = {what}", {**value, x: changed}, before, after
    elif isinstance(value, Equation | Derivation):
        yield from _equation_mutants(value)
    else:
        yield from _plain_mutants(sp.sympify(value))


def _each(parts: tuple, change: Callable[[Any], Iterator[Change]]) -> Iterator[Change]:
    for index, part in enumerate(parts):
        for what, changed, before, after in change(part):
            yield what, (*parts[:index], changed, *parts[index + 1 :]), before, after


def _equation_mutants(value: Equation | Derivation) -> Iterator[Change]:
    """Equations with a changed right side; one of a wrong unit cannot even be made."""
    equation = value if isinstance(value, Equation) else value.equation()
    for what, changed in expression_mutants(equation.rhs):
        try:
            mutant = replace(equation, rhs=changed, branches=None)
        except UnitError:
            continue  # such mutants are those of `equation_mutants`
        yield f"{equation.symbol} = {what}", mutant, equation.rhs, changed


def _plain_mutants(expression: sp.Basic) -> Iterator[Change]:
    for what, changed in expression_mutants(expression):
        yield what, changed, expression, changed


def _flips(relation: sp.Basic) -> Iterator[Change]:
    """A condition with its inequality turned round."""
    for what, changed in _inside(relation):
        if what.startswith("flip"):
            yield what, changed, relation, changed


# -- expressions --------------------------------------------------------------------------------


def _swaps(expression: sp.Basic) -> Changed:
    """Symbols of one unit exchanged, or one put in the place of the other."""
    symbols = sorted(expression.free_symbols, key=lambda x: x.name)
    for a, b in combinations(symbols, 2):
        if symbol_unit(a) == symbol_unit(b):
            yield f"swap {a} and {b}", expression.xreplace({a: b, b: a})
            yield f"{b} for {a}", expression.xreplace({a: b})
            yield f"{a} for {b}", expression.xreplace({b: a})


def _inside(x: sp.Basic) -> Changed:
    """Changes at a node, then at every node below it."""
    yield from _here(x)
    for index, part in enumerate(x.args):
        for what, changed in _inside(part):
            yield what, _rebuilt(x, (*x.args[:index], changed, *x.args[index + 1 :]))


def _here(x: sp.Basic) -> Changed:
    """Changes of one node."""
    if x.is_Symbol:
        yield f"square {x}", x**2
        yield f"leave out {x}", sp.S.One
        yield f"root of {x}", sp.sqrt(x)
    elif x.is_Rational:
        for changed in (x + 1, x - 1, -x, x / 2):
            yield f"{changed} for {x}", changed
    elif isinstance(x, sp.Add):
        for term in x.args:
            yield f"drop {sstr(term)}", sp.Add(*(t for t in x.args if t is not term))
            yield f"flip the sign of {sstr(term)}", x - 2 * term
    elif isinstance(x, sp.Mul | sp.Pow):
        yield f"double {sstr(x)}", 2 * x
        yield f"negate {sstr(x)}", -x
        yield f"turn over {sstr(x)}", 1 / x
    elif isinstance(x, sp.Max | sp.Min):
        for branch in x.args:
            rest = [b for b in x.args if b is not branch]
            yield f"leave out the branch {sstr(branch)}", _rebuilt(x, tuple(rest))
    elif isinstance(x, sp.Piecewise) and len(x.args) > 1:
        (first, when), (second, then), *others = x.args
        pieces = ((second, when), (first, then), *others)
        yield "exchange the first two pieces", sp.Piecewise(*pieces, evaluate=False)
    if type(x) in FLIPPED:
        yield f"flip {sstr(x)}", _rebuilt(x, x.args, FLIPPED[type(x)])


def _rebuilt(x: sp.Basic, parts: tuple[sp.Basic, ...], kind: type | None = None) -> sp.Basic:
    kind = kind or x.func
    if kind in (sp.Max, sp.Min) and len(parts) == 1:
        return parts[0]
    if kind in (sp.Max, sp.Min, sp.Piecewise):
        return kind(*parts, evaluate=False)
    return kind(*parts)


if __name__ == "__main__":
    names = {id(value): name for name, value in by_name().items()}
    chosen = sys.argv[1:] or [names[id(each)] for each in all_derivations()]
    with ProcessPoolExecutor() as pool:
        print(figure(list(pool.map(judged, chosen))))
