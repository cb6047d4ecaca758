"""Monomials in place of terms outside geometric programs: chords below, tangents at a plan.

Coverage, the sequences other than one's own and what on-chip memory leaves to read are no
posynomials. A chord on an interval lies below a log-log concave term, so a bound stays one; a
tangent has the term's value and slope, so an elasticity stays exact.
"""

import math

import numpy as np

from planner.problems.serving.step.kernels import feed, get_kernel
from planner.problems.serving.step.step import Step

MIN_SHARE = 1e-9  # of a step's traffic, where on-chip memory holds all of it
MIN_INTERVAL_RATIO = 1 + 1e-5  # a chord needs two ends
LARGEST_LOG = 700.0  # of a number
MAX_BYTES_MOVED = 1e18  # bytes of one step, beyond any machine
# Share of the experts that decoding leaves to a pass, where it reads about all.
MIN_EXPERT_SHARE = 1e-12
UNBOUNDED_CHUNK = 1e30  # tokens of a chunk that is never full


def chords(values: dict[str, float], low: float, high: float, mode: str) -> dict[str, float]:
    """Under-estimates on [low, high]: coverage, and the other sequences of the batch.

    Open arrivals meet all of the batch; that all but one are met is then an under-estimate too.
    Coverage is one of the sequences of a copy of the experts, at least one and a share of 1/cp.
    """
    ends = np.array([low, high])
    seen = np.maximum(ends / values["cp"], [1.0, MIN_INTERVAL_RATIO])
    others = np.maximum(ends - 1.0, 0.0)
    c_others, s_others = _line(ends, others) if others[0] > 0 else (0.0, 1.0)
    # A rank has its share of a stage's sequences; fewer than one of them count as they are.
    ranks = ends / [values["most_dp"], values["least_dp"]]
    c_pass, s_pass = _falling(ranks, shared_passes(values, ranks, mode))
    most = _seen(values, np.ceil(ends[1:] / values["cp"]))
    return {
        **_covered(values, seen, seen), "c_others": c_others, "s_others": s_others,
        "c_pass": c_pass, "s_pass": -s_pass,
        # Falls ever faster with the batch: its value at `high` is a lower bound on the interval.
        "c_left": max(1.0 - float(most[0]), MIN_EXPERT_SHARE), "s_left": 0.0,
    }  # fmt: skip


def tangents(values: dict[str, float], batch: float, mode: str) -> dict[str, float]:
    """Monomials in B that touch at this batch: coverage, passes, sequences a request meets."""
    near = batch * np.array([1 - 1e-6, 1 + 1e-6])
    seen = near / (values["pp"] * values["cp"])
    ranks = near / (values["pp"] * values["dp"])
    room = values["L_in"] * (1 - values["x_hit"]) / values["c_chunk"]
    c_pass, s_pass = _falling(ranks, np.maximum(shared_passes(values, ranks, mode), room))
    left = 1.0 - _seen(values, seen)
    c_left, s_left = _falling(near, left) if left[1] > MIN_EXPERT_SHARE else (MIN_EXPERT_SHARE, 0.0)
    met = batch - values["x_own"]
    s_others = batch / met
    return {
        **_covered(values, near, seen), "c_others": met / batch**s_others, "s_others": s_others,
        "c_pass": c_pass, "s_pass": -s_pass, "c_left": c_left, "s_left": -s_left,
    }  # fmt: skip


def shared_passes(values: dict[str, float], sequences: np.ndarray, mode: str) -> np.ndarray:
    """Passes of a prompt by sequences of a rank: shared passes by share, unbounded chunks.

    Prompts come out of step, or together: both are log-log concave in the sequences.
    """
    row = {**values, "B": sequences, "pp": 1.0, "dp": 1.0, "L_new": 1.0, "c_chunk": UNBOUNDED_CHUNK}
    return np.asarray(feed(get_kernel("passes", mode), row)["n_shared"])


def _covered(values: dict[str, float], at: np.ndarray, sequences: np.ndarray) -> dict[str, float]:
    drafted = values["k_draft"] / values["e_draft"]
    c_cov, s_cov = _line(at, _seen(values, sequences))
    c_seen, s_seen = _line(at, _coverage(drafted, sequences))
    return {"c_cov": c_cov, "s_cov": s_cov, "c_seen": c_seen, "s_seen": s_seen}


def _seen(values: dict[str, float], sequences: np.ndarray) -> np.ndarray:
    positions = sequences * values["m_pos"] / values["n_half"]
    return _coverage(values["k_experts"] / values["n_experts"], positions)


def _coverage(picked: float, positions: np.ndarray) -> np.ndarray:
    return picked * positions / (1 - picked + picked * positions)


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    slope = float(np.log(y[1] / y[0]) / np.log(x[1] / x[0]))
    return float(y[0] / x[0] ** slope), slope


def _falling(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    return _line(x, np.minimum.accumulate(y))


def min_cache_miss_share(values: dict[str, float]) -> float:
    """Least share of a step's traffic that on-chip memory cannot hold, over a group."""
    least = (values["S_fixed"] / values["tp"]) + values["S_routed"] * values["k_experts"] / (
        values["n_experts"] * values["tp"] * values["most_dp"]
    )
    return max(MIN_SHARE, 1.0 - values["most_pp"] * values["M_sram"] / least)


def cache_miss_monomial(step: Step, batch: float) -> dict[str, float]:
    """The monomial in a step's traffic that touches what on-chip memory cannot hold of it."""
    if not step.bound:
        return {}
    row = step.values(np.array([batch]))
    row["b_rank"] = batch / (row["pp"] * row["dp"])
    row["b_own"] = row["b_rank"] / row["cp"]
    moved = feed(get_kernel("traffic"), row)
    bytes_moved = float(np.ravel(moved["V_w_bound"] + moved["V_kv_dec"])[0])
    left = bytes_moved - float(step.layouts.pp[0]) * float(row["M_sram"])
    if left <= MIN_SHARE * bytes_moved:
        return {"unsaved": MIN_SHARE, "steep": 1.0, "most_moved": MAX_BYTES_MOVED}
    # With hardly any traffic left, the exponent is the largest whose power fits a float.
    steep = min(bytes_moved / left, LARGEST_LOG / math.log(MAX_BYTES_MOVED))
    return {"unsaved": left / bytes_moved**steep, "steep": steep, "most_moved": MAX_BYTES_MOVED}
