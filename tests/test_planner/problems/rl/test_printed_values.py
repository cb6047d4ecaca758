"""What the text of a step of learning prints, by the plan's fields; what README says is refused."""

from __future__ import annotations

import pytest

import planner
from tests.cases.printed import shows
from tests.cases.rl_questions import question
from tests.paths import EXAMPLES

HOUR, DAY = 3600.0, 86400.0


@pytest.fixture(scope="module")
def plan():
    """All chips write, then learn; a hundred steps at two dollars."""
    return planner.solve(question(steps=100, price="$2/hour"))


def test_the_head_and_the_step_are_the_plan(plan):
    """Days, dollars, the step; every part of it by its time."""
    point, text = plan.answer.plan, str(plan)
    usd = 32 * 2.0 / HOUR * point.step_time
    assert point.usd_per_step == pytest.approx(usd)
    assert point.days == pytest.approx(100 * point.step_time / DAY)
    assert point.usd == pytest.approx(100 * usd)
    assert f"${usd:.2f} a step" in text
    shows(text, "generation ", (point.rollouts.seconds,))
    shows(text, "weights ", (point.weights_sent,))
    parts = point.rollouts.seconds + point.learning.seconds + point.weights_sent
    assert parts == pytest.approx(point.step_time)


def test_the_table_is_the_plan(plan):
    """Rates, a token of a full batch and of one answer, the last batch, the training step."""
    point, text = plan.answer.plan, str(plan)
    writes, learns = point.rollouts, point.learning
    shows(text, "Throughput", (point.tokens_per_s, point.tokens_per_s / 32))
    assert point.tokens_per_s == pytest.approx(256 * 1600 / point.step_time)
    shows(text, "A token", (writes.step_full, writes.step_alone))
    shows(text, "Last batch", (writes.ending, writes.longest))
    shows(text, "Training step", (learns.step_time, learns.updates, learns.mfu))
    busy = 32 * (writes.seconds + learns.seconds)
    assert point.idle == pytest.approx(1 - busy / (32 * point.step_time))


def test_a_topology_file_is_refused():
    """As README says: rates of groups of a file are not read for learning."""
    network = str(EXAMPLES / "topologies" / "hgx-rails.yaml")
    for system in (network, {"like": "hgx-h100", "topology": network}):
        with pytest.raises(planner.InputError, match=r"topology file is not read for learning"):
            planner.solve(question(system=system))
