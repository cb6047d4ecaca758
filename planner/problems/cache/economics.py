"""What holding, reading back and computing again cost, by the equations of the cache tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.problems.cache import plan as records
from planner.problems.cache.resolve import HBM, CacheTask, HeldTier
from planner.problems.cache.reuse_trace import BlockTrace

if TYPE_CHECKING:
    from formulas.algebra.derivation import Derivation
    from formulas.algebra.equation import Equation

PER_MILLION = 1e6
HOUR = 3600.0


def evaluated(equation: Equation | Derivation, values: Mapping[str, float]) -> float:
    """The number that an equation gives, in its unit."""
    function = equation.numpy()
    return float(function(**{name: values[name] for name in function.kernel.names}))


class TokenCosts:
    """Costs of one cached token in every tier [USD/token]."""

    def __init__(self, task: CacheTask) -> None:
        from formulas.economics import tiers as equations

        self._equations = equations
        self.task = task
        self.miss = evaluated(equations.remake_cost, task.values)
        self.hbm = evaluated(equations.held_during_answer, task.values)

    @property
    def shared_hbm(self) -> float:
        """HBM occupied during the answer, shared by those that have the prefix in common."""
        return self.hbm / self.task.values["n_share"]

    def of_tier(self, tier: HeldTier) -> dict[str, float]:
        """Symbols of a tier; one without a known rate is read for nothing."""
        capacity = tier.capacity or 1.0
        values = {**self.task.values, "M_tier": capacity, "p_tier": tier.price * capacity}
        values |= {"C_remake": self.miss, "C_occ": self.hbm}
        # A read keeps the tier busy and nothing else.
        rate = tier.read_rate
        values |= {"W_tier": rate or 1.0, "p_read": values["p_tier"] if rate else 0.0}
        return {**values, "C_fetch": evaluated(self._equations.fetch_cost, values)}

    def option(
        self, tier: HeldTier, hold: float, chance: float, margin: float | None
    ) -> records.TierOption:
        """One tier at one hold time and chance of a hit."""
        equations, values = self._equations, self.of_tier(tier)
        values |= {"t_hold": hold, "p_hit": chance}
        values["C_store"] = evaluated(equations.store_cost, values)
        store = values["C_store"] / values["n_share"]
        values["C_hit"] = evaluated(equations.cached_token_floor, values)
        needed = None
        if values["C_fetch"] < self.miss:
            needed = store / (self.miss - values["C_fetch"])
        price = None
        if margin is not None:
            price = evaluated(equations.price_at_margin, {**values, "w_margin": margin})
        return records.TierOption(
            tier=tier.name,
            cost=(store + chance * values["C_fetch"]) * PER_MILLION,
            hit_chance_needed=needed,
            hit=records.HitCost(
                store=store / chance * PER_MILLION,
                fetch=values["C_fetch"] * PER_MILLION,
                hbm=self.shared_hbm * PER_MILLION,
                total=values["C_hit"] * PER_MILLION,
                share=values["C_hit"] / self.miss,
            ),
            floor=values["C_hit"] * PER_MILLION,
            price=None if price is None else price * PER_MILLION,
        )

    def economics(self, tier: HeldTier, chips: int) -> records.TierEconomics:
        """A tier by itself: until when it pays, what it costs, how fast it is read."""
        values = self.of_tier(tier)
        shared = self.task.values["n_share"]
        hold = shared * evaluated(self._equations.break_even_hold_in_tier, values)
        hourly = evaluated(self._equations.store_cost, {**values, "t_hold": HOUR}) / shared
        saved = self.miss - values["C_fetch"]
        fetch = self.fetch_time(tier, chips)
        prefill = self.prefill_time(chips)
        saves = None if prefill is None or fetch is None else prefill - fetch
        return records.TierEconomics(
            name=tier.name,
            kind=tier.kind,
            break_even_hold=hold if hold > 0 else None,
            drain_time=tier.capacity / tier.read_rate if tier.capacity and tier.read_rate else None,
            usd_per_gb_hour=tier.price * 1e9 * HOUR,
            usd_per_mtok_hour=hourly * PER_MILLION,
            reads_per_hour=hourly / saved if saved > 0 else None,
            fetch=values["C_fetch"] * PER_MILLION,
            fetch_time=fetch,
            ttft_saved=saves,
            price_from=tier.price_from,
        )

    def prefill_time(self, chips: int) -> float | None:
        """Time to compute the prefix again on so many chips [s]; None without a prefix."""
        prefix, values = self.task.prefix, self.task.values
        return None if prefix is None else prefix * self.miss / (values["D_step"] * chips)

    def fetch_time(self, tier: HeldTier, chips: int) -> float | None:
        """Time to read the prefix back on so many chips [s]; none from HBM."""
        prefix = self.task.prefix
        if prefix is None:
            return None
        if tier.name == HBM:
            return 0.0
        if tier.read_rate is None:
            return None
        return prefix * self.task.values["b_kv"] / (tier.read_rate * chips / tier.shared)


def decision(
    costs: TokenCosts, hold: float, chance: float, margin: float | None, chips: int
) -> records.HoldDecision:
    """Keep, move or recompute: the cheapest at a hold time and a chance of a hit."""
    options = [costs.option(tier, hold, chance, margin) for tier in costs.task.tiers]
    again = chance * costs.miss * PER_MILLION
    best = min(options, key=lambda option: option.cost)
    if best.cost >= again:
        return records.HoldDecision(
            hold=hold, hit=chance, choice="recompute", tier=None, cost=again, recompute=again,
            hit_chance_needed=best.hit_chance_needed, floor=None, price=None, ttft_saved=None,
            options=tuple(options),
        )  # fmt: skip
    tier = next(tier for tier in costs.task.tiers if tier.name == best.tier)
    return records.HoldDecision(
        hold=hold,
        hit=chance,
        choice="keep" if tier.name == HBM else "move",
        tier=tier.name,
        cost=best.cost,
        recompute=again,
        hit_chance_needed=best.hit_chance_needed,
        floor=best.floor,
        price=best.price,
        ttft_saved=costs.economics(tier, chips).ttft_saved,
        options=tuple(options),
    )


def best_lifetime(
    costs: TokenCosts, tier: HeldTier, trace: BlockTrace, block: int
) -> records.TierLifetime:
    """The lifetime that saves most in a tier, exactly: savings jump where a use becomes a hit.

    Between two such lifetimes what is held grows and nothing more is found, so that the best is
    one of them.
    """
    values = costs.of_tier(tier)
    finite = np.sort(trace.needed[np.isfinite(trace.needed)])
    lifetimes = np.unique(finite)
    hits = np.searchsorted(finite, lifetimes, side="right")
    store = evaluated(costs._equations.store_cost, {**values, "t_hold": 1.0})
    stored = trace.stored(lifetimes)
    saved = block * (hits * (costs.miss - values["C_fetch"]) - stored * store)
    uses, tokens = len(trace.blocks), block * len(trace.blocks)
    place = int(np.argmax(saved)) if len(saved) else -1
    if place < 0 or saved[place] <= 0:
        return records.TierLifetime(tier.name, None, 0.0, 0.0, 0.0)
    size = block * values["b_kv"]
    return records.TierLifetime(
        tier=tier.name,
        ttl=float(lifetimes[place]),
        hit_rate=float(hits[place] / uses),
        saved=float(saved[place] / (tokens * costs.miss)),
        bytes=float(stored[place] * size / trace.duration) if trace.duration else 0.0,
    )


def reused(
    costs: TokenCosts, trace: BlockTrace, block: int, lifetimes: Sequence[float],
    capacities: Sequence[int],
) -> records.TraceReuse:  # fmt: skip
    """Hit rates at the lifetimes and capacities asked for, and the best lifetime of each tier."""
    size = block * costs.task.values["b_kv"]
    return records.TraceReuse(
        requests=len(trace.starts),
        blocks=len(trace.blocks),
        block=block,
        duration=trace.duration,
        ttl=tuple(records.LifetimeRate(each, trace.hit_rate(each)) for each in lifetimes),
        lru=tuple(
            records.CapacityRate(each, each * size, trace.hits_within(each)) for each in capacities
        ),
        best_ttl=tuple(best_lifetime(costs, tier, trace, block) for tier in costs.task.tiers),
    )
