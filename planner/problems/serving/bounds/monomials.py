"""Monomials in place of what a geometric program cannot hold: chords below, tangents at a plan.

Coverage, the sequences other than one's own and what on-chip memory leaves to read are no
posynomials. A chord on an interval lies below a log-log concave term, so a bound stays one; a
tangent has the term's value and slope, so an elasticity stays exact.
"""

from __future__ import annotations

import numpy as np

from planner.problems.serving.step.kernels import fed, lowered
from planner.problems.serving.step.step import Step

LEAST_SHARE = 1e-9  # of a step's traffic, where on-chip memory holds all of it
ROOM = 1 + 1e-5  # a chord needs two ends
MOST_MOVED = 1e18  # bytes of one step, beyond any machine


def chords(values: dict[str, float], low: float, high: float) -> dict[str, float]:
    """Under-estimates on [low, high]: coverage, and sequences other than one's own.

    Open arrivals meet all of the batch; that all but one are met is then an under-estimate too.
    Coverage is one of the sequences of a copy of the experts, at least one and a share of 1/cp.
    """
    ends = np.array([low, high])
    seen = np.maximum(ends / values["cp"], [1.0, ROOM])
    others = np.maximum(ends - 1.0, 0.0)
    c_others, s_others = _line(ends, others) if others[0] > 0 else (0.0, 1.0)
    return {**_covered(values, seen, seen), "c_others": c_others, "s_others": s_others}


def tangents(values: dict[str, float], batch: float) -> dict[str, float]:
    """Monomials in B that touch coverage and the sequences a request meets at this batch."""
    near = batch * np.array([1 - 1e-6, 1 + 1e-6])
    seen = near / (values["pp"] * values["cp"])
    covered = _covered(values, near, seen)
    met = batch - values["x_own"]
    s_others = batch / met
    return {**covered, "c_others": met / batch**s_others, "s_others": s_others}


def _covered(values: dict[str, float], at: np.ndarray, sequences: np.ndarray) -> dict[str, float]:
    """Monomials in the batch `at` through the coverages of a step and of a pass of its drafter."""
    picked = values["k_experts"] / values["n_experts"]
    drafted = values["k_draft"] / values["e_draft"]
    c_cov, s_cov = _line(at, _coverage(picked, sequences * values["m_pos"] / values["n_half"]))
    c_seen, s_seen = _line(at, _coverage(drafted, sequences))
    return {"c_cov": c_cov, "s_cov": s_cov, "c_seen": c_seen, "s_seen": s_seen}


def _coverage(picked: float, positions: np.ndarray) -> np.ndarray:
    """Share of the experts that so many positions read, each picking this share of them."""
    if picked >= 1:
        return np.ones_like(positions)
    return -np.expm1(positions * np.log1p(-picked))


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Coefficient and exponent of the monomial through two points."""
    slope = float(np.log(y[1] / y[0]) / np.log(x[1] / x[0]))
    return float(y[0] / x[0] ** slope), slope


def least_unsaved(values: dict[str, float]) -> float:
    """Least share of a step's traffic that on-chip memory cannot hold, over a group."""
    least = (values["S_fixed"] / values["tp"]) + values["S_routed"] * values["k_experts"] / (
        values["n_experts"] * values["tp"] * values["most_dp"]
    )
    return max(LEAST_SHARE, 1.0 - values["most_pp"] * values["M_sram"] / least)


def unsaved(step: Step, batch: float) -> dict[str, float]:
    """The monomial in a step's traffic that touches what on-chip memory cannot hold of it."""
    if not step.bound:
        return {}
    row = step.values(np.array([batch]))
    row["b_rank"] = batch / (row["pp"] * row["dp"])
    row["b_own"] = row["b_rank"] / row["cp"]
    moved = fed(lowered("traffic"), row)
    bytes_moved = float(np.ravel(moved["V_w_bound"] + moved["V_kv_dec"])[0])
    left = bytes_moved - float(step.layouts.pp[0]) * float(row["M_sram"])
    if left <= LEAST_SHARE * bytes_moved:
        return {"unsaved": LEAST_SHARE, "steep": 1.0, "most_moved": MOST_MOVED}
    steep = bytes_moved / left
    return {"unsaved": left / bytes_moved**steep, "steep": steep, "most_moved": MOST_MOVED}
