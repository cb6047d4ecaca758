"""Derivation: an equation carried from one form to the next by steps that check themselves.

Exact steps are compared at rational points when they are made and proven symbolically, where SymPy
can, by `check`, which makes every step anew first and trusts no recorded form. Approximate steps
(`drop`, `limit`) remember what they neglect, so that `strain` can say how large it is in a case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from numbers import Rational
from types import MappingProxyType
from typing import Concatenate, NoReturn, ParamSpec, TypeAlias

import sympy as sp

from formulas.algebra.cards import SIGNS, card, display
from formulas.algebra.equation import Assignment, Equation, Function, check_units
from formulas.algebra.identity import Identity, NoPointError, limit_differs, shown
from formulas.algebra.steps import DerivationError, DerivationStep, approximations, dropped, unfit
from formulas.nomenclature.sources import Citation, derived
from formulas.numerics.evaluate import collect, scalar, unfolded
from formulas.numerics.expressions import as_expression, put, tex, text


def _put_in(derivation: Derivation) -> list[Assignment]:
    """Definitions of solved symbols, of this derivation and of the approximate ones it uses."""
    definitions: dict[sp.Symbol, Assignment] = {}
    if derivation.lhs.is_Symbol and not derivation.numeric:
        roots = {s.solved for s in derivation.steps if s.solved} | {derivation.lhs}
        definitions = {x: Assignment(x, derivation.rhs) for x in roots if not derivation.rhs.has(x)}
    for step in derivation.steps:
        inner = (step.arguments.get("equation"), *step.arguments.get("where", ()))
        for item in inner if step.borrowed else ():
            for definition in _put_in(item) if approximations(item) else ():
                definitions.setdefault(definition.symbol, definition)
    return list(definitions.values())


@dataclass(frozen=True)
class Derivation:
    """A chain of steps; every verb returns a longer derivation and leaves this one as it was.

    Every verb raises DerivationError if the step does not follow from the one before, UnitError if
    the two sides are not of one unit.
    """

    name: str
    source: Citation = derived
    assumes: tuple[str, ...] = ()
    steps: tuple[DerivationStep, ...] = ()
    where: tuple[Equation, ...] = ()
    numeric: bool = False

    def begin(
        self, lhs: sp.Expr | Equation, rhs: sp.Expr | None = None, why: str = ""
    ) -> Derivation:
        """Start from an equation, or from two sides that are claimed equal."""
        if self.steps:
            raise DerivationError(f"{self.name}: it has begun already")
        called = {"lhs": lhs, "rhs": rhs, "why": why}
        if isinstance(lhs, Equation):
            lhs, rhs, why = lhs.symbol, lhs.rhs, why or lhs.name
        if rhs is None:
            raise DerivationError(f"{self.name}: begin needs two sides, or an Equation")
        step = DerivationStep("begin", as_expression(lhs), as_expression(rhs), why)
        return self._then(step, called)

    def substitute(self, equation: Equation | Derivation, why: str = "") -> Derivation:
        """Put in the right side of an equation for its symbol, wherever that occurs."""
        last = self._last
        new = {equation.symbol: equation.rhs}
        lhs = last.lhs if last.lhs == equation.symbol else put(last.lhs, new)
        rhs = put(last.rhs, new)
        if (lhs, rhs) == (last.lhs, last.rhs):
            self._refuse(f"{equation.symbol.name} does not occur in\n    {last}")
        step = DerivationStep(
            "substitute", lhs, rhs, why or equation.name, borrowed=approximations(equation)
        )
        return self._then(step, {"equation": equation, "why": why})

    def rewrite(
        self,
        claim: sp.Expr,
        why: str = "",
        *,
        where: tuple[Equation | Derivation, ...] = (),
        relations: tuple[sp.Basic, ...] = (),
    ) -> Derivation:
        """Write the right side differently.

        Parameters
        ----------
        where : Definitions of symbols that the new form introduces.
        relations : Relations under which the two forms are equal.
        """
        called = {"claim": claim, "why": why, "where": where, "relations": relations}
        claim = as_expression(claim)
        named = tuple(e.equation() if isinstance(e, Derivation) else e for e in where)
        identity = Identity(
            unfolded(self._last.rhs, named),
            unfolded(claim, named),
            tuple(unfolded(relation, named) for relation in relations),
        )
        borrowed = tuple(step for equation in where for step in approximations(equation))
        step = DerivationStep("rewrite", self._last.lhs, claim, why, identity, borrowed=borrowed)
        complaint = f"{text(claim)} is not equal to\n    {text(self._last.rhs)}"
        assumes = dict.fromkeys((*self.assumes, *(text(relation) for relation in relations)))
        definitions = tuple(dict.fromkeys((*self.where, *named)))
        longer = replace(self, assumes=tuple(assumes), where=definitions)
        return longer._then(step, called, complaint)

    def solve(
        self, x: sp.Symbol, claim: sp.Expr, why: str = "", *, named: sp.Symbol | None = None
    ) -> Derivation:
        """Solve for a symbol; the claimed solution is put back into the equation.

        `named` is what the value is called from here on, as B_crit is a value of B.
        """
        called = {"x": x, "claim": claim, "why": why, "named": named}
        last, claim = self._last, as_expression(claim)
        if reason := unfit(x, claim):
            self._refuse(reason)
        back = {x: claim}
        identity = Identity(put(last.lhs, back), put(last.rhs, back))
        step = DerivationStep(
            "solve", named or x, claim, why or f"for {x.name}", identity, solved=x
        )
        complaint = f"{x.name} = {text(claim)} does not satisfy\n    {last}"
        return self._then(step, called, complaint)

    def drop(self, term: sp.Expr, beside: sp.Expr, why: str = "") -> Derivation:
        """Neglect an addend of either side beside another addend of the same side."""
        step = dropped(self._last, term, beside, why)
        if step is None:
            self._refuse(
                f"{text(term)} is not an addend beside {text(beside)} in\n    {self._last}"
            )
        return self._then(step, {"term": term, "beside": beside, "why": why})

    def limit(self, x: sp.Symbol, to: sp.Expr, claim: sp.Expr, why: str = "") -> Derivation:
        """Let a symbol tend to a value; the right side tends to the claim."""
        called = {"x": x, "to": to, "claim": claim, "why": why}
        last, to, claim = self._last, as_expression(to), as_expression(claim)
        if last.lhs.has(x) or claim.has(x):
            self._refuse(f"{x.name} still stands on the left or in the claim")
        against = limit_differs(last.rhs, claim, x, to)
        if against:
            self._refuse(f"{text(last.rhs)} does not tend to {text(claim)}\n  {against}")
        size, neglected = last.rhs / claim - 1, f"limit {x.name} -> {to}"
        step = DerivationStep("limit", last.lhs, claim, why, None, size, neglected, (x, to))
        return self._then(step, called)

    def at(self, values: Mapping[sp.Symbol, Rational | sp.Expr], why: str = "") -> Derivation:
        """Put in exact numbers, or expressions, for symbols."""
        exact = {x: as_expression(value) for x, value in values.items()}
        for x, value in exact.items():
            if value.atoms(sp.Float):
                self._refuse(f"{x.name} = {value} is not exact; write a fraction")
        called = {"values": dict(values), "why": why}
        lhs, rhs = put(self._last.lhs, exact), put(self._last.rhs, exact)
        tidy = rhs.doit() if rhs.has(sp.Max, sp.Min) else sp.cancel(rhs)
        why = why or ", ".join(f"{x.name} = {text(value)}" for x, value in exact.items())
        return replace(self, numeric=True)._then(DerivationStep("at", lhs, tidy, why), called)

    def replayed(
        self, changes: Mapping[int, Mapping[str, object]] = MappingProxyType({})
    ) -> Derivation:
        """Replay the derivation, with other arguments for some steps, numbered from 1.

        `{2: {"claim": 2 * x}}` makes the second step anew with another claim.
        """
        again = replace(self, steps=(), numeric=False)
        for number, step in enumerate(self.steps, 1):
            verb = getattr(again, step.verb)
            again = verb(**{**step.arguments, **changes.get(number, {})})
        return again

    @property
    def lhs(self) -> sp.Expr:
        """Left side of the last step."""
        return self._last.lhs

    @property
    def rhs(self) -> sp.Expr:
        """Right side of the last step."""
        return self._last.rhs

    result = rhs

    @property
    def symbol(self) -> sp.Symbol:
        """Left side of the last step, which must be a symbol."""
        if not self._last.lhs.is_Symbol:
            self._refuse(f"the left side is not one symbol: {text(self._last.lhs)}")
        return self._last.lhs

    @property
    def exact(self) -> bool:
        """True if no step neglects a term."""
        return all(step.exact for step in self.steps)

    def equation(self) -> Equation:
        """The last step as an Equation; what was neglected becomes an assumption."""
        return self._equation

    @cached_property
    def _equation(self) -> Equation:
        if self.numeric:
            self._refuse("numbers have been put in; take the equation before `at`")
        left_out = tuple(f"{s.neglected}: {s.why}" for s in approximations(self))
        assumes = (*self.assumes, *left_out)
        return Equation(self.name, self.symbol, self.rhs, assumes, self.source, self.where)

    def numpy(self, *axes: sp.Symbol | str) -> Function:
        """The result as a function of floats or arrays; see `Equation.numpy`."""
        return self.equation().numpy(*axes)

    def strain(self, case: Mapping[str | sp.Symbol, float]) -> dict[str, float]:
        """Size of what each approximate step neglects, over what it keeps, in a given case.

        A solved symbol that the case leaves out takes the value of the result. Raises SymbolError
        if the case lacks a symbol.
        """
        values = {x if isinstance(x, str) else x.name: float(v) for x, v in case.items()}
        sizes = {s.neglected: abs(s.size) for s in approximations(self) if s.size is not None}
        if not sizes:
            return {}
        defined = collect(self.where)
        inner = [definition for definition in _put_in(self) if definition.symbol not in defined]
        return scalar([*self.where, *inner], sizes, values)

    @cached_property
    def proofs(self) -> tuple[str, ...]:
        """The proof of each step, in words.

        Raises DerivationError if one does not follow, at twelve points or symbolically.
        """
        before = (None, *self.steps)
        proofs = []
        for number, (step, last) in enumerate(zip(self.steps, before, strict=False), 1):
            try:
                proofs.append(step.proof(last))
            except (DerivationError, NoPointError) as error:
                self._refuse(str(error), number)
        return tuple(proofs)

    def check(self) -> bool:
        """True when every step, made anew, is the one recorded and is proven; raises otherwise."""
        for number, (step, anew) in enumerate(
            zip(self.steps, self.replayed().steps, strict=True), 1
        ):
            if step != anew:
                self._refuse(f"{step} is recorded, but the step gives\n    {anew}", number)
        return len(self.proofs) == len(self.steps)

    def latex(self) -> str:
        """All steps, aligned."""
        lines = [f"{tex(s.lhs)} &{SIGNS[s.relation]} {tex(s.rhs)}" for s in self.steps]
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        rows, symbols = [], set()
        for number, (step, proof) in enumerate(zip(self.steps, self.proofs, strict=True), 1):
            rows.append(_card_row(number, step, proof))
            symbols |= step.lhs.free_symbols | step.rhs.free_symbols
        for inner in self.where:
            symbols |= {inner.symbol, *inner.symbols}
        where = [inner.latex() for inner in self.where]
        return card(self.name, rows, where, self.assumes, symbols, self.source)

    def text(self) -> str:
        """All steps with their reasons and proofs, one after the other."""
        numbered = enumerate(zip(self.steps, self.proofs, strict=True), 1)
        steps = [step.text(number, proof) for number, (step, proof) in numbered]
        return "\n".join([self.name, *steps])

    def __str__(self) -> str:
        relation = "=" if self.exact else "≈"
        return f"{text(self.lhs)} {relation} {text(self.rhs)}"

    def __repr__(self) -> str:
        return f"<Derivation {self.name}: {self}>"

    @property
    def _last(self) -> DerivationStep:
        if not self.steps:
            raise DerivationError(f"{self.name}: it has not begun")
        return self.steps[-1]

    def _then(
        self, step: DerivationStep, arguments: Mapping[str, object], complaint: str = ""
    ) -> Derivation:
        """One step longer; its units and its identity are checked first."""
        if not self.numeric:
            check_units(f"{self.name}, step {len(self.steps) + 1}", step.lhs, step.rhs)
        try:
            difference = step.identity.difference() if step.identity else None
        except NoPointError as error:
            self._refuse(str(error))
        if difference:
            point, gap = difference
            self._refuse(f"{complaint}\n  at {shown(point)} the two sides differ by {gap}")
        return replace(self, steps=(*self.steps, replace(step, arguments=dict(arguments))))

    def _refuse(self, reason: str, number: int | None = None) -> NoReturn:
        number = len(self.steps) + 1 if number is None else number
        raise DerivationError(f"{self.name}, step {number}: {reason}")


P = ParamSpec("P")
Step: TypeAlias = Callable[[Derivation], Derivation]


def derive(
    name: str,
    *steps: Step,
    source: Citation = derived,
    assumes: tuple[str, ...] = (),
    where: tuple[Equation, ...] = (),
) -> Derivation:
    """The derivation of these steps, as a page of equations writes it."""
    derivation = Derivation(name, source, assumes, where=where)
    for step in steps:
        derivation = step(derivation)
    return derivation


def _step(verb: Callable[Concatenate[Derivation, P], Derivation]) -> Callable[P, Step]:
    """A verb that waits for the derivation that it carries on."""

    def waiting(*args: P.args, **kwargs: P.kwargs) -> Step:
        return lambda derivation: verb(derivation, *args, **kwargs)

    return waiting


begin = _step(Derivation.begin)
substitute = _step(Derivation.substitute)
rewrite = _step(Derivation.rewrite)
solve = _step(Derivation.solve)
drop = _step(Derivation.drop)
limit = _step(Derivation.limit)


def _card_row(number: int, step: DerivationStep, proof: str) -> str:
    """HTML of a step: what was done and why, its form, and how it was shown to follow."""
    why = f": {escape(step.why)}" if step.why else ""
    form = f"{tex(step.lhs)} {SIGNS[step.relation]} {tex(step.rhs)}"
    size = "" if step.size is None else f"; neglected over kept: ${tex(step.size)}$"
    return (
        f"<div>{number}. <b>{step.verb}</b>{why}</div>"
        f"{display(form)}<div><small>{escape(proof)}{size}</small></div>"
    )
