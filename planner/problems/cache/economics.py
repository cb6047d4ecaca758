"""Cost of storing, fetching and recomputing a KV cache, by the equations of the cache tiers.

A cache question in numbers: the model's cache and arithmetic, the chip, the tiers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from planner.architecture.counts import ModelSizes, abstract_sizes, model_sizes
from planner.architecture.huggingface import read_config
from planner.catalogue import listed_prices, models
from planner.catalogue.systems import System
from planner.problems.cache import plan as records
from planner.problems.cache.question import CacheScenario, CacheTier
from planner.problems.cache.reuse_trace import BlockTrace
from planner.protocol.plan import DataSource
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import resolved_system
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import FieldError, errors_at

FORWARD = 2.0  # flop/(param*token): a multiply and an add
HBM = "HBM"
DRAM = "hgx-host-dram"  # which device of a kind stands for it where the catalogue is asked
OF_KIND = {"dram": DRAM, "flash": "micron-9650-30.7tb"}


@dataclass(frozen=True)
class HeldTier:
    """A tier in base units.

    Args:
        price: of a byte [USD/(byte*s)].
        capacity, read_rate: of one device [byte], [byte/s]; None where it is not known.
        shared: chips that share one device.
        price_from: where the price stands, in words.
    """

    name: str
    kind: str
    price: float
    capacity: float | None
    read_rate: float | None
    shared: int
    price_from: str


@dataclass(frozen=True)
class CacheTask:
    """Cache scenario in numbers: symbols' values for one chip, tiers, price, warnings, sources.

    `values` are those of the equations of `formulas.economics.tiers` with one chip for the domain:
    what a token costs does not depend on how many read it. HBM is the first of the `tiers`.
    """

    values: dict[str, float]
    prefix: float | None
    tiers: tuple[HeldTier, ...]
    price: listed_prices.Price
    warnings: tuple[str, ...]
    data: tuple[DataSource, ...]


def resolve_cache(question: CacheScenario) -> CacheTask:
    """Resolve a cache scenario to numbers; raises InputError for unknown or unsupported values."""
    assert isinstance(question.system, str) or not isinstance(question.system, tuple | File)
    machine = resolved_system(question.system)
    if not isinstance(machine, System):
        raise FieldError(("system", "give the chip: {like: hgx-h200, topology: ...}"))
    counted, source, unread = _counted(question)
    chip, dtype = machine.chip, counted.activation_dtype
    if not chip.computes(dtype):
        words = f"{chip.name} does not multiply in {dtype}; give weights: bf16"
        raise FieldError(("weights", words))
    with errors_at("price"):
        price = listed_prices.chip_rent(chip.name, question.price, machine.price)
    prompt = question.prefix or 1.0
    pairs = sum(c.pairs(prompt) * c.flop_per_pair_prefill for c in counted.caches)
    values = {
        "n_chips": 1.0,
        "p_chip": price.value,
        "D_step": price.value,
        "M": chip.memory,
        "F": chip.peak(dtype),
        "N_active": float(counted.n_active["no_input_embedding"]),
        "c_fwd": FORWARD,
        "e_pf": question.prefill_efficiency,
        "b_kv": counted.kv_bytes_per_token,
        "L_in": prompt,
        # The equation has a mean context of half the prompt; windows and indexers reach less far.
        "a_kv": 2 * pairs / prompt**2 if question.attention else 0.0,
        "t_ans": question.answer,
        "n_share": float(question.sharing),
    }
    if not values["b_kv"]:
        raise FieldError(("model", f"{counted.name} keeps no cache that grows with the context"))
    tiers, notes = _tiers(question)
    hbm = HeldTier(HBM, "hbm", price.value / chip.memory, chip.memory, None, 1, "rent of the chip")
    data = [source, DataSource(f"price of {chip.name}", price.source, price.as_of or None)]
    data += [DataSource(f"tier {each.name}", each.price_from, None) for each in tiers]
    warnings = [*filter(None, [price.warning(date.today())]), *notes, *unread]
    warnings += [IGNORED_NOTE] if question.uncertain is not None else []
    return CacheTask(values, question.prefix, (hbm, *tiers), price, tuple(warnings), tuple(data))


def _counted(question: CacheScenario) -> tuple[ModelSizes, DataSource, tuple[str, ...]]:
    """Model sizes in the requested dtypes, their data source, and warnings on the config."""
    model, weights, kv = question.model, question.weights, question.kv
    name: str | File | None = model.like if isinstance(model, ModelDescription) else model
    if isinstance(model, ModelDescription):
        weights, kv = weights or model.weights, kv or model.kv
        if name is None:
            counted = abstract_sizes(model, weights, kv, model.activations)  # type: ignore[arg-type]
            return counted, DataSource("model", "described in the scenario", None), ()
    assert name is not None
    if isinstance(name, File):
        layers = read_config(name.path)
        data = DataSource(f"model {name.written}", name.written, None)
    else:
        layers, record = models.load(name), models.record(name)
        data = DataSource(f"model {name}", record.source, record.as_of)
    return model_sizes(layers, weights, kv), data, layers.warnings


def _tiers(question: CacheScenario) -> tuple[tuple[HeldTier, ...], list[str]]:
    """Storage tiers except HBM, and notes on them; raises FieldError for a tier without a price."""
    if isinstance(question.tiers, str):
        rows = [CacheTier(like=name, shared=8 if kind == "dram" else 1)
                for kind, name in OF_KIND.items()]  # fmt: skip
        left = len(listed_prices.tier_names()) - len(rows)
        notes = [f"one device stands for each kind; planner catalog tiers lists {left} more"]
    else:
        rows, notes = list(question.tiers), []
    tiers = [
        _tier_of(row, place, isinstance(question.tiers, str)) for place, row in enumerate(rows)
    ]
    names = [each.name for each in tiers]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise FieldError(("tiers", f"two tiers are called {repeated}; give them names"))
    return tuple(tiers), notes


def _tier_of(row: CacheTier, place: int, listed: bool) -> HeldTier:
    """One tier: the catalogue's figures, varied as given."""
    device: listed_prices.Tier | None = (
        listed_prices.tier(row.like) if row.like is not None else None
    )
    kind = device.kind if device else "own"
    capacity = row.capacity or (device.capacity if device else None)
    rate = row.read_rate or (device.read_rate if device else None)
    name = row.name or row.like or f"tier {place + 1}"
    if row.price is not None:
        per_byte, whole = row.price
        price = per_byte if per_byte is not None else (whole or 0.0) / (capacity or 1.0)
        return HeldTier(name, kind, price, capacity, rate, row.shared, "given")
    figure = listed_prices.tier_price(kind)
    if figure is None:
        path = "tiers" if listed else f"tiers.{place}.price"
        words = f"no price of {name} is known; give one, such as $0.10/GB/month"
        raise FieldError((path, words))
    source = f"{figure.source} ({figure.as_of})"
    return HeldTier(name, kind, figure.base, capacity, rate, row.shared, source)


PER_MTOK = 1e6
HOUR = 3600.0


class TokenCosts:
    """Costs of one cached token in every tier [USD/token]."""

    def __init__(self, task: CacheTask) -> None:
        from formulas.economics import tiers as equations

        self._equations = equations
        self.task = task
        self.miss = equations.remake_cost.numpy().at(task.values)
        self.hbm = equations.held_during_answer.numpy().at(task.values)

    def of_tier(self, tier: HeldTier) -> dict[str, float]:
        """Symbols of a tier; one without a known rate is read for nothing."""
        capacity = tier.capacity or 1.0
        values = {**self.task.values, "M_tier": capacity, "p_tier": tier.price * capacity}
        values |= {"C_remake": self.miss, "C_occ": self.hbm}
        # A read costs only the time of the tier.
        rate = tier.read_rate
        values |= {"W_tier": rate or 1.0, "p_read": values["p_tier"] if rate else 0.0}
        return {**values, "C_fetch": self._equations.fetch_cost.numpy().at(values)}

    def option(
        self, tier: HeldTier, hold: float, chance: float, margin: float | None
    ) -> records.TierOption:
        """One tier at one hold time and chance of a hit."""
        equations, values = self._equations, self.of_tier(tier)
        values |= {"t_hold": hold, "p_hit": chance}
        values["C_store"] = equations.store_cost.numpy().at(values)
        store = values["C_store"] / values["n_share"]
        values["C_hit"] = equations.cached_token_floor.numpy().at(values)
        needed = None
        if values["C_fetch"] < self.miss:
            needed = store / (self.miss - values["C_fetch"])
        price = None
        if margin is not None:
            price = equations.price_at_margin.numpy().at({**values, "w_margin": margin})
        return records.TierOption(
            tier=tier.name,
            cost=(store + chance * values["C_fetch"]) * PER_MTOK,
            hit_chance_needed=needed,
            hit=records.HitCost(
                store=store / chance * PER_MTOK,
                fetch=values["C_fetch"] * PER_MTOK,
                hbm=self.hbm / values["n_share"] * PER_MTOK,  # shared with the prefix
                total=values["C_hit"] * PER_MTOK,
                share=values["C_hit"] / self.miss,
            ),
            floor=values["C_hit"] * PER_MTOK,
            price=None if price is None else price * PER_MTOK,
        )

    def economics(self, tier: HeldTier, chips: int) -> records.TierEconomics:
        """Economics of one tier: break-even hold time, storage and fetch cost, fetch time."""
        values = self.of_tier(tier)
        shared = self.task.values["n_share"]
        hold = shared * self._equations.break_even_hold_in_tier.numpy().at(values)
        hourly = self._equations.store_cost.numpy().at({**values, "t_hold": HOUR}) / shared
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
            usd_per_mtok_hour=hourly * PER_MTOK,
            reads_per_hour=hourly / saved if saved > 0 else None,
            fetch=values["C_fetch"] * PER_MTOK,
            fetch_time=fetch,
            ttft_saved=saves,
            price_from=tier.price_from,
        )

    def prefill_time(self, chips: int) -> float | None:
        """Time to recompute the prefix on `chips` chips [s]; None without a prefix."""
        prefix, values = self.task.prefix, self.task.values
        return None if prefix is None else prefix * self.miss / (values["D_step"] * chips)

    def fetch_time(self, tier: HeldTier, chips: int) -> float | None:
        """Fetch time to `chips` chips [s]; 0 from HBM, None without a prefix or a read rate."""
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
    again = chance * costs.miss * PER_MTOK
    best = min(options, key=lambda option: option.cost)
    if best.cost >= again:
        return records.HoldDecision(
            hold=hold, hit=chance, choice="recompute", tier=None, cost=again, recompute=again,
            hit_chance_needed=best.hit_chance_needed, floor=None, price=None, ttft_saved=None,
            options=tuple(options),
        )  # fmt: skip
    tier = next(tier for tier in costs.task.tiers if tier.name == best.tier)
    return records.HoldDecision(
        hold=hold, hit=chance, choice="keep" if tier.name == HBM else "move", tier=tier.name,
        cost=best.cost, recompute=again, hit_chance_needed=best.hit_chance_needed,
        floor=best.floor, price=best.price, ttft_saved=costs.economics(tier, chips).ttft_saved,
        options=tuple(options),
    )  # fmt: skip


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
    store = costs._equations.store_cost.numpy().at({**values, "t_hold": 1.0})
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


def trace_reuse(
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
