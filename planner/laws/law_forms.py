"""What each form of law can say: its equation, its monomials, and what it has no word for.

The equations stand in `formulas` and are compiled on first use; here is which of them a form
takes and how its coefficients become a floor and monomials at a given sparsity. Beside them stands
ScaleRL's sigmoid, the reward over the arithmetic of reinforcement learning: a reward that is
required bounds arithmetic from below, and is no monomial in the other choices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import log, log10
from typing import TYPE_CHECKING

import numpy as np

from planner.catalogue.scaling_laws import law, law_names
from planner.text.errors import CatalogueError, FieldError

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation
    from formulas.numerics.evaluate import Kernel


Values = Mapping[str, float]

DENSE = "it was fitted on dense models and knows no sparsity"
FRESH = "it was fitted on fresh tokens and knows no repetition"
NO_RL = "it has no term for reinforcement learning"


@dataclass(frozen=True)
class Form:
    """A form of law.

    Attributes
    ----------
    equation : `module.name` of the equation of the loss in `formulas.scaling`; None where it gives
        no loss.
    terms : (coefficients, sparsity) to floor and monomials; None where there are none.
    lacks : {choice: why the form cannot express it}: `loss`, `size`, `tokens`, `sparsity`,
        `repetition`, `rl`.
    """

    equation: str | None
    terms: Callable[[Values, float], Terms] | None
    lacks: Mapping[str, str]


def form_of(name: str) -> Form:
    """A form by name; raises CatalogueError for one that is in no table of this module."""
    if name not in FORMS:
        raise CatalogueError.unknown("form of law", name, FORMS)
    return FORMS[name]


def form_equation(form: str) -> Equation | None:
    """The equation of a form's loss; None where the form gives none."""
    place = form_of(form).equation
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


def _size(x: Values, factor: float = 1.0) -> Term:
    """The term of the size, its coefficient times a factor."""
    return Term(x["A_N"] * factor, -x["alpha_N"], 0.0)


def _tokens(x: Values) -> Term:
    return Term(x["B_D"], 0.0, -x["beta_D"])


def _chinchilla(x: Values, sparsity: float) -> Terms:
    return Terms(x["loss_min"], (_size(x), _tokens(x)))


def _reinforced(x: Values, sparsity: float) -> Terms:
    rl = Term(x["B_rl"], 0.0, 0.0, -x["beta_rl"])
    return Terms(x["loss_min"], (_size(x), _tokens(x), rl))


def _kaplan(x: Values, sparsity: float) -> Terms:
    inner = x["alpha_N"] / x["alpha_D"]
    terms = (Term(x["N_c"] ** inner, -inner, 0.0), Term(x["D_c"], 0.0, -1.0))
    return Terms(0.0, terms, power=x["alpha_D"])


def _power_of_size(x: Values, sparsity: float) -> Terms:
    return Terms(0.0, (Term(x["N_c"] ** x["alpha_N"], -x["alpha_N"], 0.0),))


def _power_of_tokens(x: Values, sparsity: float) -> Terms:
    return Terms(0.0, (Term(x["D_c"] ** x["alpha_D"], 0.0, -x["alpha_D"]),))


def _saturated(x: Values, sparsity: float) -> float:
    """Experts of a routed model of given sparsity, saturated at both ends."""
    experts = 1 + (sparsity - 1) / x["x_routed"]
    start = 1 / (1 / x["E_first"] - 1 / x["E_limit"])
    return 1 / (1 / (experts - 1 + start) + 1 / x["E_limit"])


def _clark(x: Values, sparsity: float) -> Terms:
    saturated = _saturated(x, sparsity)
    slope = x["a_route"] - x["c_route"] * log10(saturated)
    return Terms(0.0, (Term(10 ** x["d_route"] * saturated ** -x["b_route"], -slope, 0.0),))


def _routed(x: Values, sparsity: float) -> Terms:
    saturated, first = _saturated(x, sparsity), x["E_first"]
    below = x["a_route"] - x["c_route"] * log10(first)
    power = (x["a_route"] - x["c_route"] * log10(saturated)) / below
    factor = (saturated / first) ** (x["b_route"] / below)
    size = Term(x["A_N"] * factor ** -x["alpha_N"], -power * x["alpha_N"], 0.0)
    return Terms(x["loss_min"], (size, _tokens(x)))


def _joint(x: Values, sparsity: float) -> Terms:
    saturated = _saturated(x, sparsity)
    size = -(x["alpha_N"] - x["gamma_E"] * log(saturated))
    data = -(x["beta_D"] + x["zeta_E"] * log(saturated))
    of_size = Term(x["A_N"] * saturated ** -x["delta_E"], size, 0.0)
    return Terms(x["loss_min"], (of_size, Term(x["B_D"] * saturated ** x["omega_E"], 0.0, data)))


def _krajewski(x: Values, sparsity: float) -> Terms:
    coarse = x["A_fine"] / x["G_fine"] ** x["gamma_G"] + x["A_N"]
    size = Term(coarse * sparsity ** -x["alpha_N"], -x["alpha_N"], 0.0)
    return Terms(x["loss_min"], (size, _tokens(x)))


def _abnar(x: Values, sparsity: float) -> Terms:
    mixed = Term(x["A_mix"] * sparsity ** (x["delta_S"] - x["gamma_S"]), -x["gamma_S"], 0.0)
    floor = x["loss_min"] + x["A_sigma"] * sparsity ** -x["lambda_S"]
    return Terms(floor, (_size(x, sparsity ** -x["alpha_N"]), _tokens(x), mixed))


_DENSE = {"sparsity": DENSE, "repetition": FRESH, "rl": NO_RL}
_SPARSE = {"repetition": FRESH, "rl": NO_RL}
_ALLOCATION = {
    "loss": "it says how to split a given arithmetic and gives no loss away from that split",
    **_DENSE,
}
_ONE_NUMBER = "it was fitted at one number of training tokens and cannot weigh size against tokens"
_ARITHMETIC = dict.fromkeys(("size", "tokens"), "it knows the arithmetic alone")
_WITHOUT_LIMIT = "it is the loss with the other of size and tokens without limit"

FORMS: Mapping[str, Form] = {name: Form(*row) for name, *row in (
    ("chinchilla", "power_laws.chinchilla_loss", _chinchilla, _DENSE),
    ("repetition", "repetition.repeated_loss", _chinchilla, {"sparsity": DENSE, "rl": NO_RL}),
    ("reinforced", "power_laws.reinforced_loss", _reinforced,
     {"sparsity": DENSE, "repetition": FRESH}),
    ("kaplan", "kaplan_law.kaplan_loss", _kaplan, _DENSE),
    ("power-of-size", "kaplan_law.kaplan_size_loss", _power_of_size,
     {"tokens": _WITHOUT_LIMIT, **_DENSE}),
    ("power-of-tokens", "kaplan_law.kaplan_data_loss", _power_of_tokens,
     {"size": _WITHOUT_LIMIT, **_DENSE}),
    ("power-of-arithmetic", "kaplan_law.kaplan_arithmetic_loss", None, _ARITHMETIC | _DENSE),
    ("clark", "routed_laws.routed_loss", _clark, {"tokens": _ONE_NUMBER, **_SPARSE}),
    ("routed", "routed_laws.routed_chinchilla_loss", _routed, _SPARSE),
    ("joint", "routed_laws.joint_loss", _joint, _SPARSE),
    ("krajewski", "routed_laws.fine_grained_loss", _krajewski, _SPARSE),
    ("abnar", "routed_laws.sparse_loss", _abnar, _SPARSE),
    ("allocation", None, None, _ALLOCATION),
    ("ratio", None, None, _ALLOCATION),
)}  # fmt: skip


MEANING = {  # of the coefficients of a reward
    "R_start": "the reward before reinforcement learning",
    "R_most": "the reward that nothing exceeds",
    "C_mid": "the arithmetic at which half of the gain is reached [FLOP]",
    "gamma_rl": "the exponent of the gain",
}


def reward_arithmetic(reward: float, name: str = "scalerl-2025", **coefficients: float) -> float:
    """Arithmetic [FLOP] of reinforcement learning that a reward needs, by a sigmoid of its name.

    Parameters
    ----------
    coefficients : `C_mid` [FLOP] and `R_start`, which no catalogue can know, and any coefficient to
        replace.

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


Number = np.ndarray | float


@dataclass(frozen=True)
class Term:
    """`coefficient * n**size * d**tokens * d_rl**rl`, in active parameters and in tokens.

    Attributes
    ----------
    coefficient : Value at one parameter, one token and one token of reinforcement learning.
    size, tokens, rl : Exponents of active parameters, of tokens of pre-training and of
        reinforcement learning; 0 where the term does not depend on it.
    """

    coefficient: float
    size: float
    tokens: float
    rl: float = 0.0

    def __call__(self, n: Number, d: Number, d_rl: Number = 1.0) -> np.ndarray:
        """The monomial at sizes and tokens, broadcast."""
        of_size = self.coefficient * np.asarray(n, float) ** self.size
        return of_size * np.asarray(d, float) ** self.tokens * np.asarray(d_rl, float) ** self.rl


@dataclass(frozen=True)
class Terms:
    """A law, or its tangent at a point, as a floor and monomials.

    Attributes
    ----------
    floor : Loss [nat] that no size and no tokens remove, at the sparsity asked for.
    terms : The monomials.
    power : Exponent outside the sum; 1 but for Kaplan's form.
    """

    floor: float
    terms: tuple[Term, ...]
    power: float = 1.0

    def loss(self, n: Number, d: Number, d_rl: Number = 1.0) -> np.ndarray:
        """The loss [nat] that floor and monomials add up to."""
        return self.floor + self.excess(n, d, d_rl)

    def excess(self, n: Number, d: Number, d_rl: Number = 1.0) -> np.ndarray:
        """The loss [nat] above the floor, to full precision however small."""
        total = sum(np.asarray(term(n, d, d_rl)) for term in self.terms)
        return np.asarray(total) ** self.power

    def limit(self, loss: float) -> float:
        """What the sum of the monomials may be at most for a loss [nat]; 0 at the floor."""
        return max(loss - self.floor, 0.0) ** (1 / self.power)
