"""A fleet question in numbers: models with their demand, pools with their contracts, columns."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class PoolOffer:
    """Machine type: its chips, the price of each contract [USD/(machine*hour)] and its limits.

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
        """Price of a machine while replicas start on it: on demand, else the dearest offered."""
        offered = [p for p in (self.on_demand, self.reserved, self.spot) if p is not None]
        return self.on_demand if self.on_demand is not None else max(offered, default=0.0)


@dataclass(frozen=True)
class FleetColumn:
    """A replica of a model on a pool: its chips, and the requests/s that it serves in its promises.

    `start` are the hours that it takes to start; `p95` is the time to first token that 5 % of its
    requests exceed [s], `spread` the standard deviation of the logarithm of its measured rate over
    this one, by its band: None where the user gave the column, as `left`, what one benchmark run
    leaves of it. `slack` is what its promises leave for a network between a request and it [s];
    `phase` is prefill or decode where it does that alone. `cell` are the numbers of its model and
    its pool in the scenario, where regions number them anew. `layout` is what columns that differ
    in their load alone share; empty where no others have that of this one.
    """

    model: int
    pool: int
    name: str
    chips: int
    rate: float
    start: float = 0.0
    p95: float | None = None
    spread: float | None = None
    slack: float = math.inf
    phase: str = ""
    left: float | None = None
    cell: tuple[int, int] | None = None
    layout: str = ""


@dataclass(frozen=True)
class Route:
    """Requests of one model that replicas of another may serve, with the added latency [s].

    By replicas that do all of a request, or with `pool` by some that prefill and some that decode
    there.
    """

    origin: int
    site: int
    latency: float = 0.0
    pool: int | None = None


@dataclass(frozen=True)
class ServingSite:
    """Replicas of a model with slack for a latency [s]; their service is counted together.

    `flows` are the routes that it serves; none where it serves the model's own demand. A `phase` is
    that of replicas of one pool.
    """

    model: int
    latency: float = 0.0
    flows: tuple[int, ...] = ()
    phase: str = ""
    pool: int | None = None


@dataclass(frozen=True)
class FleetTask:
    """Instance of a fleet question in numbers.

    `demand` is (models, hours) [seq/s]; `windows` are the hours by which a model's work may be
    deferred, 0 where it may not; `tokens` those of a mean request, None where nothing says. With
    regions a model is that of one of them. Demand of a model that begins routes goes by them, all
    other is served by the model's own replicas. With `one_layout` a model has one on each kind of
    machine, the same in all regions; where phases lie apart, each has one.
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
    routes: tuple[Route, ...] = ()
    one_layout: bool = False

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
    def cell_of(self) -> Array:
        """The number of each column's model on its kind of machine (C,): one speed is drawn of it.

        It is the same in all regions.
        """
        cells = [(c.model, c.pool) if c.cell is None else c.cell for c in self.columns]
        return np.array([m * len(self.pools) + k for m, k in cells], int)

    @cached_property
    def rival_layouts(self) -> tuple[tuple[Array, ...], ...]:
        """Columns by layout, of each model on each kind of machine that may have but one of them.

        Empty where layouts are free, and of what has one anyway.
        """
        groups: dict[tuple[int, str], dict[str, list[int]]] = {}
        for i, column in enumerate(self.columns if self.one_layout else ()):
            layouts = groups.setdefault((int(self.cell_of[i]), column.phase), {})
            layouts.setdefault(column.layout or column.name, []).append(i)
        return tuple(
            tuple(np.array(mine) for mine in layouts.values())
            for layouts in groups.values()
            if len(layouts) > 1
        )

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
        """The chance that a spot machine of a replica is gone in an hour, of each column (C,)."""
        machines = -(-self.used_chips // np.array([self.pools[c.pool].size for c in self.columns]))
        lost = np.array([self.pools[c.pool].lost for c in self.columns])
        return np.asarray(1 - (1 - lost) ** machines)

    @cached_property
    def start_costs(self) -> Array:
        """Cost of starting a replica of each column (C,) [USD]."""
        prices = [self.pools[c.pool].start_price / self.pools[c.pool].size for c in self.columns]
        return self.starts_paid * self.starts * self.used_chips * np.array(prices)

    @cached_property
    def stations(self) -> tuple[ServingSite, ...]:
        """Serving sites: replicas of each model, and subsets with slack for a route's latency.

        Those with room for a latency serve all that comes from so far away and further; where a
        pool prefills and another decodes, each serves all that goes by it.
        """
        stations: list[ServingSite] = []
        for m in range(len(self.models)):
            into = [(i, route) for i, route in enumerate(self.routes) if route.site == m]
            if not into and not any(route.origin == m for route in self.routes):
                stations.append(ServingSite(m))
            for pool in dict.fromkeys(route.pool for _, route in into):
                here = [(route.latency, i) for i, route in into if route.pool == pool]
                phase = "" if pool is None else "prefill"
                sizes: set[int] = set()  # of the same replicas, all that they serve is the most
                for latency in sorted({far for far, _ in here}):
                    near = tuple(i for far, i in here if far >= latency)
                    station = ServingSite(m, latency, near, phase, pool)
                    if self.at(station).size not in sizes:
                        stations.append(station)
                        sizes.add(self.at(station).size)
                if phase:
                    stations.append(ServingSite(m, 0.0, tuple(i for _, i in here), "decode", pool))
        return tuple(stations)

    def at(self, station: ServingSite) -> Array:
        """The columns of a station."""
        return np.array(
            [i for i, c in enumerate(self.columns)
             if c.model == station.model and c.slack >= station.latency
             and c.phase == station.phase and station.pool in (None, c.pool)], int,
        )  # fmt: skip

    @cached_property
    def busiest(self) -> Array:
        """Maximum work that may fall into an hour at each model's replicas (models,) [seq/s]."""
        work = self.most_served.copy()
        for origin, site in {(route.origin, route.site) for route in self.routes}:
            if site != origin:
                work[site] += self.most_served[origin]
        return np.asarray(work.max(axis=1))

    @cached_property
    def most_served(self) -> Array:
        """Maximum of each model's work that may fall into an hour (models, hours) [seq/s]."""
        rows = [
            sum((np.roll(row, shift) for shift in range(1, window + 1)), row.copy())
            for row, window in zip(self.demand, self.windows, strict=True)
        ]
        return np.array(rows)
