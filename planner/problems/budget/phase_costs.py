"""What a FLOP of each phase costs, and how many tokens are served: the givens of a budget.

What a phase of training costs: arithmetic over what a chip delivers, at its price.

Until training layouts are planned, a chip delivers its dense peak times a share (MFU): given, or
that of a published run of the same kind. `training_cost` is the one place to change then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from formulas.scaling.token_budgets import discounted_tokens, expected_tokens, serving_tokens
from planner.catalogue.chips import Chip, chip
from planner.catalogue.prices import Price
from planner.catalogue.systems import System
from planner.catalogue.training_runs import TrainingRate, training_rate
from planner.laws.law_forms import reward_law
from planner.problems.budget.phase_keys import YEAR, Inference, Phase, Reward
from planner.text.errors import CatalogueError, FieldError

PHASES = ("pretrain", "rl", "inference")
HOUR = 3600.0
MOST_FLOP = 1e40
FORWARD = 2.0  # flop/(param*token)
ENDLESS = 300.0  # logarithm of a growth beyond which nobody counts
STEADY = 1e-6  # change over a lifetime below which a demand counts as constant


@dataclass(frozen=True)
class PhaseCost:
    """Arithmetic of one phase and its price.

    Attributes
    ----------
    arithmetic
        FLOP per parameter and token.
    mfu
        Share of the dense peak that is used; None where FLOP alone are counted.
    usd_per_flop
        Rent over what a chip does in that time [USD/flop]; None without a chip.
    """

    name: str
    arithmetic: float
    mfu: float | None = None
    usd_per_flop: float | None = None
    system: System | None = None
    price: Price | None = None
    dtype: str = "bf16"

    def weight(self, in_usd: bool) -> float:
        """What one FLOP of this phase counts: in USD, or in FLOP of the peak that is paid for."""
        if in_usd:
            if self.usd_per_flop is None:
                raise FieldError((f"phases.{self.name}", "a cost in USD needs system and mfu"))
            return self.usd_per_flop
        return 1.0 if self.mfu is None else 1 / self.mfu

    def chip_seconds(self, flop: float) -> float | None:
        """Time of one chip for this arithmetic [chip*s]; None without a chip."""
        if self.system is None or self.mfu is None:
            return None
        return flop / (self.mfu * self.system.chip.peak(self.dtype))

    def document(self) -> dict[str, Any]:
        """What the phase runs on and what it pays, for the answer."""
        return {
            "system": self.system.name if self.system else None,
            "chip": self.system.chip.name if self.system else None,
            "dtype": self.dtype if self.system else None,
            "mfu": self.mfu,
            "usd_per_chip_hour": self.price.value * HOUR if self.price else None,
            "usd_per_flop": self.usd_per_flop,
        }


def costs(
    phases: Mapping[str, PhaseCost], n_active: float, tokens: Mapping[str, float]
) -> dict[str, dict[str, float | None]]:
    """USD, FLOP done, FLOP of the peak paid for and chip hours, of each phase and in all."""
    found: dict[str, dict[str, float | None]] = {}
    for name in PHASES:
        phase = phases.get(name)
        flop = phase.arithmetic * n_active * tokens[name] if phase else 0.0
        rate = phase.usd_per_flop if phase else 0.0
        seconds = phase.chip_seconds(flop) if phase else 0.0
        found[name] = {
            "usd": None if rate is None else rate * flop,
            "flop": flop,
            "flop_paid": flop * phase.weight(in_usd=False) if phase else 0.0,
            "chip_hours": None if seconds is None else seconds / HOUR,
        }
    found["total"] = {key: _sum(found[name][key] for name in PHASES) for key in found["rl"]}
    return found


def _sum(parts: Iterable[float | None]) -> float | None:
    """The sum; None where a part is not known."""
    known = list(parts)
    return None if None in known else math.fsum(each for each in known if each is not None)


def phase_costs(
    phases: Mapping[str, Phase], k: float
) -> tuple[dict[str, PhaseCost], tuple[str, ...], list[dict[str, Any]]]:
    """The cost of a FLOP in each phase, warnings, and sources.

    Of several systems the one whose FLOP is cheapest is taken, which is exact: a phase's cost is
    proportional to it, and no other phase knows of it.
    """
    arithmetic = {"pretrain": 3 * FORWARD, "rl": k, "inference": FORWARD}
    found, warnings, data = {}, [], []
    for name, phase in phases.items():
        cost = found[name] = _cheapest(name, phase, arithmetic[name])
        if cost.system is None or cost.price is None:
            continue
        told = cost.price.warning(datetime.now(UTC).date())
        if told:
            warnings.append(f"{name}: {told}")
        chip = cost.system.chip
        entry = chip.figures.get(cost.dtype)
        data.append(
            {"what": f"{name}: chip {chip.name}, {cost.dtype} peak",
             "source": entry.source if entry else "given", "as_of": entry.as_of if entry else ""}
        )  # fmt: skip
        data.append(
            {"what": f"{name}: price of {chip.name}", "source": cost.price.source,
             "as_of": cost.price.as_of}
        )  # fmt: skip
    return found, tuple(dict.fromkeys(warnings)), data


def _cheapest(name: str, phase: Phase, arithmetic: float) -> PhaseCost:
    """The phase on the system whose FLOP costs least; without one, FLOP alone."""
    if not phase.systems() or phase.mfu is None:
        return PhaseCost(name, arithmetic, phase.mfu)
    try:
        prices = [(each, phase.price_of(each)) for each in phase.systems()]
    except CatalogueError as error:
        raise FieldError((f"phases.{name}.system", str(error))) from None
    priced = [
        (price.value / (phase.mfu * system.chip.peak(phase.dtype)), system, price)
        for system, price in prices
    ]
    per_flop, system, price = min(priced, key=lambda each: each[0])
    return PhaseCost(name, arithmetic, phase.mfu, per_flop, system, price, phase.dtype)


@dataclass(frozen=True)
class ServedTokens:
    """Tokens served over a life [token].

    `counted` is what they weigh in the cost: discounted, and times the chance of being served;
    `total` is how many there are if the model is not overtaken.
    """

    counted: float
    total: float


def served(demand: Inference) -> ServedTokens:
    """Tokens of a demand: given, or a rate over a lifetime."""
    kept = 1 - demand.obsolescence
    if demand.rate is None or demand.lifetime is None:
        tokens = demand.tokens or 0.0
        return ServedTokens(kept * tokens, tokens)
    fall = (math.log1p(demand.discount) - math.log1p(demand.growth)) / YEAR
    grown = -math.log1p(demand.growth) / YEAR
    counted = _integral(demand.rate, demand.lifetime, fall)
    total = _integral(demand.rate, demand.lifetime, grown)
    once = expected_tokens.numpy("p_ahead", "X_tok", "t_life")
    return ServedTokens(float(once(kept, counted, 1.0)), total)


def _integral(rate: float, lifetime: float, fall: float) -> float:
    """Tokens of a rate that falls (or rises) exponentially; infinite where it has no end."""
    if math.isinf(lifetime):
        return rate / fall if fall > 0 else math.inf
    if -fall * lifetime > ENDLESS:
        return math.inf
    if abs(fall * lifetime) < STEADY:
        return float(serving_tokens.numpy("X_tok", "t_life")(rate, lifetime))
    fading = discounted_tokens.numpy("X_tok", "t_life", "delta_t")
    # A rate that rises is one that fades, seen from the end of the life.
    last = rate if fall > 0 else rate * math.exp(-fall * lifetime)
    return float(fading(last, lifetime, abs(fall)))


def rl_flop_needed(reward: Reward) -> float:
    """Arithmetic of reinforcement learning that a reward needs [flop], from the sigmoid.

    Raises FieldError for a reward that is not between the first one and the ceiling.
    """
    given: dict[str, Any] = {
        "R_start": reward.start,
        "C_mid": reward.middle,
        "gamma_rl": reward.steepness,
    }
    if reward.most is not None:
        given["R_most"] = reward.most
    with np.errstate(over="ignore"):  # what overflows is refused below
        flop = reward_law(**given).arithmetic(reward.needed)
    if not flop < MOST_FLOP:
        raise FieldError(("rl.reward", f"this reward needs over {MOST_FLOP:g} FLOP: out of reach"))
    return flop


# FLOP per parameter and token: two forward, four backward; attention over the context aside.
PRETRAIN_FLOP = 6.0


@dataclass(frozen=True)
class Trainer:
    """One chip as training uses it.

    Attributes
    ----------
    price
        Rent [USD/(chip*s)].
    mfu
        Share of the dense peak in `dtype` that is used.
    rate
        The published run that the share was taken from; None where it was given.
    """

    chip: Chip
    dtype: str
    mfu: float
    price: float
    rate: TrainingRate | None = None

    @property
    def delivered(self) -> float:
        """Arithmetic of one chip [flop/s]."""
        return self.mfu * self.chip.peak(self.dtype)

    @property
    def usd_per_flop(self) -> float:
        """Price of the arithmetic [USD/flop]."""
        return self.price / self.delivered

    @property
    def borrowed(self) -> str | None:
        """The chip whose MFU is taken in place of this one's own, if any."""
        lent = self.rate is not None and self.rate.chip != self.chip.name
        return self.rate.chip if lent and self.rate is not None else None


@dataclass(frozen=True)
class TrainingCost:
    """Arithmetic [flop], time of all chips together [chip*s] and rent [USD] of one phase."""

    flop: float
    chip_seconds: float
    usd: float

    def chips(self, seconds: float) -> float:
        """Chips that finish in this time."""
        return self.chip_seconds / seconds


def trainer(
    on: Chip, price: float, dtype: str, mfu: float | None, *, sparse: bool = False
) -> Trainer:
    """A chip that trains at a given share of its peak, or at a published run's.

    Raises
    ------
    CatalogueError
        If no share is given and no run of the kind is known, or the chip lacks the dtype.
    """
    if mfu is not None:
        return Trainer(on, dtype, mfu, price)
    rate = training_rate(on, dtype, sparse=sparse)
    return Trainer(on, dtype, rate.mfu(chip(rate.chip).peak(dtype)), price, rate)


def training_cost(
    n_active: float, tokens: float, by: Trainer, flop_per_token: float = PRETRAIN_FLOP
) -> TrainingCost:
    """What it costs to train `n_active` parameters on `tokens`.

    `flop_per_token` counts per parameter: 6 for pre-training, 2 to 6 for reinforcement learning.
    """
    flop = flop_per_token * n_active * tokens
    return TrainingCost(flop, flop / by.delivered, flop * by.usd_per_flop)
