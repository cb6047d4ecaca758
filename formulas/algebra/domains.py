"""Where a step holds: the conditions in force, and those that a solution asks for."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any

import sympy as sp

from formulas.algebra import points
from formulas.algebra.identity import Difference, Identity, has_one_solution, under_roots
from formulas.algebra.steps import (
    BOUND_WORDS,
    DerivationError,
    DerivationStep,
    approximations,
    may_be_positive,
    sampled_sign,
)
from formulas.numerics.digits import UNDETERMINED_RELATION, comparable, real_value
from formulas.numerics.evaluate import Assignment, Definition, collect, expand_all, scalar
from formulas.numerics.expressions import Condition, put, sstr

OPPOSITE = {"≤": "≥", "≥": "≤"}
BINDING = (sp.Sum, sp.Integral, sp.Derivative)
SOLUTIONS = 8  # sample points searched for a second solution
SAME_POINT = Fraction(
    1, 10**9
)  # relative distance of equal solutions, and of the points that show a sign change


def relation_set(assumes: Iterable[str], where: Iterable[Definition] = ()) -> tuple[sp.Basic, ...]:
    """The relations among some assumptions, with definitions put in."""
    where = tuple(where)
    relations = (each.relation for each in assumes if isinstance(each, Condition))
    return tuple(expand_all(relation, where) if where else relation for relation in relations)


def value_conditions(
    x: sp.Symbol, claim: sp.Expr, relations: tuple[sp.Basic, ...], where: Iterable[Definition] = ()
) -> list[Condition]:
    """Conditions that make a claim a positive value of a symbol, if the relations leave it open.

    Every symbol is positive, and so must be what stands under a root or a logarithm.
    """
    where = tuple(where)

    def open_to(parts: Iterable[sp.Expr], within: tuple[sp.Basic, ...]) -> list[sp.Expr]:
        return [part for part in parts if sampled_sign(expand_all(part, where), within) < 1]

    needed = open_to(under_roots(claim), relations)
    within = (*relations, *(expand_all(part, where) > 0 for part in needed))
    if not claim.is_positive and open_to([claim], within):
        factors = open_to(sp.Mul.make_args(sp.factor_terms(sp.together(claim))), within)
        needed.append(sp.Mul(*(f.base if f.is_Pow and f.exp == -1 else f for f in factors)))
    why = f"else {x.name} has no positive value"
    if odd := [part for part in needed if part.has(sp.zoo, sp.nan, sp.I)]:
        raise DerivationError(f"{x.name} = {sstr(claim)} is not a real number: {sstr(odd[0])}")
    return [Condition(positive_condition(part), why) for part in dict.fromkeys(needed)]


def positive_condition(part: sp.Expr) -> sp.Basic:
    """`part > 0`, its negative terms on the other side."""
    terms = sp.Add.make_args(part)
    below = [-term for term in terms if term.as_coeff_Mul()[0] < 0]
    above = [term for term in terms if term.as_coeff_Mul()[0] > 0]
    larger, smaller = sp.Add(*above), sp.Add(*below)
    return smaller < larger if larger.is_Number else larger > smaller


def violated_conditions(
    assumes: Iterable[str], where: Iterable[Definition], values: Mapping[str, float]
) -> tuple[str, ...]:
    """The conditions that some values break, as they are listed; one that lacks a value is not."""
    where = [each for each in where if each.symbol.name not in values]
    broken = []
    for condition in assumes:
        if isinstance(condition, Condition):
            relation = expand_all(condition.relation, where)
            point = {x: values[x.name] for x in relation.free_symbols if x.name in values}
            if len(point) == len(relation.free_symbols) and not _holds(relation, point):
                broken.append(str(condition))
    return tuple(broken)


def _holds(relation: sp.Basic, point: Mapping[sp.Symbol, float]) -> bool:
    if any(math.isinf(value) or math.isnan(value) for value in point.values()):
        return bool(relation.subs(point) == sp.true)
    return points.all_true((relation,), {x: Fraction(value) for x, value in point.items()})


def first_form(lhs: sp.Expr, rhs: sp.Expr, why: str, parts: tuple[object, ...]) -> DerivationStep:
    """The first form. Raises DerivationError if it takes a bound for an equation."""
    signs = [bound_sign(part) for part in parts]
    if any(signs) and len(parts) > 1:
        raise DerivationError("a bound cannot be combined: two sides taken equal are equations")
    borrowed = tuple(step for part in parts for step in approximations(part))
    return DerivationStep("begin", lhs, rhs, why, borrowed=borrowed, direction="".join(signs))


def impossible_claim(x: sp.Symbol, claim: sp.Expr) -> str:
    """Reason why a claim cannot be a value of a symbol in any equation; empty string if it can."""
    if claim.has(x):
        return f"the claim for {x.name} still contains {x.name}"
    if not (claim.is_positive or may_be_positive(claim)):
        return f"{x.name} = {sstr(claim)} is positive at no point, and every symbol is positive"
    return ""


def capture_refusal(steps: tuple[DerivationStep, ...], values: Mapping[sp.Symbol, sp.Expr]) -> str:
    """Reason why values cannot stand for symbols in the last line; empty string if they can."""
    brought = set().union(*(value.free_symbols for value in values.values()))
    nodes = steps[-1].lhs.atoms(*BINDING) | steps[-1].rhs.atoms(*BINDING)
    if inner := {x for node in nodes for x in node.variables} & {*values, *brought}:
        return f"{inner.pop().name} stands for every term of a sum, an integral or a slope"
    for step in steps:
        put_in = step.arguments.get("values") or [
            getattr(step.arguments.get("equation"), "symbol", 0)
        ]
        if gone := brought & {*put_in}:
            return f"{gone.pop().name} was replaced in {step}, and would come back"
    return ""


def unsatisfiable_reason(
    relations: tuple[sp.Basic, ...], facts: Mapping[sp.Symbol, sp.Expr] = MappingProxyType({})
) -> str:
    """Reason why no positive values satisfy all conditions, with facts put in; empty if some do."""
    within = tuple(put(relation, facts) for relation in relations)
    if not within or any(True for _ in points.samples(within, points.sorted_symbols(within), 0)):
        return ""
    facts_text = "".join(f", where {x.name} = {sstr(value)}" for x, value in facts.items())
    return f"no positive values satisfy {', '.join(map(sstr, relations))}{facts_text}"


def refused_values(
    values: Mapping[sp.Symbol, sp.Expr], relations: tuple[sp.Basic, ...], where: tuple[Any, ...]
) -> str:
    """Reason why values cannot be put in: floats, not positive, outside a condition; else empty."""
    for x, rhs in ((e.symbol, expand_all(e.rhs, where)) for e in where if e.symbol in values):
        if sp.simplify(put(rhs, values) - values[x]) != 0:
            return f"{x.name} is {sstr(rhs)}, not {values[x]}"
    for x, value in values.items():
        if value.atoms(sp.Float):
            return f"{x.name} = {value} is not exact; write a fraction"
        if reason := impossible_claim(x, value):
            return reason
    broken = [relation for relation in relations if put(relation, values) == sp.false]
    if broken:
        return f"outside: {sstr(broken[0])} is not true of these values"
    return unsatisfiable_reason(relations, values)


def contradiction(
    lhs: sp.Expr, rhs: sp.Expr, relation: str, relations: tuple[sp.Basic, ...]
) -> str:
    """Reason why a relation of two sides is false at all values; empty string if not shown."""
    odd = [side for side in (lhs, rhs) if side.has(sp.nan, sp.zoo) or side.is_infinite]
    if odd:
        return f"{sstr(odd[0])} is no number"
    if lhs.is_Symbol and lhs not in rhs.free_symbols:
        negative = (
            not rhs.is_number and relation != "≥" and sampled_sign(rhs, relations, 0, True) < 0
        )
        if negative or rhs.is_nonpositive:
            return f"{lhs.name} is positive, and {sstr(rhs)} is not"
        return unsatisfiable_reason(relations, {lhs: rhs}) if relation == "=" else ""
    side = 0 if relation == "≈" else sampled_sign(lhs - rhs, relations, beside_breaks=True)
    if not side or side == {"≤": -1, "≥": 1}.get(relation):
        return ""
    return f"{sstr(lhs)} is {'more' if side > 0 else 'less'} than {sstr(rhs)} wherever both exist"


def bound_sign(part: object) -> str:
    """≤ or ≥ where an equation or a derivation is a bound, else empty."""
    if steps := getattr(part, "steps", ()):
        return str(steps[-1].direction)
    assumes = getattr(part, "assumes", ())
    return next((sign for sign, words in BOUND_WORDS.items() if words[0] in assumes), "")


def growth(side: sp.Expr, x: sp.Symbol, relations: tuple[sp.Basic, ...]) -> int:
    """1 if a side never falls as a symbol grows, -1 if it never rises, else 0."""
    signs: set[int] = set()
    for point in islice(
        points.samples(relations, points.sorted_symbols((side, *relations)), 0), points.THOROUGH
    ):
        for factor in (Fraction(1001, 1000), Fraction(3), Fraction(10**6)):
            moved = {**point, x: point[x] * factor}
            try:
                a, b = comparable(real_value(side, moved), real_value(side, point))
            except UNDETERMINED_RELATION:
                continue
            signs |= {(a > b) - (a < b)} if points.all_true(relations, moved) else set()
    signs.discard(0)
    return signs.pop() if len(signs) == 1 else 0


def joint_direction(last: DerivationStep, equation: Any) -> tuple[str, str]:
    """The direction of a step once an equation is put in, and why there is none; one is empty."""
    x, sign = equation.symbol, bound_sign(equation)
    if not sign:
        return last.direction, ""
    left, right = last.lhs.has(x), last.rhs.has(x)
    within = relation_set(equation.assumes, equation.where)
    slope = growth(last.rhs if right else last.lhs, x, within)
    if not slope or (left and right):
        return "", f"undecided: whether the sides rise or fall with {x.name}, which is a bound"
    turned = sign if (slope > 0) == right else OPPOSITE[sign]
    if last.direction not in ("", turned):
        return "", f"a bound by {turned} cannot be put into one by {last.direction}"
    return turned, ""


@dataclass(frozen=True)
class Solution(Identity):
    """Claim that a value solves a step, and is the only solution within the conditions."""

    last: DerivationStep = field(default=DerivationStep("begin", sp.S.Zero, sp.S.Zero, ""))
    x: sp.Symbol = sp.S.Zero
    claim: sp.Expr = sp.S.Zero

    def difference(self, thorough: bool = False, seed: int = 0) -> Difference | str | None:
        """Return a point where the claim fails, or the text of a second solution; else None."""
        failure = super().difference(thorough, seed)
        if failure or not thorough or has_one_solution(self.last.lhs, self.last.rhs, self.x):
            return failure
        return next(filter(None, (self._another(root) for root in self._roots(seed))), None)

    @cached_property
    def direction(self) -> str:
        """The direction of the solution of a bound, which turns where the sides' difference falls.

        Raises NoPointError where the difference does not change its sign in one way.
        """
        signs = {_beside(self.gap, self.x, root) for root in self._roots(0)}
        if signs not in ({(-1, 1)}, {(1, -1)}):
            raise points.NoPointError(
                f"undecided: whether both sides part more as {self.x.name} grows"
            )
        same = signs == {(-1, 1)}
        return self.last.direction if same else OPPOSITE[self.last.direction]

    @property
    def gap(self) -> sp.Expr:
        """The left side of the line less the right."""
        return self.last.lhs - self.last.rhs

    def _roots(self, seed: int) -> Iterator[points.Point]:
        """Yield a few points with `x` set to the claim, all within the conditions."""
        about = tuple(put(relation, {self.x: self.claim}) for relation in self.relations)
        symbols = [y for y in points.sorted_symbols((self.gap, self.claim, *about)) if y != self.x]
        for point in islice(points.samples(about, symbols, seed), SOLUTIONS):
            try:
                root = points.to_fraction(real_value(self.claim, point))
            except UNDETERMINED_RELATION:
                continue
            if root > 0:
                yield {**point, self.x: root}

    def _another(self, root: points.Point) -> str:
        """Return text on a second solution within the conditions; empty string if not found."""
        for second in points.crossings(self.gap, self.x, root, touching=False):
            here = {**root, self.x: second}
            if abs(second / root[self.x] - 1) <= SAME_POINT or not points.all_true(
                self.relations, here
            ):
                continue
            if _gap_sign(self.gap, here) == 0 or set(_beside(self.gap, self.x, here)) == {-1, 1}:
                where = points.point_text(here)
                return f"it is not the only solution: both sides are equal at {where}"
        if 0 in _beside(self.gap, self.x, root):
            return f"it is not the only solution: nor is it beside {points.point_text(root)}"
        return ""


def _beside(gap: sp.Expr, x: sp.Symbol, point: points.Point) -> tuple[int | None, int | None]:
    below, above = ({**point, x: point[x] * (1 + step)} for step in (-SAME_POINT, SAME_POINT))
    return _gap_sign(gap, below), _gap_sign(gap, above)


def _gap_sign(gap: sp.Expr, point: points.Point) -> int | None:
    try:
        value = real_value(gap, point)
    except UNDETERMINED_RELATION:
        return None
    return (value > 0) - (value < 0)


def solved_definitions(derivation: Any) -> list[Assignment]:
    """Definitions of solved symbols, of this derivation and of the approximate ones it uses."""
    definitions: dict[sp.Symbol, Assignment] = {}
    if derivation.lhs.is_Symbol and not derivation.numeric:
        roots = {s.solved for s in derivation.steps if s.solved} | {derivation.lhs}
        definitions = {x: Assignment(x, derivation.rhs) for x in roots if not derivation.rhs.has(x)}
    for step in derivation.steps:
        inner = (step.arguments.get("equation"), *step.arguments.get("where", ()))
        for item in inner if step.borrowed else ():
            for definition in solved_definitions(item) if approximations(item) else ():
                definitions.setdefault(definition.symbol, definition)
    return list(definitions.values())


def approximation_errors(
    derivation: Any, case: Mapping[str | sp.Symbol, float]
) -> dict[str, float]:
    """Map each neglected term to its size over the kept term; see `Derivation.strain`."""
    values = {x if isinstance(x, str) else x.name: float(v) for x, v in case.items()}
    sizes = {s.neglected: abs(s.size) for s in approximations(derivation) if s.size is not None}
    if not sizes:
        return {}
    defined = collect(derivation.where)
    inner = [each for each in solved_definitions(derivation) if each.symbol not in defined]
    return scalar([*derivation.where, *inner], sizes, values)
