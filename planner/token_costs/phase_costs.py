"""Inputs of a budget: costs of the phases of a model's life, and the tokens served.

Until training layouts are planned, a chip delivers its dense peak times a share (MFU): given, or
that of a published run of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from operator import itemgetter

import numpy as np

from planner.catalogue.chips import chip
from planner.catalogue.listed_prices import Price, chip_rent
from planner.catalogue.ranges import ListedRange, mfu_range, no_range, rent_range
from planner.catalogue.systems import System
from planner.catalogue.training.training_runs import TrainingRate, training_rate
from planner.laws.law_forms import reward_arithmetic
from planner.protocol.plan import DataSource
from planner.text.errors import FieldError, errors_at
from planner.token_costs import spending as records
from planner.token_costs.phase_keys import YEAR, Inference, Phase, Reward

PHASES = ("pretrain", "rl", "inference")
HOUR = 3600.0
MAX_FLOP = 1e40
FORWARD = 2.0  # flop/(param*token): a multiply and an add; backward is twice that
MAX_LOG_GROWTH = 300.0  # ln of the growth over a lifetime above which demand counts as infinite
# Change over a lifetime below which a demand is that of the middle of the life.
STEADY_DEMAND_TOLERANCE = 1e-5
REWARD = "scalerl-2025"  # the sigmoid of reward over arithmetic
SUFFIX = {"pretrain": "pt", "rl": "rl", "inference": "inf"}  # of a phase's symbols in `formulas`


@dataclass(frozen=True)
class PlannedSlope:
    """A quantity below a phase: its path, value and unit, and d ln(price of a FLOP) / d ln(it)."""

    path: str
    value: float
    unit: str
    slope: float


@dataclass(frozen=True, eq=False)
class SizedShare:
    """Shares of the peak (n,) that models of these sizes (n,) [param] reach, the smallest first.

    Attributes:
        size: At which the share of the phase is exact [param].
        growth: d ln(share) / d ln(size) there, as the first-order conditions take it.
        trend: The same over all the sizes.
        slopes: What one percent of a quantity of the machine does, the layout held.
    """

    size: float
    sizes: np.ndarray
    shares: np.ndarray
    growth: float = 0.0
    trend: float = 0.0
    slopes: tuple[PlannedSlope, ...] = ()

    def at(self, n_active: np.ndarray | float) -> np.ndarray:
        """Shares at any sizes: lines in logarithms between those laid out, level beyond."""
        return np.exp(np.interp(np.log(n_active), np.log(self.sizes), np.log(self.shares)))


@dataclass(frozen=True)
class PhaseCost:
    """Arithmetic of one phase, the chip it runs on, and its price.

    Attributes:
        arithmetic: [flop/(param*token)]
        mfu: Share of the dense peak that is used; None where FLOP alone are counted.
        usd_per_flop: Rent over what a chip does in that time [USD/flop]; None without a chip.
        rate: The published run that the share was taken from; None where it was given.
        duration: Time the phase may take [s]; None where none is given.
        sized: How the share follows the size, where layouts are planned; None where it does not.
    """

    name: str
    arithmetic: float
    mfu: float | None = None
    usd_per_flop: float | None = None
    system: System | None = None
    price: Price | None = None
    dtype: str = "bf16"
    rate: TrainingRate | None = None
    duration: float | None = None
    sized: SizedShare | None = None

    def smooth(self) -> PhaseCost:
        """Phase cost with the trend of its share over all sizes, for sizes far from the plan."""
        sized = self.sized
        return self if sized is None else replace(self, sized=replace(sized, growth=sized.trend))

    def dearer(self, n_active: np.ndarray | float) -> np.ndarray | float:
        """Price of a FLOP for a model of some size, relative to its price in the plan [1]."""
        return 1.0 if self.sized is None or self.mfu is None else self.mfu / self.sized.at(n_active)

    def size_power(self) -> float:
        """d ln(cost) / d ln(size) of the phase at fixed tokens."""
        return 1.0 if self.sized is None else 1.0 - self.sized.growth

    def at_one(self) -> float:
        """Logarithm of the relative FLOP price extrapolated to one parameter [-]."""
        return 0.0 if self.sized is None else self.sized.growth * math.log(self.sized.size)

    def weight(self, in_usd: bool) -> float:
        """Cost of one FLOP of this phase: in USD, or in FLOP of the peak that is paid for."""
        if in_usd:
            if self.usd_per_flop is None:
                raise FieldError((f"phases.{self.name}", "a cost in USD needs system and mfu"))
            return self.usd_per_flop
        return 1.0 if self.mfu is None else 1 / self.mfu

    @property
    def delivered(self) -> float | None:
        """Arithmetic delivered per chip [flop/(chip*s)]; None without a chip."""
        if self.system is None or self.mfu is None:
            return None
        from formulas.scaling.budget_outputs import delivered_arithmetic

        peak = self.system.chip.peak(self.dtype)
        return float(delivered_arithmetic.numpy()(u_peak=self.mfu, F=peak, n_chips=1.0))

    @property
    def borrowed(self) -> str | None:
        """The chip whose MFU is taken in place of this one's, if any."""
        if self.rate is None or self.system is None or self.rate.chip == self.system.chip.name:
            return None
        return self.rate.chip

    def machine(self) -> records.PhaseMachine:
        """Machine and prices of the phase, for the answer."""
        return records.PhaseMachine(
            system=self.system.name if self.system else None,
            chip=self.system.chip.name if self.system else None,
            dtype=self.dtype if self.system else None,
            mfu=self.mfu,
            usd_per_chip_hour=self.price.value * HOUR if self.price else None,
            usd_per_flop=self.usd_per_flop,
        )


def symbol_values(
    phases: Mapping[str, PhaseCost], n_active: float, tokens: records.PhaseTokens
) -> dict[str, float]:
    """{symbol: value} of `formulas.scaling.budget_outputs` at a size [param] and tokens [token].

    A phase that is absent takes no tokens; rates and prices that nobody gave are not numbers.
    """
    rl = phases["rl"].arithmetic if "rl" in phases else 3 * FORWARD
    values = {"N_active": n_active, "c_fwd": FORWARD, "c_rl": rl}
    for name, end in SUFFIX.items():
        phase = phases.get(name)
        rates: tuple[float | None, ...] = (0.0, 1.0, 1.0, 0.0)
        if phase is not None:
            share = 1.0 if phase.mfu is None else phase.mfu
            rates = (getattr(tokens, name), share, phase.delivered, phase.usd_per_flop)
        pairs = zip("Duvw", rates, strict=True)
        values |= {f"{key}_{end}": math.nan if x is None else x for key, x in pairs}
    return values


def spending(values: Mapping[str, float]) -> records.LifeSpending:
    """USD, FLOP done, FLOP of the peak paid for and chip hours, of each phase and in all.

    Every column is one equation of `formulas.scaling.budget_outputs`: of a phase, with its tokens
    alone. None where a phase has no chip or no price.
    """
    from formulas.scaling import budget_outputs as outputs

    columns = (
        (outputs.life_cost, "w", 1.0), (outputs.done_arithmetic, "", 1.0),
        (outputs.paid_arithmetic, "u", 1.0), (outputs.chip_time, "v", HOUR),
    )  # fmt: skip
    alone = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]], dtype=float)
    tokens = {f"D_{end}": values[f"D_{end}"] * alone[i] for i, end in enumerate(SUFFIX.values())}
    rows = []
    for equation, key, unit in columns:
        function = equation.numpy()
        unknown = [bool(key) and math.isnan(values[f"{key}_{end}"]) for end in SUFFIX.values()]
        case = {**values, **tokens}
        numbers = function(**{x: np.nan_to_num(case[x], nan=1.0) for x in function.kernel.names})
        pairs = zip(np.broadcast_to(numbers, 4), (*unknown, any(unknown)), strict=True)
        rows.append([None if missing else float(number) / unit for number, missing in pairs])
    return records.LifeSpending(*(records.Spending(*row) for row in zip(*rows, strict=True)))


def phase_costs(
    phases: Mapping[str, Phase], k: float
) -> tuple[dict[str, PhaseCost], tuple[str, ...], tuple[DataSource, ...]]:
    """Phase costs of a budget by name, warnings on their prices, and data sources.

    They run on the systems whose FLOP cost least at the share given; without one, FLOP alone count.
    """
    arithmetic = {"pretrain": 3 * FORWARD, "rl": k, "inference": FORWARD}
    costs, data = {}, []
    for name, phase in phases.items():
        if not phase.systems() or phase.mfu is None:
            costs[name] = PhaseCost(name, arithmetic[name], phase.mfu)
            continue
        unpriced = f"phases.{name}.system"
        cost = costs[name] = best_phase(name, phase, arithmetic[name], unpriced=unpriced)
        assert cost.system is not None
        peak = f"{name}: chip {cost.system.chip.name}, {cost.dtype} peak"
        data += [DataSource(peak, *cost.system.source_of_peak(cost.dtype)), price_source(cost)]
    today = datetime.now(UTC).date()
    warnings = [each for cost in costs.values() for each in price_warnings(cost, today)]
    return costs, tuple(dict.fromkeys(warnings)), tuple(data)


def price_source(cost: PhaseCost) -> DataSource:
    """Data source of the price of a phase's chip; only for a phase with a chip."""
    assert cost.system is not None
    assert cost.price is not None
    what = f"{cost.name}: price of {cost.system.chip.name}"
    return DataSource(what, cost.price.source, cost.price.as_of)


def price_warnings(cost: PhaseCost, today: date) -> list[str]:
    """A sentence where the price of a phase is old."""
    sentence = cost.price.warning(today) if cost.price is not None else None
    return [f"{cost.name}: {sentence}"] if sentence else []


def best_phase(
    name: str,
    phase: Phase,
    arithmetic: float,
    *,
    unpriced: str,
    sparse: bool = False,
    duration: float | None = None,
) -> PhaseCost:
    """The phase on the system whose FLOP costs least.

    That is exact: a phase's cost is proportional to it, and no other phase knows of it. Where no
    share of the peak is given it is that of a published run on dense or `sparse` models.

    Raises FieldError at `unpriced` where a system has no price, at the phase's `mfu` where no run
    is known.
    """
    from formulas.scaling.budget_outputs import flop_price

    price_of_flop, costs = flop_price.numpy(), []
    for system in phase.systems():
        with errors_at(unpriced):
            price = chip_rent(system.chip.name, phase.price, system.price)
        peak, rate, mfu = system.chip.peak(phase.dtype), None, phase.mfu
        if mfu is None:
            with errors_at(f"phases.{name}.mfu"):
                rate = training_rate(system.chip, phase.dtype, sparse=sparse)
            mfu = rate.mfu(chip(rate.chip).peak(phase.dtype))
        per_flop = float(price_of_flop(p_chip=price.value, u_peak=mfu, F=peak, n_chips=1.0))
        costs.append((per_flop, PhaseCost(name, arithmetic, mfu, per_flop, system, price,
                                          phase.dtype, rate, duration)))  # fmt: skip
    return min(costs, key=itemgetter(0))[1]


def served_tokens(demand: Inference) -> records.ServedTokens:
    """Tokens of a demand: given, or a rate over a lifetime."""
    likely = 1 - demand.obsolescence
    if demand.rate is None or demand.lifetime is None:
        tokens = demand.tokens or 0.0
        return records.ServedTokens(tokens, likely * tokens)
    from formulas.scaling.token_budgets import expected_tokens

    fall = (math.log1p(demand.discount) - math.log1p(demand.growth)) / YEAR
    growth = -math.log1p(demand.growth) / YEAR
    counted = _integral(demand.rate, demand.lifetime, fall)
    total = _integral(demand.rate, demand.lifetime, growth)
    once = float(expected_tokens.numpy()(p_ahead=likely, X_tok=counted, t_life=1.0))
    return records.ServedTokens(total if math.isfinite(total) else None, once)


def _integral(rate: float, lifetime: float, fall: float) -> float:
    """Tokens of a rate that falls (or rises) exponentially; infinite where it has no end."""
    from formulas.scaling.token_budgets import discounted_tokens, serving_tokens

    if math.isinf(lifetime):
        return rate / fall if fall > 0 else math.inf
    if -fall * lifetime > MAX_LOG_GROWTH:
        return math.inf
    if abs(fall * lifetime) < STEADY_DEMAND_TOLERANCE:
        # 1 - exp would lose its digits; the middle is the mean to 4e-12, the square over 24.
        middle = rate * math.exp(-fall * lifetime / 2)
        return float(serving_tokens.numpy()(X_tok=middle, t_life=lifetime))
    # A rate that rises is one that fades, seen from the end of the life.
    last = rate if fall > 0 else rate * math.exp(-fall * lifetime)
    return float(discounted_tokens.numpy()(X_tok=last, t_life=lifetime, delta_t=abs(fall)))


def rl_flop_needed(reward: Reward) -> float:
    """Arithmetic of reinforcement learning that a reward needs [flop], from the sigmoid.

    Raises FieldError for a reward that is not between the first one and the ceiling.
    """
    values = {"R_start": reward.start, "C_mid": reward.middle, "gamma_rl": reward.steepness}
    if reward.most is not None:
        values["R_most"] = reward.most
    with np.errstate(over="ignore"):  # what overflows is refused below
        flop = reward_arithmetic(reward.needed, REWARD, **values)
    if not flop < MAX_FLOP:
        raise FieldError(("rl.reward", f"this reward needs over {MAX_FLOP:g} FLOP: out of reach"))
    return flop


def listed_of_phases(phases: object, path: str) -> ListedRange:
    """Range in the catalogues of a phase's quantity: rents, or the MFU of training."""
    name, _, key = path.removeprefix("phases.").partition(".")
    phase = getattr(phases, name, None) if path.startswith("phases.") else None
    if not isinstance(phase, Phase):
        raise no_range(path)
    if key == "mfu":
        return mfu_range(phase.dtype, path)
    return rent_range(phase.systems() if key == "price" else (), path)
