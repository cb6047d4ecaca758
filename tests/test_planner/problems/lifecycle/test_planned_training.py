"""A life whose training is laid out for the very model chosen, against every size by itself."""

import numpy as np
import pytest

import planner
from planner.problems.lifecycle.resolve import resolve_life
from planner.scenario.loading import load
from planner.text.errors import InputError
from tests.cases.planned_training import RUN, usd_per_mtok

LOSS_MIN, A, B, ALPHA, BETA = 1.8172, 482.01, 2085.43, 0.3478, 0.3658  # Besiroglu et al., table 1


def scenario(**phase):
    """A model of 7 B quality that one H100 serves, trained on 256 of them."""
    return {
        "problem": "lifecycle",
        "quality": {"like": {"n_active": 7e9}},
        "inference": {"tokens": 2e12},
        "serving": {
            "system": "hgx-h100",
            "chips": 1,
            "workload": {"input_tokens": 2000, "output_tokens": 400},
            "promises": {"ttft": "1 s", "tpot": "20 ms"},
            "choose": {"weights": "fp8"},
        },
        "phases": {"pretrain": {"system": "hgx-h100", "training": RUN, **phase}},
        "draws": 0,
    }


@pytest.fixture(scope="module")
def plan():
    """The life, solved once."""
    return planner.solve(scenario())


@pytest.mark.slow
def test_no_size_is_cheaper(plan, tmp_path):
    """Brute force: members of sizes off the ladder, trained and served as their problems say."""
    life, whole = resolve_life(load(scenario())), plan.answer.plan
    for size in whole.n_active * np.geomspace(0.8, 1.25, 18):
        served = life.serving.cheapest(life.family, float(size), 1.0)
        if served is None:
            continue
        member = served.member.n_active
        tokens = (B / (whole.loss - LOSS_MIN - A / member**ALPHA)) ** (1 / BETA)
        trained = usd_per_mtok(float(size), tmp_path) * tokens / 1e6
        assert trained + served.price * 2e12 >= plan.cost * (1 - 2e-3)  # rungs are a percent apart


@pytest.mark.slow
def test_every_size_asked_is_charged_its_own_training(plan, tmp_path):
    """The table of sizes: dollars of training are tokens at the price of that model's layout."""
    for row in plan.answer.evaluated[:6]:
        if row.total_usd is None:
            continue
        price = usd_per_mtok(row.n_active, tmp_path)
        assert row.training_usd == pytest.approx(price * row.pretrain / 1e6, rel=0.02)
        assert row.total_usd >= plan.cost * (1 - 1e-9)


@pytest.mark.slow
def test_the_fixed_share_stands_beside(plan):
    """What the published MFU gave, charged what its training really costs, is no cheaper."""
    fixed = plan.answer.training.fixed_mfu
    assert fixed.cost >= plan.cost * (1 - 1e-3)
    assert "had you assumed 42% MFU" in plan.text("more")


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ({"duration": "30 days"}, "leave duration out"),
        ({"system": ["hgx-h100", "hgx-h200"]}, "give one system"),
        ({"training": {"chips": 8, "global_batch": "8 sequences"}}, "sequence"),
    ],
)
def test_what_is_refused(phase, words):
    """Each mistake by its place."""
    with pytest.raises(InputError, match=words):
        planner.solve(scenario(**phase))
