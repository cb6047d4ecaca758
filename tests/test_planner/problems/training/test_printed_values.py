"""What the text of a training plan prints, number by number, from the fields of the plan."""

from __future__ import annotations

import pytest

import planner
from planner.problems.training.presentation import sections
from tests.cases.printed import lines, numbers, shows
from tests.cases.training import SMALL, asked

PRICE, TOKENS, CHIPS, DAY = 2.0, 1e9, 8, 86400.0


@pytest.fixture(scope="module")
def plan():
    """A small run, solved once."""
    return planner.solve(asked(SMALL, price=f"${PRICE}/hour"))


def test_the_head_is_the_plan(plan):
    """Days and dollars with their ends, the price of a token, memory in use, the proof."""
    point, band, text = plan.answer.plan, plan.answer.band, str(plan)
    cost = (point.days, *band.days, point.usd, *band.usd, point.usd_per_mtok)
    shows(text, "Cost", cost)
    assert point.usd == pytest.approx(point.days * 24 * CHIPS * PRICE)
    assert point.usd_per_mtok == pytest.approx(point.usd / TOKENS * 1e6)
    room = point.memory_per_chip
    shows(text, "Limit", (1 - room.free / room.total,))
    proof = plan.answer.certificate
    shows(text, "Proof", (proof.layouts_fitting, proof.gap))
    least = plan.answer.bound.with_traffic
    assert proof.gap == pytest.approx(1 - least / point.step_time)


def test_the_table_is_the_plan(plan):
    """Step, utilisation and rates, with the ends of their bands and the hardware's limit."""
    point, band, text = plan.answer.plan, plan.answer.band, str(plan)
    shows(text, "Step", (point.step_time, *band.step_time, plan.answer.bound.step_time))
    shows(text, "MFU", (point.mfu, *band.mfu))
    shows(text, "Tokens/s", (point.tokens_per_s, *band.tokens_per_s))
    shows(text, "per chip", (point.tokens_per_s_per_chip,))
    assert point.tokens_per_s == pytest.approx(16 * 4096 / point.step_time)


def test_terms_and_parts_are_printed_with_their_shares(plan):
    """One step and a chip's memory: every row is a value of the plan and its share of the whole."""
    point, text = plan.answer.plan, str(plan)
    terms, room = point.time_per_step.terms, point.memory_per_chip
    rows = {"matrix products": terms["matrix"], "element-wise": terms["element_wise"],
            "attention": terms["attention"], "embedding, head": terms["head"],
            "fixed cost": terms["constant"]}  # fmt: skip
    for label, value in rows.items():
        (seconds, half), (share, percent), *_ = numbers(lines(text, label)[0])
        assert abs(seconds - value) <= half
        assert abs(share - value / point.step_time) <= percent
    parts = {"activations": room.activations, "logits": room.logits, "gradients": room.gradients,
             "free": room.free}  # fmt: skip
    for label, value in parts.items():
        line = next(x for x in text.splitlines() if f"  {label} " in x)
        (size, half), (share, percent), *_ = numbers(line.partition(f"  {label} ")[2])
        assert abs(size - value) <= half
        assert abs(share - value / room.total) <= percent


def test_the_whole_list_is_the_plan(plan):
    """Of pages and notebooks: every output in its unit, energy of the run that of its tokens."""
    point = plan.answer.plan
    listed = {line.label: (line.value, line.unit) for line in sections(plan)[0].lines}
    assert listed["cost"] == (point.usd, "USD")
    assert listed["step time"] == (point.step_time, "s")
    assert listed["days"] == (point.days, "day")
    assert listed["price"] == (pytest.approx(point.usd / TOKENS * 1e6), "USD per million tokens")
    assert listed["energy"] == (pytest.approx(point.joule_per_token * TOKENS), "J")
    assert listed["tokens per s"] == (pytest.approx(16 * 4096 / point.step_time), "token/s")
    assert listed["MFU"] == (point.mfu, "1")
    # A chip draws no more than it is rated for, and no less than a tenth of it.
    watts = point.energy / (point.days * DAY) / CHIPS
    assert 70 < watts <= 700


def test_the_parts_of_a_step_are_all_of_it(plan):
    """With --more: each term of more than a thousandth, of the step and of a chip's memory."""
    point, text = plan.answer.plan, plan.text("more")
    step = text.partition("\nOne step\n")[2].partition("\n\n")[0].splitlines()
    shown = [numbers(line)[0][0] for line in step if "hidden" not in line]
    assert sum(shown) == pytest.approx(point.step_time, rel=5e-3)
    assert len(shown) == sum(x > 1e-3 * point.step_time for x in point.time_per_step.terms.values())
    shows(text, "hidden behind work:", (point.time_per_step.hidden_communication,))
    memory = text.partition("\nMemory of a chip")[2].partition("\n\n")[0].splitlines()[1:]
    assert sum(numbers(line)[0][0] for line in memory) == pytest.approx(
        point.memory_per_chip.total, rel=5e-3
    )
    others = text.partition("\nRunners-up\n")[2].partition("\n\n")[0].splitlines()
    for line, other in zip(others, plan.answer.alternatives, strict=True):
        assert f"{other.choice}: " in line
        assert other.loses == pytest.approx(other.step_time / point.step_time - 1, abs=1e-9)
