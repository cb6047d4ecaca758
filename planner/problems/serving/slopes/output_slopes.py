"""Elasticities of every output of a plan, from those of its times: the outputs' own equations.

What a given does to the times of a pool comes in; how price, rates and energy follow is read off
the tape of the equations that compute them.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from formulas.numerics.tape import Tape
from planner.problems.serving.outputs import ABSENT, OUTPUTS
from planner.problems.serving.slopes.batch_response import ACTIVE, FixedLayout, Response
from planner.problems.serving.slopes.directional_derivatives import (
    Directions,
    slopes_at,
    symbol_slopes,
)
from planner.problems.serving.step.kernels import lowered

# What the equations call the outputs that they give, beside a time and a batch that are followed.
NAMES = {x.name: x.word for x in OUTPUTS if x.name not in ("tpot", "batch")}
NOISE = 1e-14  # of terms that cancel
PAID = {"p_chip": "chip_price", "p_power": "chip_power_price"}  # that follow the power drawn
SHARED = ("L_in", "L_out", "L_dec", "m_grid")  # by two pools
POWERLESS = 1.0  # W; where no power is known its elasticities are those of any


def one_pool_slopes(
    pool: FixedLayout, response: Response, directions: Directions, *, resized: bool
) -> dict[str, np.ndarray]:
    """Elasticities of the outputs of one pool by all givens, shape (2, n_givens) each.

    Where it is `resized` replicas and chips follow the load, and stay as full as they are.
    """
    task, values, slopes = pool.task, response.values, response.slopes
    symbols = {
        "P_chip": POWERLESS, **pool.row, "T_slot": values["slot"], "T_pf_busy": values["busy"],
        "T_first": values["ttft"], "T_tpot": values["tpot"], "r_fill": 1.0,
    }  # fmt: skip
    moved = {
        "T_slot": slopes["slot"], "T_pf_busy": slopes["busy"], "T_first": slopes["ttft"],
        "T_tpot": slopes["tpot"],
    }  # fmt: skip
    if "watts" in values:
        symbols["P_chip"], moved["P_chip"] = values["watts"], slopes["watts"]
    for name, word in PAID.items():
        if word in values:
            symbols[name], moved[name] = values[word], slopes[word]
    if resized:
        follow = symbol_slopes(directions, "X_arr") + slopes["slot"]
        moved |= {"n_rep": follow, "n_chips": follow}
    tape = lowered(
        "pool_from_times", task.mode, "none" if resized else task.load, *NAMES.values()
    ).tape
    direct = {name: symbol_slopes(directions, name) + 0.0 * slopes["slot"] for name in _names(tape)}
    out = _composed(tape, symbols, {**direct, **moved})
    present = {name: word for name, word in NAMES.items() if name not in ABSENT[task.mode]}
    answer = {name: out[word] for name, word in present.items() if word in out}
    if task.mode != "prefill":
        answer["tpot"] = slopes["tpot"]
    return {**answer, "batch": slopes["batch"]}


def two_pool_slopes(
    pools: Sequence[FixedLayout],
    responses: Sequence[Response],
    directions: Sequence[Directions],
    requests: np.ndarray,
    chips: Sequence[np.ndarray],
    weights: Sequence[float],
    transfer: tuple[float, np.ndarray],
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Times of two pools [s], and elasticities of their outputs, shape (2, n_givens) each.

    `requests` are the slopes of the rate of both, `chips` those of either pool's chips, `weights`
    how many chips each has beside the other; `transfer` is the cache's way [s] and its slopes.
    """
    first, second = responses
    symbols = {
        "one_seq": 1.0, "X_arr": 1.0, "T_ttft": first.values["ttft"], "T_wait": 0.0,
        "T_move": transfer[0], "T_tpot": second.values["tpot"],
        **{name: pools[1].row[name] for name in SHARED},
    }  # fmt: skip
    flat = 0.0 * requests
    moved = {
        "X_arr": requests, "T_ttft": first.slopes["ttft"], "T_move": transfer[1] + flat,
        "T_tpot": second.slopes["tpot"],
        **{name: symbol_slopes(directions[1], name) + flat for name in SHARED},
    }  # fmt: skip
    for place, name in enumerate(("pf", "dec")):
        row, turned = pools[place].row, directions[place]
        symbols[f"n_chips_{name}"] = weights[place]
        moved[f"n_chips_{name}"] = chips[place]
        for symbol in ("p_chip", "P_chip", "p_power"):
            symbols[f"{symbol}_{name}"] = row.get(symbol, POWERLESS)
            moved[f"{symbol}_{name}"] = symbol_slopes(turned, symbol) + flat
        response = responses[place]
        for symbol, word in {"P_chip": "watts", **PAID}.items():
            if word in response.values:
                symbols[f"{symbol}_{name}"] = response.values[word]
                moved[f"{symbol}_{name}"] = response.slopes[word]
    out = _composed(lowered("pools", "given", *NAMES.values()).tape, symbols, moved)
    elasticities = {name: out[word] for name, word in NAMES.items()}
    elasticities |= {"tpot": second.slopes["tpot"], "batch": second.slopes["batch"]}
    late = first.values["ttft"] + transfer[0]
    return {"ttft": late, "tpot": second.values["tpot"]}, elasticities


def slower_rate_slopes(
    rates: tuple[float, float], slots: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Slopes of the rate of the slower of two pools, from those of their slot times."""
    level = abs(math.log(rates[0] / rates[1])) <= ACTIVE
    symbols = {"n_pf": 1.0, "n_dec": 1.0, "X_pf": rates[0], "X_dec": rates[0 if level else 1]}
    return _composed(lowered("slower_rate").tape, symbols, {"X_pf": -slots[0], "X_dec": -slots[1]})[
        "requests"
    ]


def _composed(
    tape: Tape, symbols: Mapping[str, float], moved: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Elasticities of the outputs of a tape whose symbols move so, shape (2, n_givens): chained."""
    sides = []
    for side in (0, 1):
        columns = {name: slope[side] for name, slope in moved.items() if slope[side].any()}
        count = next(iter(moved.values())).shape[1]
        directions = {
            str(i): {name: float(column[i]) for name, column in columns.items() if column[i]}
            for i in range(count)
        }
        _, slopes = slopes_at(tape, symbols, symbols.get("B", 1.0), directions)
        sides.append({name: slope[side, :-1] for name, slope in slopes.items()})
        for slope in sides[-1].values():
            slope[np.abs(slope) < NOISE] = 0.0
    return {name: np.stack([sides[0][name], sides[1][name]]) for name in sides[0]}


def _names(tape: Tape) -> list[str]:
    """Symbols that the tape asks for, the batch apart."""
    return [name for name in tape.arguments if name != "B"]
