"""Layouts of one phase that none of their kind betters, against loops over all of them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.problems.serving.search.sizing import PhaseLayouts


def phase(rng: np.random.Generator, count: int) -> PhaseLayouts:
    """Random layouts of few kinds, with ties in what is compared."""
    few = {name: rng.integers(1, 4, count) for name in ("group", "stage", "stages", "engines")}
    few["group"], few["count"] = few["group"] - 1, rng.integers(0, 3, count)
    values = {name: rng.integers(1, 9, count) / 4 for name in ("rate", "latency", "weight")}
    none = np.zeros(count, np.int64)
    return PhaseLayouts(
        rows=np.arange(count), domain=none + 8, batch=none + 1.0, fill=none + 1.0,
        slot=1 / values["rate"], slower=none, odd=none, promised=values["latency"], **few, **values,
    )  # fmt: skip


def kinds(table: PhaseLayouts, *more: str) -> dict[tuple[int, ...], list[int]]:
    """{group, stage, stages and count of a kind: its rows}, kinds in order of these."""
    columns = [getattr(table, n) for n in ("group", "stage", "stages", "count", *more)]
    every = [tuple(map(int, row)) for row in zip(*columns, strict=True)]
    return {kind: [i for i, row in enumerate(every) if row == kind] for kind in sorted(set(every))}


@pytest.fixture(params=range(6))
def table(request: pytest.FixtureRequest) -> PhaseLayouts:
    """A table of a few rows, of a hundred, of none."""
    return phase(np.random.default_rng(request.param), (0, 1, 7, 40, 100, 100)[request.param])


def test_one_layout_of_each_kind_by_loops(table):
    """The least weight per rate, the least latency; of equals the one that comes first."""
    price = table.weight / table.rate
    for key, best in ((price, table.fastest()), (table.latency, table.quickest())):
        by_hand = [min(rows, key=lambda i: (key[i], i)) for rows in kinds(table).values()]
        assert best.rows.tolist() == by_hand
    of_engines = [min(rows, key=lambda i: (price[i], i))
                  for rows in kinds(table, "engines").values()]  # fmt: skip
    assert table.fastest_by_engines().rows.tolist() == sorted(of_engines)
    assert table.fastest_by_engines().fastest().rows.tolist() == table.fastest().rows.tolist()


@pytest.mark.parametrize("other", [False, True])
def test_layouts_that_none_betters_by_loops(table, other):
    """Fastest first, each later one of less latency (or other key) than all before it."""
    key = table.slot + table.weight if other else table.latency
    by_hand = []
    for rows in kinds(table).values():
        best = np.inf
        for i in sorted(rows, key=lambda i: (-table.rate[i], key[i], i)):
            if key[i] < best:
                best = key[i]
                by_hand.append(i)
    assert table.undominated(key if other else None).rows.tolist() == by_hand


def test_tiers_count_the_slower_ones_of_their_kind(table):
    """Slowest first, each later one of a smaller key, numbered from zero in its kind."""
    by_hand, slower = [], []
    for rows in kinds(table).values():
        best, number = np.inf, 0
        for i in sorted(rows, key=lambda i: (table.rate[i], table.weight[i], i)):
            if table.weight[i] < best:
                best = table.weight[i]
                by_hand.append(i)
                slower.append(number)
                number += 1
    tiers = table.tiers(table.weight)
    assert (tiers.rows.tolist(), tiers.slower.tolist()) == (by_hand, slower)


def test_tables_one_after_the_other():
    """Every column of both, and the room of a replica in its own words."""
    parts = [phase(np.random.default_rng(seed), 3) for seed in (1, 2)]
    whole = PhaseLayouts.joined(parts)
    for name, column in vars(whole).items():
        assert column.tolist() == [x for part in parts for x in getattr(part, name)]
    room = whole.room
    assert (room.stage is whole.stage, room.stages is whole.stages) == (True, True)
    assert room.domain is whole.domain
