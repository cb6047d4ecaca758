"""Fleets drawn by a seed: small ones for brute force, large ones for the size of the gap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.problems.fleet.fleet_task import FleetColumn, FleetTask, PoolOffer, Route

FAR = 0.1  # seconds between two regions; half of the columns leave room for it


def large_fleet(
    models: int, hours: int, seed: int = 0, columns: int | None = None, pools: int = 6
) -> FleetTask:
    """Models with daily demand on kinds of chip with three contracts each; columns are given.

    A chip's rent is about proportional to its speed, as rents are; what a layout serves per chip
    varies by a quarter with model and kind, and larger layouts serve up to a fifth less per chip.
    """
    draw = np.random.default_rng(seed)
    speeds = np.geomspace(0.35, 2.0, pools)
    offers = []
    for k in range(pools):
        rent = 8 * 4.5 * speeds[k] ** 0.9 * draw.uniform(0.85, 1.15)
        offers.append(
            PoolOffer(
                f"kind-{k}",
                8,
                rent,
                None,
                rent * draw.uniform(0.58, 0.72),
                None,
                rent * draw.uniform(0.45, 0.65),
                int(draw.integers(2, 12)),
                draw.uniform(0.02, 0.1),
            )
        )
    cells = [(m, k) for m in range(models) for k in range(pools)]
    wanted = columns if columns is not None else round(199 * len(cells) / 120)
    extra = draw.choice(len(cells), max(0, wanted - len(cells)), replace=False)
    needs = 2 ** draw.integers(0, 3, models)  # chips of the smallest replica
    per_chip = draw.lognormal(0.0, 0.8, models)
    made = []
    for place, (m, k) in enumerate(cells[: min(len(cells), wanted)]):
        least = min(8, int(needs[m]) * (2 if speeds[k] < 0.6 else 1))
        fit = draw.lognormal(0.0, 0.25)
        for chips in (least, 2 * least) if place in extra else (least,):
            share = 1.0 if chips == least else draw.uniform(0.9, 1.2)
            rate = float(per_chip[m] * speeds[k] * fit * share * chips)
            made.append(FleetColumn(m, k, f"{k}x{chips}", chips, rate, 1 / 6))
    t = np.arange(hours)
    demand = np.zeros((models, hours))
    for m in range(models):
        mean = per_chip[m] * needs[m] * draw.lognormal(4.2, 0.8)
        peak, at = draw.uniform(1.2, 2.0), draw.uniform(0, 24)
        demand[m] = mean * (1 + (peak - 1) * np.cos(2 * np.pi * (t - at) / 24))
        if hours >= 168:
            demand[m, 120:168] *= draw.uniform(0.5, 0.9)
    names = tuple(f"model-{m}" for m in range(models))
    return FleetTask(
        names, tuple(offers), tuple(made), demand, (0,) * models, (None,) * models, 1, 0.15, True,
        0.5,
    )  # fmt: skip


def regional_fleet(models: int, hours: int, seed: int = 0, pools: int = 2) -> FleetTask:
    """The same in two regions, eight hours and 60 to 40 apart; requests may move between them."""
    base = large_fleet(models, hours, seed, pools=pools)
    demand = [
        part * np.roll(row, late) for row in base.demand for part, late in ((0.6, 0), (0.4, 8))
    ]
    return replace(
        base,
        models=tuple(f"{name} {region}" for name in base.models for region in "ab"),
        pools=tuple(replace(p, name=f"{p.name} {region}") for p in base.pools for region in "ab"),
        columns=tuple(
            replace(c, model=2 * c.model + r, pool=2 * c.pool + r, slack=FAR * (i % 2))
            for i, c in enumerate(base.columns) for r in (0, 1)
        ),
        demand=np.array(demand), windows=(0,) * 2 * models, tokens=(None,) * 2 * models,
        routes=tuple(
            Route(2 * m + i, 2 * m + j, 0.0 if i == j else FAR)
            for m in range(models) for i in (0, 1) for j in (0, 1)
        ),
    )  # fmt: skip
