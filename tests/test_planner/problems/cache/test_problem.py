"""What a cache plan prints and draws: each number in its place, and none where there is none."""

import pytest

import planner
from planner.problems.cache.problem import PROBLEM
from planner.text.quantities import show
from planner.text.wording import percent, three_digits
from tests.test_planner.problems.cache.test_economics import DISK
from tests.test_planner.problems.cache.test_tiers_of_a_cache import H200

SLOW = {**DISK, "name": "slow", "read_rate": "2 MB/s"}
ASKED = {"tiers": [DISK, SLOW], "hold": ["1 s", "1 hour", "1e8 s"], "hit": 0.4, "margin": 0.25,
         "prefix": 8000}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """Kept for a second, moved for an hour, recompute after years."""
    return planner.solve({**H200, **ASKED})


def usd(value: float) -> str:
    """As a price per million tokens is printed in a table."""
    return f"${three_digits(value)}"


def test_what_to_do_at_each_hold_time_is_a_table(plan):
    """Prices of what is chosen, and the chance that would pay where there is one."""
    kept, moved, again = plan.answer.plan.holds
    assert [row.choice for row in (kept, moved, again)] == ["keep", "move", "recompute"]
    table = PROBLEM.sections(plan)[1]
    assert table.heads[2:5] == ("do", "cost", "recompute")
    cells = [tuple(row[x] for x in (0, 1, 3, 4)) for row in table.cells]
    assert cells == [(show(row.hold, "time"), percent(row.hit), usd(row.cost), usd(row.recompute))
                     for row in (kept, moved, again)]  # fmt: skip
    assert [row[2] for row in table.cells] == ["HBM", "disk", "recompute"]
    for row, printed in zip((kept, moved), table.cells, strict=False):
        pays = percent(row.hit_chance_needed)
        assert printed[5:] == (usd(row.floor), usd(row.price), pays)
    assert table.cells[2][5:] == ("", "", "")


def test_each_tier_is_a_row(plan):
    """HBM is read for nothing and never drains; what is read too slowly pays at no hold time."""
    table = PROBLEM.sections(plan)[2]
    for row, (name, price, until, often, full) in zip(
        plan.answer.plan.tiers, table.cells, strict=True
    ):
        assert (name, price) == (row.name, three_digits(row.usd_per_gb_hour))
        assert until == ("never" if name == "slow" else show(row.break_even_hold, "time"))
        assert often == ("" if name == "slow" else f"{three_digits(row.reads_per_hour)} reads/hour")
        assert full == ("" if name == "HBM" else show(row.drain_time, "time"))


def test_the_head_says_what_to_do_and_at_what_price(plan):
    """One sentence of what is best, then prices of the answer, and that they are arithmetic."""
    point, head = plan.answer.plan, PROBLEM.head(plan)
    assert "8,000 tokens of deepseek-v3" in head.question
    until = show(1e8, "time")
    assert head.run == (
        f"keep it in HBM for 1 s; move it to disk for 60 min; recompute for {until}",
    )
    assert head.cost[0].startswith(f"a miss costs {usd(point.miss)}/Mtok; held in HBM for 1 s")
    low, high = sorted(three_digits(row.price) for row in point.holds[:2])
    assert head.promises == (f"${low}–{high}/Mtok for a hit, at your 25% margin",)
    assert head.certainty[0].startswith("given: arithmetic")
    bare = PROBLEM.head(planner.solve(dict(H200)))
    assert (bare.against, bare.promises) == ((), ())  # no prefix, no margin


def test_each_panel_has_its_choice_filled_among_all_costs(plan):
    """The cheapest first, recompute among them."""
    for row, panel in zip(plan.answer.plan.holds, PROBLEM.picture(plan).panels, strict=True):
        assert f"held {show(row.hold, 'time')}" in panel.title
        costs = {each.label: (each.low, each.high, each.words) for each in panel.rows}
        every = {"recompute": row.recompute, **{x.tier: x.cost for x in row.options}}
        assert costs == {name: (cost, cost, f"{usd(cost)}/Mtok") for name, cost in every.items()}
        assert [each.low for each in panel.rows] == sorted(every.values())
        (chosen,) = (each.label for each in panel.rows if each.chosen)
        assert chosen == (row.tier or "recompute")


def test_a_trace_is_printed_with_its_rates_and_lifetimes(tmp_path):
    """Lifetimes, blocks with their bytes, and of each tier the lifetime that pays or none."""
    file = tmp_path / "trace.csv"
    file.write_text("timestamp_s,block_hashes\n0,1 2\n10,1 2 3\n40,1 2 4\n", encoding="utf-8")
    reuse = {"trace": str(file), "ttl": ["10 s", "30 s"], "capacity": [2]}
    dear = {"name": "dear", "price": "$9/GB/hour"}
    made = planner.solve({**H200, "tiers": [DISK, dear], "reuse": reuse})
    trace = made.answer.plan.trace
    rates, lives = PROBLEM.sections(made)[3:]
    assert rates.title.startswith("3 requests, 8 blocks of 512 tokens")
    assert rates.cells == (
        (f"lifetime {show(10.0, 'time')}", percent(2 / 8), ""),
        (f"lifetime {show(30.0, 'time')}", percent(4 / 8), ""),
        ("LRU of 2 blocks", percent(2 / 8), show(2 * 512 * 70272, "size")),
    )
    best = next(row for row in trace.best_ttl if row.tier == "disk")
    rows = {row[0]: row[1:] for row in lives.cells}
    assert rows["dear"] == ("none", "", "", "")
    held, saved = show(best.bytes, "size"), percent(best.saved, 3)
    assert rows["disk"] == (show(30.0, "time"), percent(0.5), saved, held)
