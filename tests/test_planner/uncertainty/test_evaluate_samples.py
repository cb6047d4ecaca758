"""Uncertain givens: quantiles by SciPy, what is read of them, and answers at draws by hand."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import planner
from planner.catalogue.ranges import ListedRange
from planner.protocol.parameter import base_folder
from planner.protocol.problem import NO_PLAN, UncertainCoefficient, get_problem
from planner.scenario import kinds, load, load_tree
from planner.text.errors import InputError
from planner.uncertainty import evaluate_samples
from planner.uncertainty.evaluate_samples import Draws, Marginal, read_marginals
from tests.cases.toy import CHIPS

SHARES = np.array([0.001, 0.05, 0.2, 0.5, 0.7, 0.95, 0.999])
SERVED = {
    "problem": "serving", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 1,
    "price": "$2.50/hour", "workload": {"input_tokens": 2000, "output_tokens": 500},
    "choose": {"mode": "aggregated", "tp": 1, "batch": 32},
    "uncertain": {
        "price": {"uniform": ["$2/hour", "$4/hour"]},
        "system": {"memory_bandwidth": {"normal": ["3.35 TB/s", "8%"]}},
        "workload.input_tokens": {"log_uniform": [500, 8000]},
        "workload.output_tokens": {"lognormal": [200, 1000]},
    },
}  # fmt: skip
TOY = {"problem": "toy", "uncertain": {"rent": {"uniform": ["$2/hour", "$4/hour"]}}}


@pytest.fixture(autouse=True)
def room(monkeypatch):
    """A kind that is answered at once: the price is that of its arithmetic on the cheaper chip."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")


def drawn(source: dict) -> tuple:
    tree, scenario = load_tree(source)
    return tree, base_folder(source), read_marginals(tree, base_folder(source), scenario)


def toy(**uncertain) -> list[Marginal]:
    """Marginals of the toy."""
    return drawn({**TOY, "uncertain": uncertain})[2]


# -- distributions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "ends", "same"),
    [
        ("uniform", (2.0, 5.0), stats.uniform(2.0, 3.0)),
        ("log_uniform", (2.0, 50.0), stats.loguniform(2.0, 50.0)),
        ("triangular", (1.0, 2.0, 5.0), stats.triang(0.25, 1.0, 4.0)),
        ("triangular", (1.0, 1.0, 5.0), stats.triang(0.0, 1.0, 4.0)),
        ("triangular", (1.0, 5.0, 5.0), stats.triang(1.0, 1.0, 4.0)),
        ("normal", (5.0, 0.7), stats.norm(5.0, 0.7)),
    ],
)
def test_a_distribution_has_the_quantiles_of_scipy(kind, ends, same):
    """Every kind, and a triangle whose likeliest value is one of its ends."""
    assert Marginal("x", kind, ends).at(SHARES) == pytest.approx(same.ppf(SHARES))


@pytest.mark.parametrize("within", [0.9, 0.5])
def test_between_the_ends_of_a_lognormal_lies_the_share_that_is_said(within):
    """Nine of ten values where nothing is said; as many are below as above."""
    marginal = Marginal("x", "lognormal", (2.0, 50.0), **({} if within == 0.9 else {"within": 0.5}))
    sigma = math.log(50 / 2) / 2 / stats.norm.ppf((1 + within) / 2)
    assert marginal.at(SHARES) == pytest.approx(stats.lognorm(sigma, scale=10.0).ppf(SHARES))
    assert marginal.at(np.array([(1 - within) / 2, (1 + within) / 2])) == pytest.approx([2.0, 50.0])


def test_nothing_is_drawn_beyond_four_standard_deviations():
    """Shares of nought and one have values too."""
    ends = np.array([0.0, 1.0])
    assert Marginal("x", "normal", (5.0, 0.7)).at(ends) == pytest.approx([2.2, 7.8])
    four = math.exp(4 * math.log(5) / stats.norm.ppf(0.95))
    assert Marginal("x", "lognormal", (2.0, 50.0)).at(ends) == pytest.approx([10 / four, 10 * four])


def test_words_are_each_as_likely():
    """Places of three words in thirds of the shares, the last one at the end too."""
    words = Marginal("x", "one_of", ("a", "b", "c"))
    assert not words.numeric
    shares = np.array([0.0, 0.33, 0.34, 0.66, 0.67, 0.99, 1.0])
    assert words.at(shares).tolist() == [0, 0, 1, 1, 2, 2, 2]


# -- what is read -------------------------------------------------------------------------------


def test_ends_are_read_as_their_path_reads_them():
    """In base units, with the unit of the path; a deviation in percent of the mean or like it."""
    rows = toy(
        rent={"normal": ["$3/hour", "5%"]},
        promise={"normal": ["50 ms", "4 ms"]},
        weights={"triangular": ["100 GB", "120 GB", "160 GB"]},
        work={"one_of": [1e11, "2e11"]},
    )
    assert [row.path for row in rows] == ["rent", "promise", "weights", "work"]
    assert [row.kind for row in rows] == ["normal", "normal", "triangular", "one_of"]
    assert rows[0].ends == pytest.approx((3 / 3600, 0.05 * 3 / 3600))
    assert rows[1].ends == pytest.approx((0.05, 0.004))
    assert rows[2].ends == pytest.approx((100e9, 120e9, 160e9))
    assert rows[3].ends == (1e11, "2e11")
    assert [row.unit for row in rows] == ["USD/(chip*s)", "s", "byte", ""]
    assert all(row.source is None for row in rows)


def test_what_a_kind_lists_is_the_range(monkeypatch):
    """Of a path of the scenario or of a coefficient beside it, with its source and its share."""
    problem = get_problem("toy")
    listed = ListedRange("lognormal", (2.0, 8.0), "three lists", 0.5)
    monkeypatch.setattr(problem, "listed", lambda question, path: listed, raising=False)
    assert toy(rent="catalogue") == [
        Marginal("rent", "lognormal", (2.0, 8.0), "USD/(chip*s)", "three lists", 0.5)
    ]
    own = UncertainCoefficient("profile.x", "furlong", float, replace(listed, source=""))
    monkeypatch.setattr(problem, "coefficient", lambda question, path: own)
    assert toy(**{"profile.x": "catalogue"}) == [
        Marginal("profile.x", "lognormal", (2.0, 8.0), "furlong", None, 0.5)
    ]
    (row,) = toy(**{"profile.x": {"uniform": ["1", "3"]}})
    assert row == Marginal("profile.x", "uniform", (1.0, 3.0), "furlong")
    with pytest.raises(InputError, match="drawn from numbers between two ends"):
        toy(**{"profile.x": {"one_of": ["1", "3"]}})
    nowhere = replace(own, listed=None, unlisted="nobody refitted it")
    monkeypatch.setattr(problem, "coefficient", lambda question, path: nowhere)
    with pytest.raises(InputError, match="nobody refitted it"):
        toy(**{"profile.x": "catalogue"})


def test_all_mistakes_are_told_at_their_paths():
    """Of each path one, those that are read badly and those whose ends make no sense."""
    wrong = {
        "rent": {"uniform": ["$3/hour", "$2/hour"]},
        "weights": {"uniform": ["3 s", "4 s"]},
        "problem": {"uniform": ["toy", "toy"]},
        "work": {"normal": [1e11, "150%"]},
        "promise": "catalogue",
    }
    with pytest.raises(InputError) as told:
        toy(**wrong)
    told_at = {mistake.path: mistake.message for mistake in told.value.mistakes}
    assert list(map(len, (told_at, told.value.mistakes))) == [5, 5]
    expected = {
        "rent": "uniform: expected rising values, got 0.000833333, 0.000555556",
        "problem": "expected a number, got 'toy'; one_of takes words",
        "work": "normal: expected a standard deviation such as 5%, got '150%'",
        "weights": 'expected a size in bytes such as "80 GB", got "3 s" (seconds)',
    }
    for path, words in expected.items():
        assert told_at[f"uncertain.{path}"] == words
    assert "the catalogue has ranges of rents" in told_at["uncertain.promise"]


def test_truth_is_no_number():
    """Python counts with it; a distribution does not."""
    asked = {
        "problem": "training", "model": "llama-3.1-8b", "system": "hgx-h100", "chips": 8,
        "work": {"tokens": 1e9, "global_batch": 1e6, "sequence": 4096}, "choose": {"overlap": True},
        "uncertain": {"choose.overlap": {"uniform": ["false", "true"]}},
    }  # fmt: skip
    with pytest.raises(InputError, match="expected a number, got 'false'"):
        drawn(asked)


@pytest.mark.parametrize("text", ["0%", "100%", "-5%", "150%", "x%", "nan%", "%"])
def test_a_deviation_in_percent_lies_between_nought_and_all(text):
    """And is a number."""
    with pytest.raises(InputError, match=f"such as 5%, got '{text}'"):
        evaluate_samples._share("x", text)
    assert evaluate_samples._share("x", "5%") == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("kind", "ends", "words"),
    [
        ("normal", (4.0, 1.0), "4 standard deviations below the mean"),
        ("normal", (4.1, 1.0), None),
        ("normal", (-9.0, 1.0), "below the mean"),
        ("normal", (1.0, 0.0), "above zero, got 0"),
        ("normal", (1.0, -0.1), "above zero, got -0.1"),
        ("uniform", (1.0, 1.0), "rising values, got 1, 1"),
        ("uniform", (2.0, 1.0), "rising values, got 2, 1"),
        ("uniform", (-1.0, 0.0), None),
        ("triangular", (1.0, 1.0, 2.0), None),
        ("triangular", (1.0, 2.0, 2.0), None),
        ("triangular", (1.0, 3.0, 2.0), "rising values, got 1, 3, 2"),
        ("triangular", (1.0, 1.0, 1.0), "rising values"),
        ("log_uniform", (0.0, 1.0), "above zero, got 0"),
        ("lognormal", (0.0, 1.0), "above zero, got 0"),
        ("lognormal", (-1.0, 1.0), "above zero, got -1"),
        ("log_uniform", (0.1, 1.0), None),
        ("lognormal", (0.1, 1.0), None),
    ],
)
def test_ends_that_make_no_distribution_are_told(kind, ends, words):
    """A normal leaves nothing at or below zero, logarithms need more than that, and ends rise."""
    told = evaluate_samples._wrong(kind, ends)
    assert (words in told) if words else (told is None)


# -- answers at draws ---------------------------------------------------------------------------


def price(rent: float, chip: str = "small", weights: float = 141e9) -> float:
    """By hand: a batch pays for 140 GFLOP a token, or 256 of them for reading the weights."""
    rates = CHIPS[chip]
    token = max(140e9 / rates["flops"], weights / rates["bandwidth"] / 256)
    return rent * rates["share"] * token * 1e6


def test_every_draw_is_answered_in_its_order():
    """Proportional to the rent on the cheap chip, on the other one where the weights are too many.

    The small chip reads 160 GB within the promised 80 ms.
    """
    asked = {"rent": TOY["uncertain"]["rent"], "weights": {"uniform": ["120 GB", "200 GB"]}}
    tree, folder, marginals = drawn({**TOY, "uncertain": asked})
    shares = np.array([[0.0, 0.1], [0.5, 0.9], [1.0, 0.4]])
    found = Draws(tree, folder, marginals, "price").at(shares)
    rents = np.array([2, 3, 4]) / 3600
    assert found.choices == ("small", "big", "small")
    assert found.values == pytest.approx(
        [price(rents[0]), price(rents[1], "big", 192e9), price(rents[2])]
    )
    assert found.method == "solved again at each draw"
    assert found.sets == {"small": (), "big": ()}


def test_a_bar_goes_from_no_draw_to_all(monkeypatch):
    """Where it is shown at all."""
    seen = []

    @contextmanager
    def bar(total, done, *, shown):
        seen.extend([total, done, shown])
        yield seen.append

    monkeypatch.setattr(evaluate_samples, "progress", bar)
    Draws(*drawn(TOY), "price", shown=True).at(np.array([[0.5], [0.6]]))
    assert seen == [2, 0, True, 2]


def test_changes_are_made_before_a_draw():
    """A promise that the small chip does not keep leaves the big one."""
    draws = Draws(*drawn(TOY), "price")
    found = draws.at(np.array([[0.5]]), ["promise=50 ms"])
    assert found.choices == ("big",)
    assert found.values == pytest.approx([price(3 / 3600, "big")])


def test_a_draw_without_a_plan_has_no_number_and_no_choice():
    """Where no chip keeps the promise, and where the plan does not have the output at all."""
    asked = {**TOY, "uncertain": {"promise": {"uniform": ["1 ms", "200 ms"]}}}
    found = Draws(*drawn(asked), "tpot").at(np.array([[0.0], [1.0]]))
    assert found.choices == (None, "small")
    assert np.isnan(found.values[0])
    assert 0 < found.values[1] <= 0.2
    other = Draws(*drawn(asked), "another output").at(np.array([[1.0]]))
    assert other.choices == (None,)
    assert other.sets == {}
    assert np.isnan(other.values).all()


def test_a_draw_of_words_is_that_word():
    """And one of a number that number to its last digit."""
    words = Marginal("system", "one_of", ("hgx-h100", "hgx-h200"))
    assert evaluate_samples._set(words, 1) == "system=hgx-h200"
    third = np.float64(1 / 3)
    assert evaluate_samples._set(Marginal("x", "uniform", (0.0, 1.0)), third) == f"x={1 / 3!r}"


def test_a_draw_that_makes_no_sense_has_no_plan():
    """The others have theirs; no point of a search leaves the process."""
    tree, folder, _ = drawn(TOY)
    sets = [["rent=-1"], ["rent=$3.60/hour"]]
    none, plan = evaluate_samples._searched(tree, folder, sets)
    assert none == NO_PLAN
    assert plan.outputs["price"] == pytest.approx(price(0.001))
    assert (plan.plan, plan.missed, plan.row) == (None, None, None)


def test_coefficients_stay_beside_the_scenario():
    """Their names and values; the rest is set in the question."""
    tree, folder, _ = drawn(TOY)
    sets = ["profile.e_w=0.5", "rent=$3.60/hour", "profile.t_ar=2e-6"]
    question, beside = evaluate_samples._question(tree, folder, sets)
    assert question.rent == 0.001
    assert beside == {"e_w": 0.5, "t_ar": 2e-6}


class Pool:
    """Processes that are none: what is handed to each is written down."""

    def __init__(self, workers, **_):
        Pool.workers = workers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def map(self, work, pieces):
        """In order, as a pool of processes does it."""
        return map(work, pieces)


@pytest.mark.parametrize(
    ("points", "workers", "spread"),
    [(300, 1, False), (3, 4, False), (4, 4, False), (5, 4, True), (300, 4, True)],
)
def test_pieces_are_all_of_the_points_in_their_order(monkeypatch, points, workers, spread):
    """Other processes are begun where each has something to do, and then none has it all."""
    monkeypatch.setattr(evaluate_samples, "ProcessPoolExecutor", Pool)
    Pool.workers = None
    pieces = list(evaluate_samples._pieces(list, range(points), workers))
    assert [x for piece in pieces for x in piece] == list(range(points))
    assert (Pool.workers == workers) == spread
    if points == 300:
        assert (len(pieces) >= workers * 8) == spread


# -- all draws at once --------------------------------------------------------------------------


@dataclass
class Closed:
    """A kind without a choice: y is what is drawn of x, and promised to lie below a half."""

    chosen: bool = False
    ends: object = None
    whole: tuple = ()
    batches: tuple = ()
    words: tuple = (("layout", "the only one"),)

    def is_array(self, path):
        """Of all but one."""
        return path != "place"

    def array_model(self, question, ends):
        """None where something is to be chosen."""
        self.ends, self.words = ends, dict(self.words)
        return None if self.chosen else self

    def __call__(self, values):
        """Columns of a sweep."""
        y = values["x"]
        return {"y": y, "status": (y >= 0.5).astype(int), "mode": "aggregated"}


@pytest.fixture
def closed(monkeypatch):
    """What is drawn of x as arrays, by a kind of `Closed`, of the output of a name."""

    def answered(problem, name="y", path="x", kind="uniform", values=(0.2, 0.9, 0.4)):
        monkeypatch.setattr(
            evaluate_samples, "check_tree", lambda tree, folder: SimpleNamespace(problem="closed")
        )
        monkeypatch.setattr(evaluate_samples, "get_problem", lambda kind: problem)
        return evaluate_samples._closed(
            None, None, [Marginal(path, kind, (0.0, 1.0))], [np.array(values)], name
        )

    return answered


def test_draws_without_a_choice_are_answered_at_once(closed):
    """Those that break a promise have no number and no choice; the model knows the ends."""
    problem = Closed()
    found = closed(problem)
    assert found.values == pytest.approx([0.2, np.nan, 0.4], nan_ok=True)
    assert found.choices == ("the only one", None, "the only one")
    assert (found.sets, found.method) == ({"the only one": ()}, "closed form")
    assert problem.ends["x"].tolist() == [0.2, 0.9]


def test_draws_that_are_no_arrays_are_searched(closed):
    """Words, numbers of no equation, a choice, an output that is none, no draw at all."""
    assert closed(Closed(chosen=True)) is None
    assert closed(Closed(), path="place") is None
    assert closed(Closed(), kind="one_of") is None
    assert closed(Closed(), name="mode") is None
    assert closed(Closed(), name="z") is None
    assert closed(Closed(), values=()) is None
    assert closed(get_problem("toy")) is None


def test_a_closed_form_and_the_solver_answer_alike():
    """The same draws as arrays, and each put into the scenario and solved."""
    tree, folder, marginals = drawn(SERVED)
    shares = np.random.default_rng(1).random((6, len(marginals)))
    fast = Draws(tree, folder, marginals, "usd_per_mtok").at(shares)
    assert fast.method == "closed form"
    for i, share in enumerate(shares):
        values = [float(m.at(np.array([s]))[0]) for m, s in zip(marginals, share, strict=True)]
        sets = [f"{m.path}={v!r} {m.unit}" for m, v in zip(marginals, values, strict=True)]
        assert planner.solve(SERVED, sets=sets).cost == pytest.approx(fast.values[i], rel=1e-9)


def test_prices_of_the_catalogue_are_a_range():
    """Between the least and the most that is listed for the chip."""
    scenario = {**SERVED, "uncertain": {"price": "catalogue"}}
    (marginal,) = drawn(scenario)[2]
    system = load(SERVED).systems()[0]
    from planner.catalogue.listed_prices import default_price

    listed = default_price(system.chip.name)
    assert marginal.ends == (listed.low, listed.high)
    assert marginal.kind == "log_uniform"


def test_the_interval_of_a_coefficient_is_a_range():
    """Eight of ten draws lie in what refits of the profile hold, at the plan's own place."""
    from planner.problems.serving.task.resolve import resolve

    scenario = {**SERVED, "uncertain": {"profile": {"t_layer": "catalogue"}}}
    (marginal,) = drawn(scenario)[2]
    profile = resolve(load(SERVED)).tasks[0].profile
    assert marginal.ends == profile.intervals["t_layer"]
    assert marginal.unit == "s"
    assert profile.name in marginal.source
    assert marginal.at(np.array([0.1, 0.9])) == pytest.approx(marginal.ends)


def test_a_coefficient_that_is_drawn_is_that_of_a_profile_of_ones_own(tmp_path):
    """The answer with a draw is the answer of a file that has the drawn value."""
    scenario = {**SERVED, "profile": "palm-2022", "workload": {"input_tokens": 2000,
                "output_tokens": 500}, "uncertain": {"profile.t_step": "catalogue"}}  # fmt: skip
    tree, folder, marginals = drawn(scenario)
    share = np.array([[0.9]])
    found = Draws(tree, folder, marginals, "usd_per_mtok").at(share)
    value = float(marginals[0].at(share[:, 0])[0])
    from dataclasses import replace

    from planner.problems.serving.task.resolve import resolve
    from planner.protocol.problem import search

    task = resolve(load(scenario)).tasks[0]
    assert value == pytest.approx(task.profile.intervals["t_step"][1])
    changed = replace(
        task, profile=replace(task.profile, values={**task.profile.values, "t_step": value})
    )
    from tests.cases.serving import one_pool

    again = min(point.candidate.usd_per_mtok for point in one_pool(changed).points())
    assert found.values[0] == pytest.approx(again, rel=1e-12)
    assert found.values[0] != pytest.approx(
        search(load(scenario)).outputs["usd_per_mtok"], rel=1e-6
    )
