"""First tokens in a closed loop."""

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel
from formulas.serving.closed_loop import filled_passes, loop_first_token, prompt_ahead, work_ahead
from formulas.serving.passes import pass_weights
from formulas.serving.prefill import PREFILL
from tests.loops import for_all

READ = (*PREFILL, pass_weights, filled_passes, work_ahead, prompt_ahead)
LOWERED = kernel(READ, ["T_pf", "T_ahead"])
DRAW = np.random.default_rng(11)


def drawn(**given):
    """A value of order one for every symbol that the equations take, below it for a share."""
    given = {"x_store": 0.5, **given}
    return {name: given.get(name, DRAW.uniform(0.5, 2.0)) for name in LOWERED.names}


@for_all("draw", range(20))
def test_a_prompt_that_fills_its_passes_shares_none(draw):
    """Six full passes take as long behind others as alone, a tenth of a pass less."""
    full = LOWERED(**drawn(x_hit=0.0, L_in=48.0, c_chunk=8.0, n_half=1.0, v_in=0.0))
    assert full["T_ahead"] == pytest.approx(full["T_pf"], rel=1e-12)
    short = LOWERED(**drawn(x_hit=0.0, L_in=0.8, c_chunk=8.0, n_half=1.0, v_in=0.0))
    assert short["T_ahead"] < short["T_pf"]


def test_nobody_waits_alone():
    """Without others, without being held and with room a first token comes as ever."""
    loop = kernel([loop_first_token], ["T_loop"])
    values = dict.fromkeys(loop.names, 2.0)
    room = {"n_ahead": 0.0, "n_back": 0.0, "n_rounds": 0.0, "n_turns": 0.0, "T_ttft": 3.0}
    assert loop(**{**values, **room})["T_loop"] == 3.0


def test_a_round_waited_is_the_residence_of_another():
    """With one round a request waits for a first token and all tokens of another, then its own."""
    loop = kernel([loop_first_token], ["T_loop"])
    values = dict.fromkeys(loop.names, 2.0) | {"one_seq": 1.0, "n_ahead": 0.0, "n_back": 0.0}
    once, twice = (loop(**{**values, "n_rounds": n})["T_loop"] for n in (0.0, 1.0))
    assert twice - once == pytest.approx(values["T_ttft"] + values["L_out"] * values["T_tpot"])
