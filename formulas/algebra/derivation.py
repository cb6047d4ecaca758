"""Derivation: an equation carried from one form to the next by steps that check themselves.

Exact steps are compared at points when made, and proven where SymPy can by `check`, which makes
every step anew. Approximate ones (`drop`, `limit`) remember what they neglect: `strain` sizes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from numbers import Rational
from types import MappingProxyType

import sympy as sp

from formulas.algebra import calculus, domains
from formulas.algebra.equation import Equation, Function, Readable, check_units
from formulas.algebra.identity import Identity
from formulas.algebra.steps import (
    BOUND_WORDS,
    DIRECTIONS,
    Chain,
    DerivationError,
    DerivationStep,
    approximations,
    drop_term,
    refusing,
)
from formulas.algebra.tendency import LimitClaim, Mean
from formulas.nomenclature.sources import Citation, derived
from formulas.numerics.evaluate import expand_all
from formulas.numerics.expressions import Condition, as_expression, put, sentences, sstr


@dataclass(frozen=True)
class Derivation(Readable, Chain):
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
    stated: tuple[str, ...] | None = None
    named: tuple[Equation, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "assumes", sentences(self.name, self.assumes))
        if self.stated is None:  # assumptions and equations before the first step
            object.__setattr__(self, "stated", self.assumes)
            object.__setattr__(self, "named", self.where)

    @refusing
    def begin(
        self,
        lhs: sp.Expr | Equation | Derivation,
        rhs: sp.Expr | Equation | Derivation | None = None,
        why: str = "",
        of: tuple[Equation | Derivation, ...] = (),
    ) -> Derivation:
        """Start from an equation, or from two sides (of two equations the right ones) taken equal.

        `of` are equations that they use. Raises DerivationError if no positive values make them so.
        """
        called = {"lhs": lhs, "rhs": rhs, "why": why, "of": of}
        if self.steps:
            self._refuse("it has begun already")
        parts = [part for part in (lhs, rhs) if isinstance(part, Equation | Derivation)]
        if rhs is None and parts:
            lhs, rhs, why = parts[0].symbol, parts[0].rhs, why or parts[0].name
        if rhs is None:
            raise DerivationError(f"{self.name}: begin needs two sides, or an Equation")
        left, right = (e.rhs if isinstance(e, Equation | Derivation) else e for e in (lhs, rhs))
        parts += of
        if any(e.symbol == left and e.rhs != right for e in self.where):
            self._refuse(f"{sstr(left)} is defined already")
        step = domains.first_form(as_expression(left), as_expression(right), why, tuple(parts))
        return self._assuming(parts)._append(step, called)

    @refusing
    def substitute(
        self, equation: Equation | Derivation, why: str = "", *, direction: str | None = None
    ) -> Derivation:
        """Put in the right side of an equation for its symbol, wherever that occurs.

        Where a bound is put in, `direction` says what the line becomes.
        """
        last = self._last
        new = {equation.symbol: equation.rhs}
        if equation.rhs.has(equation.symbol):
            self._refuse(f"{equation.name} gives {equation.symbol.name} by itself")
        lhs = last.lhs if last.lhs == equation.symbol else put(last.lhs, new)
        rhs = put(last.rhs, new)
        if (lhs, rhs) == (last.lhs, last.rhs):
            self._refuse(f"{equation.symbol.name} does not occur in\n    {last}")
        sign, reason = domains.joint_direction(last, equation)
        if reason:
            self._refuse(reason)
        put_in = approximations(equation)
        why_put = why or equation.name
        step = DerivationStep("substitute", lhs, rhs, why_put, borrowed=put_in, direction=sign)
        self._stated(step, direction)
        called = {"equation": equation, "why": why, "direction": direction}
        return self._assuming([equation])._append(step, called, facts=new)

    @refusing
    def rewrite(
        self,
        claim: sp.Expr,
        why: str = "",
        *,
        where: tuple[Equation | Derivation, ...] = (),
        relations: tuple[sp.Basic, ...] = (),
    ) -> Derivation:
        """Write the right side differently.

        Args:
            where: Definitions of symbols that the new form introduces.
            relations: Relations under which the two forms are equal.
        """
        called = {"claim": claim, "why": why, "where": where, "relations": relations}
        claim = as_expression(claim)
        named = tuple(e.equation() if isinstance(e, Derivation) else e for e in where)
        for equation in named:
            if domains.bound_sign(equation):
                self._refuse(f"{equation.name} is a bound, not a definition")
            if equation not in (*self.where, *chain.from_iterable(s.used for s in self.steps)):
                self._unused(equation.symbol)
        stricter = self._assuming(where, tuple(Condition(relation) for relation in relations))
        definitions = tuple(dict.fromkeys((*self.where, *named)))
        before, after = (expand_all(side, definitions) for side in (self._last.rhs, claim))
        identity = Identity(before, after, stricter._in_force(named))
        borrowed = tuple(step for equation in where for step in approximations(equation))
        step = DerivationStep("rewrite", self._last.lhs, claim, why, identity, borrowed=borrowed)
        complaint = f"{sstr(claim)} is not equal to\n    {sstr(self._last.rhs)}"
        return replace(stricter, where=definitions)._append(step, called, complaint)

    @refusing
    def solve(
        self,
        x: sp.Symbol,
        claim: sp.Expr,
        why: str = "",
        *,
        named: sp.Symbol | None = None,
        direction: str | None = None,
    ) -> Derivation:
        """Solve for a symbol; the claimed solution is put back into the equation.

        `named` is what the value is called from here on, as B_crit is a value of B. A bound that
        turns round is said to: `direction`, `<=` or `>=`, is that of the new line.
        """
        called = {"x": x, "claim": claim, "why": why, "named": named, "direction": direction}
        self._unused(named)
        last, claim = self._last, as_expression(claim)
        if reason := domains.impossible_claim(x, claim):
            self._refuse(reason)
        stricter = self._assuming(
            (), tuple(domains.value_conditions(x, claim, self._in_force(), self.where))
        )
        back = {x: claim}
        identity = domains.Solution(
            put(last.lhs, back), put(last.rhs, back), stricter._in_force(), last, x, claim
        )
        step = DerivationStep(
            "solve", named or x, claim, why or f"for {x.name}", identity, solved=x
        )
        complaint = f"{x.name} = {sstr(claim)} does not satisfy\n    {last}"
        if last.direction:
            step = replace(step, direction=identity.direction)
            self._stated(step, direction)
        return stricter._append(step, called, complaint, facts=back)

    @refusing
    def drop(self, term: sp.Expr, beside: sp.Expr, why: str = "") -> Derivation:
        """Neglect an addend of either side against another addend of the same side."""
        step = drop_term(self._last, term, beside, why)
        if step is None:
            self._refuse(
                f"{sstr(term)} is not an addend beside {sstr(beside)} in\n    {self._last}"
            )
        return self._append(step, {"term": term, "beside": beside, "why": why})

    @refusing
    def limit(self, x: sp.Symbol, to: sp.Expr, claim: sp.Expr, why: str = "") -> Derivation:
        """Let a symbol tend to a value; the right side tends to the claim."""
        called = {"x": x, "to": to, "claim": claim, "why": why}
        last, to, claim = self._last, as_expression(to), as_expression(claim)
        if any(self._moving(side, x).has(x) for side in (last.lhs, claim)):
            self._refuse(f"{x.name} still stands on the left or in the claim")
        tendency = LimitClaim(self._moving(last.rhs, x), claim, x, to, self._in_force())
        size, neglected = last.rhs / claim - 1, f"limit {x.name} -> {to}"
        step = DerivationStep("limit", last.lhs, claim, why, tendency, size, neglected)
        return self._append(step, called, f"{sstr(last.rhs)} does not tend to {sstr(claim)}")

    @refusing
    def stationary(
        self,
        x: sp.Symbol,
        why: str = "",
        *,
        traded: sp.Symbol | None = None,
        constant: sp.Expr | None = None,
        least: bool = True,
    ) -> Derivation:
        """The right side is least, or largest, in a symbol: the condition, derived.

        The second order is shown at its roots. With `traded` that symbol moves as well, to leave
        `constant` as it is.
        """
        called = {"x": x, "why": why, "traded": traded, "constant": constant, "least": least}
        objective = self._moving(self._last.rhs, x, traded)
        fixed = constant and self._moving(constant, x, traded)
        optimum = calculus.Optimum.of(objective, x, traded, fixed, least, self._in_force())
        lhs, rhs = optimum.sides
        if 0 in (lhs, rhs):
            self._refuse(f"{sstr(self._last.rhs)} only rises, or only falls, in {x.name}")
        step = DerivationStep("stationary", lhs, rhs, why or f"in {x.name}", optimum)
        return self._append(step, called, f"{sstr(lhs)} = {sstr(rhs)} is not the optimum asked for")

    @refusing
    def respond(
        self, x: sp.Symbol, by: sp.Symbol, named: sp.Symbol, traded: sp.Symbol, constant: sp.Expr
    ) -> Derivation:
        """Derive the elasticity of `x` to `by` (percent per percent), while both sides stay equal.

        `named` is that percent; the traded symbol moves as well, to leave `constant` as it is.
        """
        called = {"x": x, "by": by, "named": named, "traded": traded, "constant": constant}
        self._unused(named)
        if not all(part.is_Symbol for part in (x, by, named, traded)) or len({x, by, traded}) < 3:
            self._refuse("what drives, follows and is traded are three symbols")
        sides = [self._moving(side, x, by, traded) for side in (self.lhs, self.rhs, constant)]
        lhs, rhs = calculus.response_sides((sides[0], sides[1]), x, by, named, traded, sides[2])
        if any(side.has(sp.nan, sp.zoo, sp.Derivative, sp.Subs) for side in (lhs, rhs)):
            self._refuse(f"{sstr(lhs)} = {sstr(rhs)} has no slope, or none that is known")
        why = f"{x.name} and {traded.name} follow {by.name}, at the same {sstr(constant)}"
        return self._append(DerivationStep("respond", lhs, rhs, why), called)

    @refusing
    def bound(self, claim: sp.Expr, direction: str, why: str = "") -> Derivation:
        """An expression that the right side never exceeds (`<=`), or never falls below (`>=`)."""
        called = {"claim": claim, "direction": direction, "why": why}
        last, claim, sign = self._last, as_expression(claim), DIRECTIONS.get(direction)
        if sign is None or last.direction not in ("", sign):
            self._refuse(f"a bound is <= or >=, and does not turn round: not {direction!r}")
        sides = (last.rhs, claim) if sign == "≤" else (claim, last.rhs)
        identity = calculus.OneSided(*sides, self._in_force())
        step = DerivationStep("bound", last.lhs, claim, why, identity)
        complaint = f"{sstr(last.rhs)} {sign} {sstr(claim)} does not hold"
        return self._append(replace(step, direction=sign), called, complaint)

    @refusing
    def mean(
        self,
        x: sp.Symbol,
        over: calculus.Distribution,
        claim: sp.Expr,
        why: str = "",
        *,
        named: sp.Symbol | None = None,
    ) -> Derivation:
        """Replace the right side by its mean over a distribution of `x`; `named` names the mean."""
        called = {"x": x, "over": over, "claim": claim, "why": why, "named": named}
        last, claim = self._last, as_expression(claim)
        self._unused(named if named != last.lhs else None, claim, *over.ends())
        if any(self._moving(side, x).has(x) for side in (last.lhs, claim, *over.ends())):
            self._refuse(f"{x.name} still stands on the left, in the claim or in its range")
        identity = Mean(self._moving(last.rhs, x), claim, x, over, self._in_force())
        step = DerivationStep("mean", named or last.lhs, claim, why or f"over {x.name}", identity)
        return self._append(step, called, f"the mean of {sstr(last.rhs)} is not {sstr(claim)}")

    @refusing
    def at(self, values: Mapping[sp.Symbol, Rational | sp.Expr], why: str = "") -> Derivation:
        """Put in exact numbers, or expressions, for symbols."""
        exact = {x: as_expression(value) for x, value in values.items()}
        if reason := domains.refused_values(exact, self._in_force(), self.where):
            self._refuse(reason)
        for x, value in exact.items():
            if value.free_symbols:
                check_units(f"{self.name}, step {len(self.steps) + 1}", x, value)
        called = {"values": dict(values), "why": why}
        lhs, rhs = put(self._last.lhs, exact), put(self._last.rhs, exact)
        tidy = rhs.doit() if rhs.has(sp.Max, sp.Min) else sp.cancel(rhs)
        why = why or ", ".join(f"{x.name} = {sstr(value)}" for x, value in exact.items())
        step = DerivationStep("at", lhs, tidy, why)
        return replace(self, numeric=True)._append(step, called, facts=exact)

    def replayed(
        self, changes: Mapping[int, Mapping[str, object]] = MappingProxyType({})
    ) -> Derivation:
        """Replay the derivation, with other arguments for some steps, numbered from 1.

        `{2: {"claim": 2 * x}}` makes the second step anew with another claim.
        """
        again = replace(
            self, steps=(), numeric=False, assumes=self.stated or (), where=self.named or ()
        )
        for number, step in enumerate(self.steps, 1):
            verb = getattr(again, step.verb)
            again = verb(**{**step.arguments, **changes.get(number, {})})
        return again

    def equation(self) -> Equation:
        """Return the last step as an Equation; neglected terms become assumptions."""
        return self._equation

    @cached_property
    def _equation(self) -> Equation:
        if self.numeric:
            self._refuse("numbers have been put in; take the equation before `at`")
        left_out = tuple(f"{s.neglected}: {s.why}" for s in approximations(self))
        assumes = (*self.assumes, *left_out, *BOUND_WORDS.get(self._last.direction, ()))
        return Equation(self.name, self.symbol, self.rhs, assumes, self.source, self.where)

    def numpy(self, *axes: sp.Symbol | str) -> Function:
        """The result as a function of floats or arrays; see `Equation.numpy`."""
        return self.equation().numpy(*axes)

    def strain(self, case: Mapping[str | sp.Symbol, float]) -> dict[str, float]:
        """Relative size of each neglected term (neglected over kept) in a given case.

        A solved symbol that the case leaves out takes the value of the result. Raises SymbolError
        if the case lacks a symbol.
        """
        return domains.approximation_errors(self, case)

    def check(self, seed: int | None = None) -> bool:
        """True if every step, remade, equals the recorded step and follows; raises otherwise.

        Points are drawn anew; a message names the seed that repeats them.
        """
        if excluded := domains.unsatisfiable_reason(self._in_force()):
            self._refuse(excluded)
        anew = self.replayed()
        if (anew.assumes, anew.where, anew.numeric) != (self.assumes, self.where, self.numeric):
            self._refuse("its conditions, definitions or numbers are not those of its steps")
        for number, (step, again) in enumerate(zip(self.steps, anew.steps, strict=True), 1):
            if step != again:
                self._refuse(f"{step} is recorded, but the step gives\n    {again}", number)
        return len(self.proofs if seed is None else self._proofs(seed)) == len(self.steps)

    def _assuming(
        self, used: Iterable[Equation | Derivation], more: tuple[str, ...] = ()
    ) -> Derivation:
        if numbers := [item.name for item in used if getattr(item, "numeric", False)]:
            self._refuse(f"{numbers[0]} has numbers put in; take it before `at`")
        travelling = (assumption for item in used for assumption in item.assumes)
        return replace(self, assumes=(*self.assumes, *travelling, *more))

    def _moving(self, side: sp.Expr, *moved: sp.Symbol | None) -> sp.Expr:
        """A side, with those definitions put in that change as some symbols do."""
        inner = [e for e in self.where if {*moved} & expand_all(e.rhs, self.where).free_symbols]
        return expand_all(side, inner) if inner else side

    def _in_force(self, where: Iterable[Equation] = ()) -> tuple[sp.Basic, ...]:
        return domains.relation_set(self.assumes, (*self.where, *where))

    def _append(
        self,
        step: DerivationStep,
        arguments: Mapping[str, object],
        complaint: str = "",
        facts: Mapping[sp.Symbol, sp.Expr] = MappingProxyType({}),
    ) -> Derivation:
        """One step longer; its units, its identity and the conditions are checked first.

        `facts` are what it says of symbols: put into the conditions, they must leave them possible.
        """
        if not self.numeric:
            check_units(f"{self.name}, step {len(self.steps) + 1}", step.lhs, step.rhs)
        difference = step.identity.difference() if step.identity else None
        if difference:
            self._refuse(f"{complaint}\n  {difference}")
        if facts and (reason := domains.capture_refusal(self.steps, facts)):
            self._refuse(reason)
        if facts and (excluded := domains.unsatisfiable_reason(self._in_force(), facts)):
            self._refuse(excluded)
        after = bool(self.steps) and self.steps[-1].approximate
        whole = replace(
            step,
            approximate=after or not step.exact,
            direction=step.direction or (self.steps[-1].direction if self.steps else ""),
            arguments=dict(arguments),
        )
        if whole.direction and (whole.approximate or step.verb in ("stationary", "respond")):
            self._refuse(f"no bound follows from an approximation, nor from its slope: {whole}")
        turned = step.verb == "rewrite" and whole.rhs.has(whole.lhs)
        if step.verb in ("begin", "substitute", "at", "drop") or turned:
            reason = domains.contradiction(whole.lhs, whole.rhs, whole.relation, self._in_force())
            if reason:
                self._refuse(reason)
        return replace(self, steps=(*self.steps, whole))
