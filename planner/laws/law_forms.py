"""Forms of scaling laws: their equation, their monomials, and the choices they cannot express.

The equations stand in `formulas` and are compiled on first use. What of an equation is a floor and
what are monomials, in active parameters and tokens at a given sparsity, is read off the equation.
Beside them stands ScaleRL's sigmoid, the reward over the arithmetic of reinforcement learning: a
reward that is required bounds arithmetic from below, and is no monomial in the other choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.store import cached_program
from formulas.numerics.trees import ScalarProgram
from planner.catalogue.scaling_laws import law, law_names
from planner.text.errors import CatalogueError, FieldError

if TYPE_CHECKING:
    from sympy import Basic

    from formulas.algebra.equation import Equation
    from formulas.numerics.evaluate import Kernel


CoefficientValues = Mapping[str, float]

DENSE_ONLY = "it was fitted on dense models and knows no sparsity"
FRESH_TOKENS_NOTE = "it was fitted on fresh tokens and knows no repetition"
CHOICES = ("N_active", "D_pt", "D_rl")  # in which a term may be a monomial
NO_RL = "it has no term for reinforcement learning"


@dataclass(frozen=True)
class Form:
    """A form of law.

    Attributes:
        equation: `module.name` of the equation of the loss in `formulas.scaling`; None where it
            gives no loss.
        lacks: {choice: why the form cannot express it}: `loss`, `size`, `tokens`, `sparsity`,
            `repetition`, `rl`.
        fresh: The equation that it is on fresh tokens, where that is another.
    """

    equation: str | None
    lacks: Mapping[str, str]
    fresh: str | None = None


def get_form(name: str) -> Form:
    """A form by name; raises CatalogueError for one that is in no table of this module."""
    if name not in FORMS:
        raise CatalogueError.unknown("form of law", name, FORMS)
    return FORMS[name]


def form_equation(form: str, *, fresh: bool = False) -> Equation | None:
    """The equation of a form's loss, or on fresh tokens; None where the form gives none."""
    place = (fresh and get_form(form).fresh) or get_form(form).equation
    if place is None:
        return None
    module, _, name = place.partition(".")
    equation: Equation = getattr(import_module(f"formulas.scaling.{module}"), name)
    return equation


@cache
def form_kernel(form: str) -> Kernel | None:
    """The compiled equation of a form's loss; None where the form gives none."""
    equation = form_equation(form)
    return None if equation is None else equation.numpy().kernel


@cache
def form_monomials(form: str) -> ScalarProgram:
    """Cached program of the floor and the monomials of a form, by name; no outputs without them."""
    return cached_program(f"law-{form}", lambda: _monomials_read(form_equation(form, fresh=True)))


def _monomials_read(equation: Equation | None) -> ScalarProgram:
    """Split an equation into its floor, its outer power and its monomials.

    A term is a monomial if its slopes in logarithms are the same everywhere: they are its
    exponents, and its coefficient is its value at one parameter and one token.
    """
    from sympy import Add, Pow, S, diff, expand, expand_log, log

    from formulas.nomenclature.symbols import SYMBOLS
    from formulas.numerics.evaluate import expand_all, scalar_program
    from formulas.numerics.expressions import put

    choices = {name: SYMBOLS[name] for name in CHOICES}
    whole = S.Zero if equation is None else expand_all(equation.rhs, equation.where)
    outer = isinstance(whole, Pow) and isinstance(whole.base, Add)
    inner, power = whole.as_base_exp() if outer else (whole, S.One)
    parts = Add.make_args(inner)
    moved = [part for part in parts if part.has(*choices.values())]
    read = {"floor": Add(*(part for part in parts if part not in moved)), "power": power}
    slopes: list[Basic] = []
    for number, part in enumerate(moved):
        logarithm = expand_log(log(part), force=True)
        of_part = [expand(x * diff(logarithm, x)) for x in choices.values()]
        read[f"coefficient {number}"] = put(part, dict.fromkeys(choices.values(), S.One))
        read |= {f"{name} {number}": slope for name, slope in zip(CHOICES, of_part, strict=True)}
        slopes += of_part
    if not moved or any(slope.has(*choices.values()) for slope in slopes):
        read = {}
    return scalar_program((), read, {x.name for each in read.values() for x in each.free_symbols})


def form_terms(form: str, values: CoefficientValues) -> Terms | None:
    """A form as a floor and monomials, at coefficients and a sparsity; None where it has none."""
    read = form_monomials(form)(values)
    if not read:
        return None
    names = ("coefficient", *CHOICES)
    count = sum(name.startswith("coefficient") for name in read)
    terms = (Term(*(read[f"{name} {number}"] for name in names)) for number in range(count))
    return Terms(read["floor"], tuple(terms), read["power"])


_DENSE = {"sparsity": DENSE_ONLY, "repetition": FRESH_TOKENS_NOTE, "rl": NO_RL}
_SPARSE = {"repetition": FRESH_TOKENS_NOTE, "rl": NO_RL}
_ALLOCATION = {
    "loss": "it says how to split a given arithmetic and gives no loss away from that split",
    **_DENSE,
}
_ONE_NUMBER = "it was fitted at one number of training tokens and cannot weigh size against tokens"
_ARITHMETIC = dict.fromkeys(("size", "tokens"), "it knows the arithmetic alone")
_WITHOUT_LIMIT = "it is the loss with the other of size and tokens without limit"

FORMS: Mapping[str, Form] = {
    "chinchilla": Form("power_laws.chinchilla_loss", _DENSE),
    "repetition": Form("repetition.repeated_loss", {"sparsity": DENSE_ONLY, "rl": NO_RL},
                       "power_laws.chinchilla_loss"),
    "reinforced": Form("power_laws.reinforced_loss",
                       {"sparsity": DENSE_ONLY, "repetition": FRESH_TOKENS_NOTE}),
    "kaplan": Form("kaplan_law.kaplan_loss", _DENSE),
    "power-of-size": Form("kaplan_law.kaplan_size_loss", {"tokens": _WITHOUT_LIMIT, **_DENSE}),
    "power-of-tokens": Form("kaplan_law.kaplan_data_loss", {"size": _WITHOUT_LIMIT, **_DENSE}),
    "power-of-arithmetic": Form("kaplan_law.kaplan_arithmetic_loss", _ARITHMETIC | _DENSE),
    "clark": Form("routed_laws.routed_loss", {"tokens": _ONE_NUMBER, **_SPARSE}),
    "routed": Form("routed_laws.routed_chinchilla_loss", _SPARSE),
    "joint": Form("routed_laws.joint_loss", _SPARSE),
    "krajewski": Form("routed_laws.fine_grained_loss", _SPARSE),
    "abnar": Form("routed_laws.sparse_loss", _SPARSE),
    "allocation": Form(None, _ALLOCATION),
    "ratio": Form(None, _ALLOCATION),
}  # fmt: skip


MEANING = {  # of the coefficients of a reward
    "R_start": "the reward before reinforcement learning",
    "R_most": "the reward that nothing exceeds",
    "C_mid": "the arithmetic at which half of the gain is reached [FLOP]",
    "gamma_rl": "the exponent of the gain",
}


def reward_arithmetic(reward: float, name: str = "scalerl-2025", **coefficients: float) -> float:
    """Arithmetic [FLOP] of reinforcement learning that a reward needs, by a sigmoid of its name.

    Args:
        coefficients: `C_mid` [FLOP] and `R_start`, which no catalogue can know, and any coefficient
            to replace.

    Raises CatalogueError if no law of reward is called so; FieldError if a coefficient is neither
    known nor given, or the reward is not between the one at the start and the ceiling.
    """
    from formulas.scaling.power_laws import rl_arithmetic_needed

    if name not in law_names("sigmoid"):
        raise CatalogueError.unknown("law of reward", name, law_names("sigmoid"))
    values = {**law(name).values, **coefficients}
    lacking = [x for x in MEANING if x not in values]
    faults = [(f"rl.{x}", f"{name} does not say {MEANING[x]}; give it") for x in lacking]
    others = [x for x in coefficients if x not in MEANING]
    faults += [(f"rl.{x}", "no such coefficient of a reward") for x in others]
    if faults:
        raise FieldError(*faults)
    low, high = values["R_start"], values["R_most"]
    if not 0 <= low < high:
        raise FieldError(("rl.R_start", f"expected less than the ceiling {high:g}, got {low:g}"))
    if not low < reward < high:
        raise FieldError(
            ("rl.reward", f"{name} leads from {low:g} towards {high:g}, which it never "
                          f"reaches; {reward:g} is not between them")
        )  # fmt: skip
    return float(rl_arithmetic_needed.numpy("R_pass")(reward, **values))


ArrayOrFloat = np.ndarray | float


@dataclass(frozen=True)
class Term:
    """`coefficient * n**size * d**tokens * d_rl**rl`, in active parameters and in tokens.

    Attributes:
        coefficient: Value at one parameter, one token and one token of reinforcement learning.
        size, tokens, rl: Exponents of active parameters, of tokens of pre-training and of
            reinforcement learning; 0 where the term does not depend on it.
    """

    coefficient: float
    size: float
    tokens: float
    rl: float = 0.0

    def __call__(self, n: ArrayOrFloat, d: ArrayOrFloat, d_rl: ArrayOrFloat = 1.0) -> np.ndarray:
        """The monomial at sizes and tokens, broadcast."""
        of_size = self.coefficient * np.asarray(n, float) ** self.size
        return of_size * np.asarray(d, float) ** self.tokens * np.asarray(d_rl, float) ** self.rl


@dataclass(frozen=True)
class Terms:
    """A law, or its tangent at a point, as a floor and monomials.

    Attributes:
        floor: Loss [nat] that no size and no tokens remove, at the sparsity asked for.
        terms: The monomials.
        power: Exponent outside the sum; 1 but for Kaplan's form.
    """

    floor: float
    terms: tuple[Term, ...]
    power: float = 1.0

    def loss(self, n: ArrayOrFloat, d: ArrayOrFloat, d_rl: ArrayOrFloat = 1.0) -> np.ndarray:
        """The loss [nat] that floor and monomials add up to."""
        return self.floor + self.excess(n, d, d_rl)

    def excess(self, n: ArrayOrFloat, d: ArrayOrFloat, d_rl: ArrayOrFloat = 1.0) -> np.ndarray:
        """The loss [nat] above the floor, to full precision however small."""
        total = sum(np.asarray(term(n, d, d_rl)) for term in self.terms)
        return np.asarray(total) ** self.power

    def limit(self, loss: float) -> float:
        """Upper limit of the sum of the monomials for a loss [nat]; 0 at the floor."""
        return max(loss - self.floor, 0.0) ** (1 / self.power)
