"""Steps of derivations as theorems of Lean 4, each an identity of polynomials over the integers.

A step says that two fractions are equal. With both denominators multiplied out it is an identity of
polynomials with whole coefficients; those hold over the integers if and only if they hold over
every commutative ring, and so over the real numbers wherever no denominator is zero. `grind` of
Lean 4.22 or later proves them from the axioms of commutative rings, without Mathlib. Where a
function is applied to a half, the function is a variable of the theorem.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import sympy as sp

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.algebra.identity import Identity
from formulas.algebra.steps import DerivationStep
from formulas.registry import by_name

# The ten that the book is checked by: critical batches, pipelines, bubbles, rounds undone.
DECIMAL_BASE = (
    "critical_batch", "critical_batch_with_kv", "rule_of_thumb", "pipeline_memory",
    "pipeline_memory_in_flight", "bubble_share", "bubble_share_interleaved", "zero_bubble",
    "feistel_inverse", "reversible_inverse_first",
)  # fmt: skip
# Values of functions: the function, and the half it is applied to.
SUPPORTED_VERBS = {"f_left": ("f", "x_left"), "f_x2": ("f", "x_2"), "g_y1": ("g", "y_1")}
HEAD = """\
/- Identities of token-planner, written from its derivations. Lean 4.22 or later; no Mathlib.
   A theorem is a step with its denominators multiplied out: fractions are equal where these
   products are and no denominator is zero. -/
set_option autoImplicit false
"""


def lean(objects: Iterable[Equation | Derivation]) -> str:
    """A file of Lean 4: one theorem for each step that is an identity of rational functions.

    A step that is not, because it neglects a term or holds a root, a maximum or a power that is no
    whole number, is named in a comment.
    """
    names = {id(value): name for name, value in by_name().items()}
    parts = [HEAD]
    for item in objects:
        name = names.get(id(item), "derivation")
        parts += _theorems(item, name) if isinstance(item, Derivation) else []
    return "\n".join(parts)


def _theorems(item: Derivation, name: str) -> Iterator[str]:
    yield f"-- {item.name}"
    for number, (before, step) in enumerate(pairwise(item.steps), 2):
        if step.identity is None:
            continue
        sides = cleared_denominators(before, step)
        if sides is None:
            yield f"-- step {number} is no identity of rational functions\n"
        else:
            yield _theorem(f"{name}_{number}", *sides, step)


def cleared_denominators(before: DerivationStep, step: DerivationStep) -> tuple[str, str] | None:
    """Both sides of an identity times both denominators; None where they are no polynomials.

    They are written as the derivation has them, nothing cancelled: that they are equal is left to
    be proven.
    """
    defined = {e.symbol: e.rhs for e in step.arguments.get("where", ())}
    if step.solved is not None:
        left, right, defined = before.lhs, before.rhs, {step.solved: step.rhs}
    else:
        left, right = before.rhs, step.rhs
    try:
        (over, under), (above, below) = (_fraction(side, defined) for side in (left, right))
    except TypeError:
        return None
    identity = step.identity
    if not isinstance(identity, Identity) or sp.cancel(identity.left - identity.right) != 0:
        return None  # it takes a relation that the theorem would have to suppose
    return f"({over}) * ({below})", f"({above}) * ({under})"


def _fraction(x: sp.Expr, defined: Mapping[sp.Symbol, sp.Expr]) -> tuple[str, str]:
    """Numerator and denominator in the notation of Lean, from the unsimplified tree.

    Raises TypeError if the tree holds more than sums, products and whole powers.
    """
    if x.is_Symbol and x in defined:
        return _fraction(defined[x], {y: e for y, e in defined.items() if y != x})
    if x.is_Symbol:
        return (
            f"({' '.join(SUPPORTED_VERBS[x.name])})" if x.name in SUPPORTED_VERBS else x.name
        ), "1"
    if x.is_Rational:
        return (str(x.p) if x.p >= 0 else f"({x.p})"), str(x.q)
    if x.is_Pow and x.args[1].is_Integer:
        over, under = _fraction(x.args[0], defined)
        power = int(x.args[1])
        pair = (over, under) if power > 0 else (under, over)
        return pair if abs(power) == 1 else tuple(f"({p}) ^ {abs(power)}" for p in pair)  # type: ignore[return-value]
    if x.is_Mul:
        parts = [_fraction(factor, defined) for factor in x.args]
        return tuple(" * ".join(_factors(side)) for side in zip(*parts, strict=True))  # type: ignore[return-value]
    if x.is_Add:
        parts = [_fraction(term, defined) for term in x.args]
        terms = []
        for number, (over, _) in enumerate(parts):
            others = [under for k, (_, under) in enumerate(parts) if k != number]
            terms.append(" * ".join(_factors((over, *others))))
        return f"({' + '.join(terms)})", " * ".join(_factors(under for _, under in parts))
    raise TypeError(f"no polynomial: {x}")


def _factors(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part != "1"] or ["1"]


def _theorem(name: str, left: str, right: str, step: DerivationStep) -> str:
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", f"{left} {right}"))
    functions = [x for x in words if x in {function for function, _ in SUPPORTED_VERBS.values()}]
    plain = [x for x in words if x not in functions]
    binders = [f"({' '.join(functions)} : Int → Int)"] if functions else []
    binders += [f"({' '.join(sorted(plain))} : Int)"] if plain else []
    return (
        f"/-- {step} -/\ntheorem {name} {' '.join(binders)} :\n"
        f"    {left}\n    = {right} := by\n  grind\n"
    )
