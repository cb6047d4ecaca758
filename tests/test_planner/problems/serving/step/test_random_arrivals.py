"""How often caches of random arrivals find no room: against sums, moments and a simulation."""

from __future__ import annotations

import numpy as np
import pytest

from formulas.numerics.evaluate import scalar
from formulas.serving.queues import (
    context_spread,
    met_sequences,
    occupancy_spread,
    reading_line,
    reading_spread,
    room_spread,
)
from planner.problems.serving.step.occupancy import overflow_probability
from tests.cases.arrivals import Followed, Rank, lengths, witnessed


def given(prompt: float, spread: float, answer: float, answer_spread: float) -> dict[str, float]:
    """The symbols of the lengths."""
    context = prompt + answer * (1 + answer_spread**2) / 2
    return {"L_in": prompt, "v_in": spread, "L_out": answer, "v_out": answer_spread,
            "L_ctx": context, "dp": 1.0, "x_var": 1.0, "x_read": 1.0}  # fmt: skip


def alone(
    rank: Rank, rate: float, prompt: tuple[float, float], answer: tuple[float, float]
) -> Followed:
    """One pool of one rank."""
    return Followed(rank, rank, (1, 1), rate, (0.0, 0.0), (0.0, 0.0), prompt, answer)


@pytest.mark.parametrize("spreads", [(0.0, 0.0), (0.8, 0.0), (0.0, 0.8), (0.6, 0.5)])
def test_contexts_met_at_an_even_moment_of_their_answers(spreads):
    """Drawn one by one: answers as often as they are long, met at an even moment."""
    draw = np.random.default_rng(1)
    prompts = lengths(1000, spreads[0], 400_000, draw)
    answers = lengths(600, spreads[1], 400_000, draw)
    met = draw.choice(answers, answers.size, p=answers / answers.sum())
    contexts = prompts + met * draw.random(met.size)
    found = scalar([context_spread], ["v_ctx"], given(1000, spreads[0], 600, spreads[1]))["v_ctx"]
    assert found == pytest.approx(contexts.std() / contexts.mean(), rel=0.02)


@pytest.mark.parametrize("square", [0.0, 0.4, 1.0])
def test_time_that_grows_with_the_square_of_a_length_varies_more(square):
    """Times of drawn lengths, of which a share goes as their square."""
    drawn = lengths(100_000, 0.5, 2_000_000, np.random.default_rng(2)) / 100_000
    times = (1 - square) * drawn + square * drawn**2 / 1.25
    found = scalar([occupancy_spread], ["v_occ"], {"r_quad": square, "v_in": 0.5})["v_occ"]
    assert found == pytest.approx(times.std() / times.mean(), rel=0.02)


@pytest.mark.parametrize("grows", [0.0, 0.3, 0.7])
def test_the_share_of_time_with_too_many_in_flight(grows):
    """Against the product of n/(x T(n)) summed term by term, T(n) = a + b n."""
    number = np.arange(1, 2000)
    mean_wanted, each = 40.0, grows / (1 - grows) / 40.0
    low, high = 0.0, 1 / each if each else 1e3
    for _ in range(100):
        load = (low + high) / 2
        terms = np.concatenate([[0.0], np.cumsum(np.log(load * (1 + each * number) / number))])
        share = np.exp(terms - terms.max())
        share /= share.sum()
        mean = float(share @ np.arange(share.size))
        low, high = (load, high) if mean < mean_wanted else (low, load)
    for room in (40, 55, 80):
        exact = float(share[room + 1 :].sum())
        found = overflow_probability(*map(np.array, (mean_wanted, 1 / (1 - grows), room)))
        assert float(found) == pytest.approx(exact, rel=0.15, abs=1e-3)


@pytest.mark.parametrize(("spreads", "each"), [((0.0, 0.0), 0.0), ((1.0, 0.5), 0.0),
                                               ((0.5, 0.5), 1e-4)])  # fmt: skip
def test_the_cache_of_a_rank_is_too_small_as_often_as_simulated(spreads, each):
    """Every cached token of requests at random, where steps grow with them and where not."""
    steps = 10e-3 + each * np.arange(1000)
    mean, prompt, answer = 60.0, 800.0, 200.0
    symbols = given(prompt, spreads[0], answer, spreads[1])
    grows = each * mean / (10e-3 + each * mean)
    spread = scalar([context_spread, room_spread], ["x_need"],
                    {**symbols, "x_var": 1 / (1 - grows)})["x_need"]  # fmt: skip
    rate = mean / ((answer - 1) * float(steps[60]))
    for room in (75, 85):
        rank = Rank(steps, room * symbols["L_ctx"], np.zeros(1))
        seen = witnessed(
            alone(rank, rate, (prompt, spreads[0]), (answer, spreads[1])), 30_000, room
        )
        at = [np.array(x) for x in (seen.decoding, spread, room - 0.5)]
        share = float(overflow_probability(*at))
        assert seen.decoding == pytest.approx(mean, rel=0.05)
        assert share == pytest.approx(seen.crowded, rel=0.3, abs=4 * seen.crowded_error)


@pytest.mark.parametrize(("busy", "spread", "chunk", "grows"), [
    (0.3, 0.0, 8192, 0.3), (0.6, 0.5, 8192, 0.3), (0.8, 0.5, 8192, 0.3), (0.6, 0.0, 256, 0.0),
])  # fmt: skip
def test_room_of_ranks_that_read_prompts_as_well(busy, spread, chunk, grows):
    """Prompts hold up what decodes: mean and variance of the sequences, each with its error."""
    rate, prompt, answer, pause = 10.0, 1000, 800, 0.005
    flat = 1e9 if not grows else rate * (answer - 1) * pause / (1 - busy) * (1 - grows) / grows
    steps = pause * (1 - grows) * (1 + np.arange(20_000) / flat)
    reading = busy / rate / prompt * np.arange(chunk + 1)
    rank = Rank(steps, 1e9, reading)
    dealt = rate * (answer - 1) * pause / (1 - busy)
    symbols = {"r_pf": busy, "v_in": spread, "v_out": spread, "n_dealt": dealt, "dp": 1.0,
               "x_var": 1 / (1 - grows), "one_seq": 1.0, "v_ctx": 0.0}  # fmt: skip
    values = scalar([reading_spread, reading_line, met_sequences, room_spread],
                    ["n_met", "x_need"], symbols)  # fmt: skip
    seen = [
        witnessed(alone(rank, rate, (prompt, spread), (answer, spread)), 40_000, seed)
        for seed in range(3)
    ]
    mean = np.mean([each.decoding for each in seen])
    ratio = np.mean([each.variance / each.decoding for each in seen])
    assert mean == pytest.approx(values["n_met"], rel=0.05)
    assert 0.85 * ratio < values["x_need"] < 1.35 * ratio
