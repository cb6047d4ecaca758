"""A prompt's own time and that of its passes, and first tokens in a closed loop."""

import numpy as np
import pytest

from formulas.numerics.evaluate import kernel
from formulas.serving.closed_loop import CLOSED_LOOP, loop_first_token
from formulas.serving.prefill import PREFILL

LOWERED = kernel([*PREFILL, *CLOSED_LOOP], ["T_pf", "T_pf_pass", "T_pf_each", "x_fill"])
DRAW = np.random.default_rng(11)


def drawn(**given):
    """A value of order one for every symbol that the equations take."""
    return {name: given.get(name, DRAW.uniform(0.5, 2.0)) for name in LOWERED.names}


@pytest.mark.parametrize("_", range(20))
def test_a_prompt_is_its_passes_and_itself(_):
    """The two parts into which a loop divides a prompt add up to what reads it."""
    found = LOWERED(**drawn(x_hit=0.2, L_in=50.0, c_chunk=8.0, n_half=1.0))
    assert found["T_pf_pass"] + found["T_pf_each"] == pytest.approx(found["T_pf"], rel=1e-12)


def test_prompts_that_fill_their_passes_share_none():
    """2,048 tokens are half of two passes of 2,048 each, and all of one."""
    assert LOWERED(**drawn(x_hit=0.0, L_in=2048.0, c_chunk=2048.0))["x_fill"] == 1
    assert LOWERED(**drawn(x_hit=0.0, L_in=512.0, c_chunk=2048.0))["x_fill"] == 0.25


def test_nobody_waits_alone():
    """Without others, without being held and with room a first token comes as ever."""
    loop = kernel([loop_first_token], ["T_loop"])
    values = dict.fromkeys(loop.names, 2.0)
    alone = loop(**{**values, "n_ahead": 0.0, "n_back": 0.0, "n_rounds": 0.0, "T_ttft": 3.0})
    assert alone["T_loop"] == 3.0


def test_a_round_waited_is_the_residence_of_another():
    """With one round a request waits for a first token and all tokens of another, then its own."""
    loop = kernel([loop_first_token], ["T_loop"])
    values = dict.fromkeys(loop.names, 2.0) | {"one_seq": 1.0, "n_ahead": 0.0, "n_back": 0.0}
    once, twice = (loop(**{**values, "n_rounds": n})["T_loop"] for n in (0.0, 1.0))
    assert twice - once == pytest.approx(values["T_ttft"] + values["L_out"] * values["T_tpot"])
