"""What a cache plan prints and draws: each number in its place, and none where there is none."""

import pytest

import planner
from planner.problems.cache.problem import costs_picture, sections
from planner.text.quantities import show
from planner.text.wording import digits, percent
from tests.test_planner.problems.cache.test_economics import DISK
from tests.test_planner.problems.cache.test_tiers_of_a_cache import H200

SLOW = {**DISK, "name": "slow", "read_rate": "2 MB/s"}
ASKED = {"tiers": [DISK, SLOW], "hold": ["1 s", "1 hour", "1e8 s"], "hit": 0.4, "margin": 0.25,
         "prefix": 8000}  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    """Kept for a second, moved for an hour, computed again after years."""
    return planner.solve({**H200, **ASKED})


def usd(value: float) -> str:
    """As a price per million tokens is printed."""
    return f"${digits(value)}/Mtok"


def test_what_to_do_at_each_hold_time_is_printed(plan):
    """Prices of what is chosen, the chance that would pay where there is one, the time saved."""
    kept, moved, again = plan.answer.plan.holds
    assert [row.choice for row in (kept, moved, again)] == ["keep", "move", "recompute"]
    lines = sections(plan)[1].lines
    assert [line.value for line in lines] == ["keep: HBM", "move: disk", "recompute"]
    assert lines[0].label == f"{show(1.0, 'time')}, hit {percent(0.4)}"
    for row, line in zip((kept, moved), lines[:2], strict=True):
        assert line.note == "; ".join([
            f"{usd(row.cost)} against {usd(row.recompute)} again",
            f"pays from a hit chance of {percent(row.hit_chance_needed)}",
            f"a hit costs {usd(row.floor)}", f"charge {usd(row.price)}",
            f"TTFT {show(row.ttft_saved, 'time')} shorter",
        ])  # fmt: skip
    words = f"{usd(again.cost)} against {usd(again.recompute)} again; pays at no hit chance"
    assert lines[2].note == words


def test_a_miss_and_each_tier_are_printed(plan):
    """HBM is read for nothing and never drains; what is read too slowly pays at no hold time."""
    point, (title, _, tiers) = plan.answer.plan, sections(plan)
    hbm = point.holds[0].options[0].hit.hbm
    miss, cache, answer, prefill = title.lines
    assert "deepseek-v3" in title.title
    assert "a prefix of 8,000 tokens" in title.title
    assert (miss.value, cache.value) == (usd(point.miss), show(70272, "bytes_per_token"))
    assert answer.value == usd(hbm)
    assert answer.note == f"{percent(hbm / point.miss)} of a miss"
    assert (prefill.value, prefill.unit) == (point.prefill_time, "s")
    for row, line in zip(point.tiers, tiers.lines, strict=True):
        parts = [f"${digits(row.usd_per_gb_hour)} per GB and hour"]
        if row.name != "HBM":
            parts.append(f"drains in {show(row.drain_time, 'time')}")
        if row.name != "slow":
            parts.append(f"{digits(row.reads_per_hour)} reads an hour pay for it")
        until = "never" if row.name == "slow" else show(row.break_even_hold, "time")
        assert (line.label, line.value, line.note) == (row.name, until, ", ".join(parts))


def test_each_panel_has_its_choice_filled_among_all_costs(plan):
    """The cheapest first, computing again among them."""
    for row, panel in zip(plan.answer.plan.holds, costs_picture(plan).panels, strict=True):
        assert f"held {show(row.hold, 'time')}" in panel.title
        costs = {each.label: (each.low, each.high, each.words) for each in panel.rows}
        every = {"compute again": row.recompute, **{x.tier: x.cost for x in row.options}}
        assert costs == {name: (cost, cost, usd(cost)) for name, cost in every.items()}
        assert [each.low for each in panel.rows] == sorted(every.values())
        (chosen,) = (each.label for each in panel.rows if each.chosen)
        assert chosen == (row.tier or "compute again")


def test_a_trace_is_printed_with_its_rates_and_lifetimes(tmp_path):
    """Lifetimes, blocks with their bytes, and of each tier the lifetime that pays or none."""
    file = tmp_path / "trace.csv"
    file.write_text("timestamp_s,block_hashes\n0,1 2\n10,1 2 3\n40,1 2 4\n", encoding="utf-8")
    reuse = {"trace": str(file), "ttl": ["10 s", "30 s"], "capacity": [2]}
    dear = {"name": "dear", "price": "$9/GB/hour"}
    made = planner.solve({**H200, "tiers": [DISK, dear], "reuse": reuse})
    trace = made.answer.plan.trace
    rates, lives = sections(made)[3:]
    assert rates.title.startswith("3 requests, 8 blocks of 512 tokens")
    printed = [(line.label, line.value) for line in rates.lines]
    assert printed == [
        (f"lifetime {show(10.0, 'time')}", percent(2 / 8)),
        (f"lifetime {show(30.0, 'time')}", percent(4 / 8)), ("LRU of 2 blocks", percent(2 / 8)),
    ]  # fmt: skip
    assert rates.lines[2].note == show(2 * 512 * 70272, "size")
    by_tier = {line.label: (line.value, line.note) for line in lives.lines}
    assert by_tier["dear"] == ("none", "")
    best = next(row for row in trace.best_ttl if row.tier == "disk")
    assert by_tier["disk"] == (
        show(30.0, "time"), f"finds {percent(0.5)}, saves {percent(best.saved, 3)} of computing it "
        f"all, holds {show(best.bytes, 'size')}",
    )  # fmt: skip
