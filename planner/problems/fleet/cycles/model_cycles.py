"""Plans model by model: the cheapest cycle of one model's replicas through the hours, others held.

What replicas cost is exact: the machines that must be added to those that the other models fill,
and the starts from one hour to the next. At first chips have the prices of the relaxation, then
less and less of them; after each turn machines are reserved anew, and each model's replicas are
chosen among those beside the ones in use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.problems.fleet.cycles.model_covers import CoverPrices
from planner.problems.fleet.cycles.replica_choices import (
    ReplicaChoices,
    first_choices,
    items_of,
    next_choices,
    placed,
    replica_choices,
)
from planner.problems.fleet.fleet_task import FleetTask

Array = np.ndarray
NEAR = 1e-9  # relative, of capacity over demand
FROM_PRICES = (1.0, 0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0)
FROM_PLAN = (0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0)  # share of a chip's price, the rest exact machines
DEAR = 100.0  # times its rent, of a machine that is not offered


@dataclass(frozen=True)
class CyclePlan:
    """Replicas (columns, hours) and machines (pools,) and (pools, hours) of a plan."""

    firm: Array
    spot: Array
    reserved: Array
    on_demand: Array
    spot_machines: Array


@dataclass
class ModelCycles:
    """A plan in the making: each model's choices, its row of them in each hour, what is reserved.

    `paths` (models, hours), -1 of models without a plan as yet; `reserved` (pools,); `prices`
    (2, pools, hours) of a chip on firm and on spot machines.
    """

    task: FleetTask
    choices: list[ReplicaChoices]
    prices: Array
    reserved: Array
    paths: Array

    def used(self) -> Array:
        """Chips in use (2, pools, hours), firm and on spot."""
        used = np.zeros_like(self.prices)
        for choices, path in zip(self.choices, self.paths, strict=True):
            if path[0] >= 0:
                used += choices.chips[:, path].transpose(0, 2, 1)
        return used

    def machines(self, used: Array) -> tuple[Array, Array]:
        """Machines for chips in use (..., pools, hours): on demand beside those there; on spot."""
        sizes = np.array([pool.size for pool in self.task.pools])[:, None]
        owned = np.array([pool.owned for pool in self.task.pools])
        firm, spot = np.ceil(used / sizes - NEAR)
        return np.maximum(0, firm - (self.reserved + owned)[:, None]), spot

    def usd(self, used: Array) -> tuple[Array, Array]:
        """What machines cost by hour (..., hours), and a penalty for those that are not offered."""
        rented, spot = self.machines(used)
        rent = np.zeros(rented.shape[:-2] + rented.shape[-1:])
        penalty = np.zeros_like(rent)
        for k, pool in enumerate(self.task.pools):
            more, taken = rented[..., k, :], spot[..., k, :]
            rent += more * (pool.on_demand or 0.0)
            rent += taken * (pool.spot or 0.0) * (1 + pool.lost * pool.redo)
            over = np.maximum(0, taken - (pool.spot_most if pool.spot is not None else 0))
            most = 0 if pool.on_demand is None else pool.on_demand_most
            over = over + (0 if most is None else np.maximum(0, more - most))
            penalty += over * DEAR * max(pool.start_price, 1.0)
        return rent, penalty

    def total(self) -> float:
        """The bill over the horizon [USD]; infinite where limits are not kept."""
        if (self.paths < 0).any():
            return float("inf")
        rent, penalty = self.usd(self.used())
        if penalty.any():
            return float("inf")
        prices = np.array([pool.reserved or 0.0 for pool in self.task.pools])
        starts = sum(
            float(choices.begun[np.roll(path, 1), path].sum())
            for choices, path in zip(self.choices, self.paths, strict=True)
        )
        return float(self.reserved @ prices * self.task.hours + rent.sum() + starts)

    def turn(self, linear: float) -> bool:
        """Every model's cycle anew, the largest first; whether each has one.

        Of the price of its chips `linear` is that of the relaxation, the rest of whole machines.
        """
        used = self.used()
        for m in np.argsort(-self.task.demand.sum(axis=1), kind="stable"):
            choices, path = self.choices[m], self.paths[m]
            if path[0] >= 0:
                used = used - choices.chips[:, path].transpose(0, 2, 1)
            rent, penalty = self.usd(used[:, None] + choices.chips[..., None])
            cost = linear * np.einsum("akp,aph->kh", choices.chips, self.prices)
            cost = cost + (1 - linear) * (rent - self.usd(used)[0]) + penalty
            better = _cycle(self.task, int(m), choices, cost)
            if better is None:
                return False
            if (
                linear > 0
                or path[0] < 0
                or _worth(choices, cost, better) < _worth(choices, cost, path)
            ):
                self.paths[m] = better
            used = used + choices.chips[:, self.paths[m]].transpose(0, 2, 1)
        return True

    def reserve(self) -> None:
        """As many machines reserved of each pool as cost least for the chips in use."""
        firm = self.used()[0]
        for k, pool in enumerate(self.task.pools):
            if pool.reserved is None:
                continue
            needed = np.maximum(0, np.ceil(firm[k] / pool.size - NEAR) - pool.owned)
            most = np.inf if pool.reserved_most is None else pool.reserved_most
            counts = np.unique(np.minimum(np.append(needed, 0.0), most))
            rest = np.maximum(0, needed[None, :] - counts[:, None])
            rented = 0 if pool.on_demand is None else pool.on_demand_most
            usd = rest * (pool.on_demand or 0.0)
            if rented is not None:
                usd += np.maximum(0, rest - rented) * DEAR * max(pool.start_price, 1.0)
            bills = counts * pool.reserved * self.task.hours + usd.sum(axis=1)
            self.reserved[k] = counts[int(np.argmin(bills))]

    def plan(self) -> CyclePlan:
        """The plan as it is."""
        shape = len(self.task.columns), self.task.hours
        firm, spot = np.zeros(shape, int), np.zeros(shape, int)
        for m, (choices, path) in enumerate(zip(self.choices, self.paths, strict=True)):
            mine, rows = self.task.model_of == m, choices.counts[path].T
            firm[mine], spot[mine] = np.split(rows, 2)
        rented, taken = self.machines(self.used())
        return CyclePlan(firm, spot, self.reserved.copy(), rented, taken)


def cycled(
    task: FleetTask, prices: CoverPrices, chips: Array, reserved: Array,
    start: CyclePlan | None = None,
) -> CyclePlan | None:  # fmt: skip
    """The best plan of some turns, from another plan or from prices; None where none is found.

    Parameters
    ----------
    prices, chips : of replicas and of chips (2, pools, hours), in the relaxation.
    reserved : machines of each pool to begin with (pools,).
    """
    models = range(len(task.models))
    if start is None:
        rows = first_choices(task, prices)
        paths = np.full(task.demand.shape, -1)
    else:
        columns = [task.model_of == m for m in models]
        here = [np.vstack([start.firm[mine], start.spot[mine]]).T for mine in columns]
        rows = [next_choices(here[m], items_of(task, m, prices)) for m in models]
        paths = np.array([placed(rows[m], list(here[m])) for m in models])
    choices = [replica_choices(task, m, rows[m]) for m in models]
    making = ModelCycles(task, choices, chips, reserved.astype(float), paths)
    least, best = making.total(), start
    for linear in FROM_PRICES if start is None else FROM_PLAN:
        if not making.turn(linear):
            return best
        making.reserve()
        total = making.total()
        if total < least:
            least, best = total, making.plan()
        for m in models:
            here_m = making.choices[m].counts[making.paths[m]]
            rows_m = next_choices(here_m, items_of(task, m, prices))
            making.paths[m] = placed(rows_m, list(here_m))
            making.choices[m] = replica_choices(task, m, rows_m)
    return best


def _worth(choices: ReplicaChoices, cost: Array, path: Array) -> float:
    """What a cycle costs, with its starts."""
    rows = cost[path, np.arange(path.size)]
    return float(rows.sum() + choices.begun[np.roll(path, 1), path].sum())


def _cycle(task: FleetTask, m: int, choices: ReplicaChoices, cost: Array) -> Array | None:
    """The cheapest rows through the hours at costs (K, hours); None where there is none.

    A lap finds where a cycle comes back to; another is closed there.
    """
    wanted = task.demand[m] * (1 + task.headroom) * (1 + NEAR)
    firm = (1 - task.spot_share) * task.demand[m] * (1 + NEAR)
    steps = [
        np.where((choices.room >= wanted[t]) & (choices.firm >= firm[t])[None, :],
                 choices.begun + cost[None, :, t], np.inf)
        for t in range(task.hours)
    ]  # fmt: skip
    value = np.zeros(cost.shape[0])
    for step in steps:
        value = (value[:, None] + step).min(axis=0)
    home = int(np.argmin(value))
    value = np.full(cost.shape[0], np.inf)
    value[home] = 0.0
    before = []
    for step in steps:
        through = value[:, None] + step
        before.append(through.argmin(axis=0))
        value = through.min(axis=0)
    if not np.isfinite(value[home]):
        return None
    path, row = np.zeros(task.hours, int), home
    for t in range(task.hours - 1, -1, -1):
        path[t] = row
        row = int(before[t][row])
    return path
