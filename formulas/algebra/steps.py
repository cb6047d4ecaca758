"""One step of a derivation: what it says, what it neglects, and how it was shown to follow."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, wraps
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

import sympy as sp

from formulas.algebra import points as sampling
from formulas.numerics.digits import UNDETERMINED_RELATION, NoRuleError, real_value
from formulas.numerics.expressions import sstr

PROVEN, STATUS_TESTED, STATUS_ASSUMED = RELATION_WORDS = (
    "proven",
    "tested",
    "taken",
)  # from the strongest on


DIRECTIONS = {"<=": "≤", ">=": "≥"}
BOUND_WORDS = {"≤": ("the most it can be",), "≥": ("the least it can be",)}
VERBS = (
    *("begin", "substitute", "rewrite", "solve", "drop", "limit", "at"),
    *("stationary", "respond", "bound", "mean"),
)


_P = ParamSpec("_P")
_R = TypeVar("_R")


def refusing(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """A verb that refuses, in its own words, what cannot be evaluated, compared or decided."""

    @wraps(method)
    def verb(derivation: Any, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(derivation, *args, **kwargs)
        except (sampling.NoPointError, NoRuleError, *UNDETERMINED_RELATION) as error:
            raise derivation.refusal(str(error)) from None

    return verb


class Provable(Protocol):
    """Protocol of the claim of a step: an identity, a limit, a bound, an optimum."""

    @property
    def proven(self) -> bool:
        """True if the claim was shown symbolically."""

    @property
    def distinct(self) -> int:
        """At how many different points it was compared; fewer than a dozen show nothing."""

    def difference(self, thorough: bool = False, seed: int = 0) -> object | None:
        """Return a counterexample, printable as an explanation; None if not found."""

    def proof(self) -> str:
        """Describe the proof in words."""


class DerivationError(ValueError):
    """A step that does not follow."""


@dataclass(frozen=True)
class DerivationStep:
    """Form of the equation after a step, and its derivation from the form before.

    `arguments` is what the verb was called with, so that it can be called again; `borrowed` holds
    the approximate steps of a derivation that was put in, whose neglect this step inherits.
    """

    verb: str
    lhs: sp.Expr
    rhs: sp.Expr
    why: str
    identity: Provable | None = None
    size: sp.Expr | None = None  # [1] neglected terms over kept terms
    neglected: str = ""
    solved: sp.Symbol | None = None
    borrowed: tuple[DerivationStep, ...] = ()
    approximate: bool = False  # a term has been neglected, here or before
    direction: str = ""  # of an inequality: ≤ or ≥
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @property
    def exact(self) -> bool:
        """True if no term was neglected here or in the equations used."""
        return self.size is None and not self.borrowed

    @property
    def relation(self) -> str:
        """`=`, `≈`, or the direction of a bound."""
        return self.direction or ("≈" if self.approximate else "=")

    @property
    def symbols(self) -> set[sp.Symbol]:
        """Every symbol in the step, in its conditions, and in the definitions put in."""
        parts = [self.lhs, self.rhs, *getattr(self.identity, "relations", ())]
        parts += [side for part in self.used for side in (part.symbol, part.rhs)]
        return set().union(*(part.free_symbols for part in parts))

    def __str__(self) -> str:
        return f"{sstr(self.lhs)} {self.relation} {sstr(self.rhs)}"

    def text(self, number: int, proof: str) -> str:
        """Return three lines: verb and reason, the new form, and its proof."""
        why = f": {self.why}" if self.why else ""
        size = "" if self.size is None else f"; neglected over kept: {sstr(self.size)}"
        return f"  {number}. {self.verb}{why}\n       {self}\n       [{proof}{size}]"

    @property
    def used(self) -> tuple[Any, ...]:
        """The equations and derivations that the verb put in."""
        listed = (self.arguments.get(name, ()) for name in ("where", "of"))
        arguments = (*self.arguments.values(), *chain.from_iterable(listed))
        return tuple(part for part in arguments if hasattr(part, "source"))

    def proof(self, before: DerivationStep | None, seed: int = 0) -> str:
        """Prove that this step follows from the step before; return a relation word and the method.

        The word is that of the weakest derivation put in, where that is weaker. Raises
        DerivationError if the step does not follow.
        """
        word, method = self._proof(before, seed)
        inner = [(part.weakest, part.name) for part in self.used if hasattr(part, "weakest")]
        weaker = [
            (w, name) for w, name in inner if RELATION_WORDS.index(w) > RELATION_WORDS.index(word)
        ]
        if weaker:
            word, name = max(weaker, key=lambda pair: RELATION_WORDS.index(pair[0]))
            method += f", from what is {word} of {name}"
        return f"{word}: {method}"

    def _proof(self, before: DerivationStep | None, seed: int) -> tuple[str, str]:
        if self.identity is not None:
            difference = self.identity.difference(thorough=True, seed=seed)
            if difference:
                raise DerivationError(str(difference))
            tested = (
                STATUS_TESTED if self.identity.distinct >= sampling.MIN_POINTS else STATUS_ASSUMED
            )
            word = PROVEN if self.identity.proven else tested
            method = self.identity.proof() + self._borrowing()
            if self.solved is None or before is None:
                return word, method
            over, _ = sp.fraction(sp.together(before.lhs - before.rhs))
            linear = over.is_polynomial(self.solved) and sp.degree(over, self.solved) == 1
            return word, f"put back, {method}{', the only solution' if linear else ''}"
        word, method = _PROOFS[self.verb]
        return word, method + self._borrowing()

    def _borrowing(self) -> str:
        names = ", ".join(dict.fromkeys(step.neglected for step in self.borrowed))
        return f", of an approximation: {names}" if names else ""


class Chain:
    """Properties of the steps of a derivation, its refusals, and hints for a misspelt verb."""

    name: str
    steps: tuple[DerivationStep, ...]
    where: tuple[Any, ...]

    if not TYPE_CHECKING:  # so that a type checker still sees such a name

        def __getattr__(self, name: str) -> object:
            near = get_close_matches(name, VERBS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            verbs = ", ".join(VERBS)
            raise AttributeError(f"there is no verb or attribute {name!r}{hint} (verbs: {verbs})")

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
            self._refuse(f"the left side is not one symbol: {sstr(self._last.lhs)}")
        return self._last.lhs

    @property
    def exact(self) -> bool:
        """True if no step neglects a term."""
        return all(step.exact for step in self.steps)

    @property
    def premises(self) -> tuple[str, ...]:
        """Premises of the derivation: its first step, the equations put in, the neglected terms."""
        taken: dict[str, None] = {}
        for step in self.steps:
            sides = (step.arguments.get(side) for side in ("lhs", "rhs"))
            if step.verb == "begin" and not any(hasattr(side, "source") for side in sides):
                taken[f"{step}: {step.why}" if step.why else str(step)] = None
            for part in step.used:
                taken |= dict.fromkeys(getattr(part, "premises", (part.name,)))
            if step.verb == "drop":
                taken[step.neglected] = None
        return tuple(taken)

    @cached_property
    def proofs(self) -> tuple[str, ...]:
        """The proof of each step: `proven`, `tested` or `taken`, and how.

        Raises DerivationError if one does not follow, at points drawn anew or symbolically.
        """
        return self._proofs(random.randrange(2**32))

    def _proofs(self, seed: int) -> tuple[str, ...]:
        before = (None, *self.steps)
        proofs = []
        for number, (step, last) in enumerate(zip(self.steps, before, strict=False), 1):
            try:
                proofs.append(step.proof(last, seed))
            except (DerivationError, sampling.NoPointError, NoRuleError) as error:
                self._refuse(f"{error}\n  drawn with seed {seed}: check({seed}) repeats it", number)
        return tuple(proofs)

    @property
    def weakest(self) -> str:
        """Weakest relation word of all steps after the first; the first step is a premise."""
        words = [proof.partition(":")[0] for proof in self.proofs[1:]]
        inner = [part.weakest for part in self.steps[0].used if hasattr(part, "weakest")]
        return max(words + inner, key=RELATION_WORDS.index, default=STATUS_ASSUMED)

    def __str__(self) -> str:
        return str(self._last)

    def __repr__(self) -> str:
        return f"<Derivation {self.name}: {self}>"

    @property
    def _last(self) -> DerivationStep:
        if not self.steps:
            raise DerivationError(f"{self.name}: it has not begun")
        return self.steps[-1]

    def _unused(self, name: sp.Symbol | None, *claimed: sp.Expr) -> None:
        used = set().union(
            *(step.symbols for step in self.steps), *(part.free_symbols for part in claimed)
        )
        if name is not None and name in used | {each.symbol for each in self.where}:
            self._refuse(f"{name.name} is in use already, for another value")

    def _stated(self, step: DerivationStep, direction: str | None) -> None:
        stated = DIRECTIONS.get(direction or "", direction)
        if step.direction != (stated or self._last.direction):
            sign = {"≤": "<=", "≥": ">="}.get(step.direction, "")
            self._refuse(f"it follows that {step}: say so with direction={sign!r}")

    def refusal(self, reason: str, number: int | None = None) -> DerivationError:
        """The error of a step: of the next one, or of that of a number."""
        number = len(self.steps) + 1 if number is None else number
        return DerivationError(f"{self.name}, step {number}: {reason}")

    def _refuse(self, reason: str, number: int | None = None) -> NoReturn:
        raise self.refusal(reason, number)


def approximations(derivation: object) -> tuple[DerivationStep, ...]:
    """Every approximate step of a derivation and of its inputs; empty for an equation."""
    approximate: dict[str, DerivationStep] = {}
    for step in getattr(derivation, "steps", ()):
        for part in (*step.borrowed, step):
            if part.size is not None:
                approximate.setdefault(part.neglected, part)
    return tuple(approximate.values())


def drop_term(
    last: DerivationStep, term: sp.Expr, beside: sp.Expr, why: str
) -> DerivationStep | None:
    """The form without an addend of one of its sides; None unless both are addends of that side."""
    term, beside = sp.expand(term), sp.expand(beside)
    for side in ("rhs", "lhs"):
        parts = list(sp.Add.make_args(sp.expand(getattr(last, side))))
        if term in parts and beside in parts and term != beside:
            parts.remove(term)
            left = {side: sp.factor_terms(sp.Add(*parts))}
            sides = {"lhs": last.lhs, "rhs": last.rhs} | left
            return DerivationStep(
                "drop", **sides, why=why, size=term / beside, neglected=f"drop {sstr(term)}"
            )
    return None


_PROOFS = {
    "begin": (STATUS_ASSUMED, "stated"),
    "substitute": (PROVEN, "by definition"),
    "drop": (STATUS_ASSUMED, "approximate"),
    "respond": (PROVEN, "both sides move alike along the path"),
    "at": (PROVEN, "numbers put in"),
}


def may_be_positive(expression: sp.Expr) -> bool:
    """True if an expression is positive at a sampled point, or real at no sampled point."""
    real = False
    for _, point in zip(
        range(sampling.TRIES),
        sampling.sample_points(sampling.sorted_symbols((expression,)), 0),
        strict=False,
    ):
        try:
            if real_value(expression, point) > 0:
                return True
            real = True
        except UNDETERMINED_RELATION:
            continue
    return not real


def sampled_sign(
    expression: sp.Expr,
    relations: tuple[sp.Basic, ...] = (),
    seed: int = 0,
    beside_breaks: bool = False,
) -> int:
    """Sign of an expression over its real points: 1 or -1 if constant, else 0.

    An expression that exists at no point has no sign: 0.
    """
    if expression.is_positive:
        return 1
    signs: set[int] = set()
    drawn = sampling.samples(relations, sampling.sorted_symbols((expression, *relations)), seed)
    met = list(islice(drawn, sampling.THOROUGH))
    breaks = (
        point for start in met[:beside_breaks] for point in sampling.axis_points(start, expression)
    )
    for point in chain(met, (point for point in breaks if sampling.all_true(relations, point))):
        try:
            value = real_value(expression, point)
        except UNDETERMINED_RELATION:
            continue
        signs.add((value > 0) - (value < 0))
        if len(signs) > 1:
            return 0
    return signs.pop() if signs else 0
