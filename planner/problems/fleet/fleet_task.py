"""A fleet question in numbers: models with their demand, pools with their contracts, columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class PoolOffer:
    """A kind of machine: its chips, what each contract costs [USD/(machine*hour)] and its limits.

    None for a contract that is not offered. `lost` is the chance that a spot machine is gone in an
    hour, `redo` the share of a lost machine's work that is done again; `owned` machines are paid
    already.
    """

    name: str
    size: int
    on_demand: float | None = None
    on_demand_most: int | None = None
    reserved: float | None = None
    reserved_most: int | None = None
    spot: float | None = None
    spot_most: int = 0
    lost: float = 0.0
    redo: float = 1.0
    owned: int = 0

    @property
    def start_price(self) -> float:
        """What a machine costs while replicas start on it: the dearest contract that is offered."""
        offered = [p for p in (self.on_demand, self.reserved, self.spot) if p is not None]
        return self.on_demand if self.on_demand is not None else max(offered, default=0.0)


@dataclass(frozen=True)
class FleetColumn:
    """A replica of a model on a pool: its chips, and the requests/s that it serves in its promises.

    `start` are the hours that it takes to start; `p95` is the time to first token that 5 % of its
    requests exceed [s], `spread` the standard deviation of the logarithm of its measured rate over
    this one, by its band: None where the user gave the column.
    """

    model: int
    pool: int
    name: str
    chips: int
    rate: float
    start: float = 0.0
    p95: float | None = None
    spread: float | None = None


@dataclass(frozen=True)
class FleetTask:
    """What is asked, in numbers.

    `demand` is (models, hours) [seq/s]; `windows` are the hours by which a model's work may be
    deferred, 0 where it may not; `tokens` those of a mean request, None where nothing says.
    """

    models: tuple[str, ...]
    pools: tuple[PoolOffer, ...]
    columns: tuple[FleetColumn, ...]
    demand: Array = field(compare=False)
    windows: tuple[int, ...]
    tokens: tuple[float | None, ...]
    spare: int = 0
    headroom: float = 0.0
    starts_paid: bool = True
    spot_share: float = 1.0

    @property
    def hours(self) -> int:
        """Hours of the horizon, which repeats."""
        return int(self.demand.shape[1])

    @cached_property
    def model_of(self) -> Array:
        """The model of each column (C,)."""
        return np.array([c.model for c in self.columns], int)

    @cached_property
    def pool_of(self) -> Array:
        """The pool of each column (C,)."""
        return np.array([c.pool for c in self.columns], int)

    @cached_property
    def rates(self) -> Array:
        """Requests per second of a replica of each column (C,) [seq/s]."""
        return np.array([c.rate for c in self.columns])

    @cached_property
    def starts(self) -> Array:
        """Hours that a replica of each column takes to start (C,)."""
        return np.array([c.start for c in self.columns])

    @cached_property
    def used_chips(self) -> Array:
        """Chips that a replica of each column takes, in whole machines above one."""
        sizes = np.array([self.pools[c.pool].size for c in self.columns], int)
        chips = np.array([c.chips for c in self.columns], int)
        return np.where(chips > sizes, -(-chips // sizes) * sizes, chips)

    @cached_property
    def lost(self) -> Array:
        """The chance that a spot machine of each column's pool is gone in an hour (C,)."""
        return np.array([self.pools[c.pool].lost for c in self.columns])

    @cached_property
    def start_costs(self) -> Array:
        """What starting a replica of each column costs (C,) [USD]."""
        prices = [self.pools[c.pool].start_price / self.pools[c.pool].size for c in self.columns]
        return self.starts_paid * self.starts * self.used_chips * np.array(prices)

    @cached_property
    def most_served(self) -> Array:
        """The most of each model's work that may fall into an hour (models, hours) [seq/s]."""
        rows = [
            sum((np.roll(row, shift) for shift in range(1, window + 1)), row.copy())
            for row, window in zip(self.demand, self.windows, strict=True)
        ]
        return np.array(rows)
