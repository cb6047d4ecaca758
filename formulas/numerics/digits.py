"""Values of an expression at one point: a fraction where it is rational, else many digits.

A point may span eighteen decades, where floats lose every digit of a difference. Here a sum that
cancels more digits than are carried says so instead of answering.

Tolerances of the equations stand first, each with its reason: what counts as equal, near or small.
"""

import operator
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

# Digits carried for irrational values; a sum may cancel a third of them. The search for a branch
# needs little more than the digits of a float, because its result is evaluated again.
WORKING, SEARCHING = 120, 24
DECISIVE = 16 * WORKING  # what agrees to a third of so many is at the step, or is a tie

NOT_SMALL = 0.5  # [1] neglected over kept terms; from this ratio on a document says "not small".

ROUNDING = Fraction(1, 20)  # The lecture rounds in the head: 14.4 is "about 15".

# Largest ratio of a stated to a computed number that counts as near: mental arithmetic in a
# lecture rounds to this extent. From MAX_DISTANCE on its order of magnitude differs.
AGREEMENT_TOLERANCE = Fraction(3, 2)
MAX_DISTANCE = 10

Number: TypeAlias = Any  # Fraction, or mpmath's mpf
Values: TypeAlias = Mapping[sp.Symbol, Number]
AGREE = mpmath.mpf(10) ** -50  # relative: two sides are equal, and so are a limit and its claim
LARGEST_POWER = 4096  # bits of a power that is still worked out as a fraction
SMALL_POWER = 16  # largest exponent computed by multiplication: faster there than a logarithm
TERMS, GROWING = 2000, 50  # of a sum that are added up at most; after which it must fall
RUN = sp.Dummy("run")  # a point's number under this name draws what stands for any function there
LARGEST_EXPONENT = 10**400  # beyond it even the exponent of an exponential has too many digits


class NotRealError(ValueError):
    """The value is not a real number here: why not, and the part that would have to be positive."""

    def __init__(self, part: sp.Basic, reason: str) -> None:
        super().__init__(f"{part} {reason}")
        self.part, self.reason = part, reason


class NoRuleError(TypeError):
    """A kind of node that cannot be evaluated."""


class LostDigitsError(ValueError):
    """The working digits do not decide a value: a sum cancels, or a step is too near.

    Most are met and passed by in a search: the sentence is put together when it is read.
    """

    def __str__(self) -> str:
        return " ".join(map(str, self.args))


UNDETERMINED_RELATION = (NotRealError, ZeroDivisionError, LostDigitsError)


def real_value(x: sp.Basic, values: Values, digits: int = WORKING) -> Number:
    """The value of an expression, or the truth of a relation.

    Raises NotRealError where it is not real; ZeroDivisionError at a pole, or where it is not
    determined; LostDigitsError if the digits do not suffice; NoRuleError if a node has none.
    """
    return _TreeEvaluation(values, precision(digits)).value(x)


def comparable(*numbers: Number, digits: int = WORKING) -> list[Number]:
    """All fractions, or all with digits, so that they can be compared."""
    return _TreeEvaluation({}, precision(digits)).alike(list(numbers))


def agree_to_digits(a: Number, b: Number, digits: int = WORKING, agree: Number = AGREE) -> bool:
    """True if two values read with `digits` digits agree to a share `agree` of the larger."""
    a, b = comparable(a, b, digits=digits)
    if a == b or isinstance(a, Fraction):
        return bool(a == b)
    largest = max(abs(a), abs(b))
    return bool(mpmath.isfinite(largest) and abs(a - b) <= largest * agree)


def in_digits(number: Number, digits: int) -> Number:
    """Convert a fraction, or a number of another precision, to `digits` decimal digits."""
    return _TreeEvaluation({}, precision(digits)).mpf(number)


@cache
def precision(digits: int) -> Any:
    """Return a separate mpmath context with `digits` decimal digits."""
    context = mpmath.mp.clone()
    context.dps = digits
    return context


class _TreeEvaluation:
    """The rules node by node, at one point and precision."""

    def __init__(self, values: Values, context: Any) -> None:
        self.values = values
        self.context = context
        self.lost = context.mpf(10) ** -(context.dps // 3)

    def value(self, x: sp.Basic) -> Number:
        if x.is_Symbol:
            return self.values[x]
        if x.is_Rational:
            return Fraction(int(x.p), int(x.q))
        if isinstance(x, sp.Piecewise):
            return self._piece(x)
        if isinstance(x, sp.Pow):
            return self._power(x)
        if isinstance(x, AppliedUndef):
            return self._any_function(x)
        if isinstance(x, sp.Sum):
            return self._sum_of(x)
        if isinstance(x, sp.Integral):
            return self._integral(x)
        if isinstance(x, sp.Derivative):
            return self._slope(x)
        if x in (sp.true, sp.false):
            return bool(x)
        if isinstance(x, sp.core.relational.Relational):
            return self._holds(x)
        rule = _RULES.get(type(x))
        if rule is not None:
            return rule(self, x, [self.value(part) for part in x.args])
        if x.is_number and not x.free_symbols:
            return self._constant(x)
        raise NoRuleError(f"no rule for {type(x).__name__} in {x}")

    def mpf(self, number: Number) -> Number:
        if isinstance(number, Fraction):
            return self.context.mpf(number.numerator) / number.denominator
        return self.context.mpf(number)

    def alike(self, numbers: list[Number]) -> list[Number]:
        """All fractions, or all with digits."""
        if all(isinstance(number, Fraction) for number in numbers):
            return numbers
        return [self.mpf(number) for number in numbers]

    def sound(self, number: Number) -> Number:
        if self.context.isnan(number):
            raise ZeroDivisionError("not determined: 0/0, or infinite less infinite")
        return number

    def sum(self, x: sp.Basic, parts: list[Number]) -> Number:
        parts = self.alike(parts)
        if isinstance(parts[0], Fraction):
            return sum(parts)
        total = self.sound(sum(parts, self.context.zero))
        if abs(total) < max(map(abs, parts)) * self.lost:
            raise LostDigitsError(x, "cancels")
        return total

    def product(self, _: sp.Basic, parts: list[Number]) -> Number:
        result = Fraction(1)
        for part in self.alike(parts):
            result = part if result == 1 else result * part
        return result if isinstance(result, Fraction) else self.sound(result)

    def exp(self, _: sp.Basic, parts: list[Number]) -> Number:
        if parts[0] == 0:
            return Fraction(1)
        power = self.mpf(parts[0])
        if abs(power) > LARGEST_EXPONENT and self.context.isfinite(power):
            raise LostDigitsError("an exponential is too large")
        return self.context.exp(power)

    def log(self, x: sp.Basic, parts: list[Number]) -> Number:
        if parts[0] == 0:
            raise ZeroDivisionError(f"{x} is infinite")
        if parts[0] < 0:
            raise NotRealError(x.args[0], "is negative under a logarithm")
        return Fraction(0) if parts[0] == 1 else self.context.log(self.mpf(parts[0]))

    def rounded(self, x: sp.Basic, parts: list[Number]) -> Number:
        (part,) = parts
        if not isinstance(part, Fraction):
            near = self.context.nint(part)
            if abs(part - near) <= max(1, abs(part)) * self.lost:
                if self.context.dps < DECISIVE:
                    raise LostDigitsError(x, "is at a step")
                part = near
        up = isinstance(x, sp.ceiling)
        if isinstance(part, Fraction):
            return Fraction(-(-part // 1) if up else part // 1)
        return Fraction(int(self.context.ceil(part) if up else self.context.floor(part)))

    def extreme(self, x: sp.Basic, parts: list[Number]) -> Number:
        return (max if isinstance(x, sp.Max) else min)(self.alike(parts))

    def _power(self, x: sp.Pow) -> Number:
        base, power = self.value(x.args[0]), self.value(x.args[1])
        if base == 0 and power < 0:
            raise ZeroDivisionError(f"{x.args[0]} is zero below a line")
        if base in (0, 1) or power == 0:
            return Fraction(1) if power == 0 or base == 1 else Fraction(0)
        whole = isinstance(power, Fraction) and power.denominator == 1
        if base < 0 and not whole:
            raise NotRealError(x.args[0], "is negative under a root")
        if whole:
            exact = isinstance(base, Fraction)
            bits = max(base.numerator.bit_length(), base.denominator.bit_length()) if exact else 0
            if exact and abs(power) * bits <= LARGEST_POWER:
                return base ** int(power)
            if not exact and abs(power) <= SMALL_POWER:
                return base ** int(power)
            sign = -1 if base < 0 and power % 2 else 1
            base = abs(base)
        else:
            sign = 1
        exponent = self.mpf(power) * self.context.log(self.mpf(base))
        return sign * self.exp(x, [exponent])

    def _piece(self, x: sp.Piecewise) -> Number:
        for value, condition in x.args:
            if self.value(condition):
                return self.value(value)
        raise NotRealError(x, "has no piece that applies")

    def _holds(self, x: sp.Basic) -> bool:
        left, right = self.alike([self.value(side) for side in x.args])
        exact = isinstance(left, Fraction)
        if not exact and abs(left - right) <= max(abs(left), abs(right)) * self.lost:
            if self.context.dps < DECISIVE:
                raise LostDigitsError(x, "is a tie")
            left = right
        return bool(_COMPARE[type(x)](left, right))

    def _any_function(self, x: AppliedUndef) -> Number:
        """A smooth function drawn for its name and this point: of either sign, and not monotone."""
        draw = random.Random(f"{x.func.__name__} {self.values.get(RUN, 0)}")
        at = Fraction(draw.randint(-300, 300), 100)
        for part in x.args:
            at += self.value(part) * Fraction(draw.choice((-1, 1)) * draw.randint(20, 300), 100)
        scale = Fraction(draw.choice((-1, 1)) * draw.randint(20, 99)) * Fraction(10) ** (
            draw.randint(-12, 12)
        )
        bend, tilt = (Fraction(draw.randint(-400, 400), 100) for _ in range(2))
        value = scale * (at**3 + bend * at * at + tilt * at - bend) / (1 + at * at)
        return abs(value) + abs(scale) if x.is_nonnegative else value

    def _sum_of(self, x: sp.Sum) -> Number:
        """Sum term by term; an infinite sum ends once a term is below the working precision."""
        if len(x.limits) > 1:
            raise NoRuleError(f"no rule for a sum over several indices: {x}")
        index, low, high = x.limits[0]
        first, last = (self.value(end) for end in (low, high))
        ends = [end for end in (first, last) if isinstance(end, Fraction)]
        if any(end.denominator != 1 for end in ends):
            raise ZeroDivisionError(f"{x} has no whole number of terms")
        endless = len(ends) < 2
        if not endless and last - first > TERMS:
            raise LostDigitsError(x, "has too many terms")
        total: Number = Fraction(0)
        sizes = []
        for at in range(int(first), int(first) + TERMS if endless else int(last) + 1):
            values = {**self.values, index: Fraction(at)}
            term = _TreeEvaluation(values, self.context).value(x.function)
            total = sum(self.alike([self.mpf(total) if endless else total, term]))
            sizes.append(self.mpf(abs(term)))
            if len(sizes) == GROWING and endless and sizes[-1] >= sizes[0] > 0:
                break
            if endless and term and sizes[-1] < abs(self.mpf(total)) * self.context.eps:
                return self.mpf(total)
        if endless and sizes[-1] >= sizes[len(sizes) // 2]:
            raise NotRealError(x, "does not converge")
        if endless:
            raise ZeroDivisionError(f"{x} converges too slowly to be determined")
        return total

    def _integral(self, x: sp.Integral) -> Number:
        """By quadrature; not determined where its own estimate of the error is too large."""
        if len(x.limits) > 1 or len(x.limits[0]) < 3:
            raise NoRuleError(f"no rule for this kind of integral: {x}")
        variable, *ends = x.limits[0]
        low, high = (self.mpf(self.value(end)) for end in ends)

        def height(at: Number) -> Number:
            values = {**self.values, variable: at}
            return self.mpf(_TreeEvaluation(values, self.context).value(x.function))

        total, error = self.context.quad(height, [low, high], error=True)
        if not error <= abs(total) * AGREE / 100:
            raise ZeroDivisionError(f"{x} is not determined by quadrature")
        return self.sound(total)

    def _slope(self, x: sp.Derivative) -> Number:
        done = x.doit()
        if done.has(sp.Derivative):
            raise NoRuleError(f"no rule for {x}")
        return self.value(done)

    def special(self, x: sp.Basic, parts: list[Number]) -> Number:
        """A function that the library of digits knows by SymPy's own name."""
        value = getattr(self.context, x.func.__name__.lower())(*map(self.mpf, parts))
        if not self.context.isfinite(value) or value.imag:
            raise NotRealError(x, "is not real")
        return self.sound(value.real)

    def _constant(self, x: sp.Basic) -> Number:
        if x.is_infinite:
            return self.context.inf if x.is_extended_positive else -self.context.inf
        if not x.is_extended_real:
            raise NotRealError(x, "is not real")
        return self.context.mpf(str(sp.N(x, self.context.dps)))


SPECIAL = (
    *(sp.sin, sp.cos, sp.tan, sp.atan, sp.sinh, sp.cosh, sp.tanh, sp.asinh, sp.atanh),
    *(sp.gamma, sp.factorial, sp.binomial, sp.erf, sp.erfc, sp.LambertW),
)
_COMPARE: Mapping[type, Callable[[Number, Number], Any]] = {
    sp.StrictLessThan: operator.lt,
    sp.LessThan: operator.le,
    sp.StrictGreaterThan: operator.gt,
    sp.GreaterThan: operator.ge,
    sp.Equality: operator.eq,
    sp.Unequality: operator.ne,
}
_RULES: Mapping[type, Callable[[_TreeEvaluation, sp.Basic, list[Number]], Number]] = {
    sp.Add: _TreeEvaluation.sum,
    sp.Mul: _TreeEvaluation.product,
    sp.Max: _TreeEvaluation.extreme,
    sp.Min: _TreeEvaluation.extreme,
    sp.exp: _TreeEvaluation.exp,
    sp.log: _TreeEvaluation.log,
    sp.ceiling: _TreeEvaluation.rounded,
    sp.floor: _TreeEvaluation.rounded,
    sp.Abs: lambda _, __, parts: abs(parts[0]),
    sp.And: lambda _, __, parts: all(parts),
    sp.Or: lambda _, __, parts: any(parts),
    sp.Not: lambda _, __, parts: not parts[0],
    **dict.fromkeys(SPECIAL, _TreeEvaluation.special),
}
