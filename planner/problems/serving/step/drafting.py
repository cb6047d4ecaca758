"""The drafter of a step in symbols: reads, arithmetic, messages and launches of a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.problems.serving.step.kernels import feed, get_kernel

if TYPE_CHECKING:
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.step.step import Step
    from planner.problems.serving.task.task import Task

# Symbols of a step without a drafter; without experts any k < E keeps coverage finite.
NO_DRAFTER_VALUES = dict.fromkeys(
    ("n_draft", "S_draft", "S_draft_x", "N_draft", "N_draft_lay", "N_draft_x", "b_draft",
     "R_draft", "c_draft", "A_draft", "n_draft_moe", "n_draft_lay"), 0.0,
) | {"k_draft": 1.0, "e_draft": 2.0, "h_draft": 1.0}  # fmt: skip


def drafter_values(task: Task) -> dict[str, float]:
    """Values of the symbols of a drafter that no layout changes, by symbol name."""
    drafter = task.drafter
    if drafter is None:
        return NO_DRAFTER_VALUES
    plain = [c for c in drafter.caches if c.limit is None]
    bounded = [(c, np.minimum(task.context, float(c.limit))) for c in drafter.caches if c.limit]
    share = drafter.share
    return {
        "n_draft": task.positions_per_step - 1.0,
        "S_draft": drafter.read,
        "S_draft_x": drafter.routed_read,
        "N_draft": drafter.passed,
        "N_draft_lay": drafter.layers_passed,
        "N_draft_x": drafter.routed_passed,
        "b_draft": share * sum(c.bytes_per_token for c in plain),
        "R_draft": share * sum(c.bytes_per_token * reach for c, reach in bounded),
        "c_draft": share * sum(c.flop_per_cached_token for c in plain),
        "A_draft": share * sum(c.flop_per_cached_token * reach for c, reach in bounded),
        "n_draft_moe": float(drafter.moe_layers),
        "n_draft_lay": float(drafter.layers),
        "k_draft": float(drafter.experts_active or 1),
        "e_draft": float(drafter.experts or 2),
        "h_draft": float(drafter.hidden),
    }


def resident(task: Task) -> dict[str, float]:
    """Memory added by a drafter: weights [byte], KV cache per token [byte/token] or in total."""
    drafter = task.drafter
    if drafter is None:
        return {}
    growing = sum(c.bytes_per_token for c in drafter.caches if c.grows)
    bounded = sum(
        c.bytes_per_token * np.minimum(task.context, float(c.limit))
        for c in drafter.caches
        if c.limit is not None and not c.grows
    )
    return {
        "M_fixed": drafter.resident,
        "M_routed": drafter.routed_resident,
        "b_store": drafter.share * growing,
        "R_bnd_mem": drafter.share * bounded,
    }


def draft_collectives(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """All-reduces and exchanges of one pass, each of shape (n_layouts,).

    A layer adds up after attention and after a feed-forward part that the ranks of attention share.
    """
    drafter = task.drafter
    layers, sparse = (drafter.layers, drafter.moe_layers) if drafter else (0, 0)
    copied = layouts.dp_attention > 1
    sums = np.where(copied, 2 * layers - sparse, 2 * layers)
    return {
        "n_draft_ar": np.where(layouts.tp > 1, sums, 0).astype(float),
        "n_draft_a2a": np.where(copied, sparse, 0).astype(float),
    }


def break_even(step: Step, batch: float) -> tuple[float, float]:
    """Range of sequences per replica over which a layout's drafts pay; (0, inf) if always.

    `step` holds one layout. Its times are taken to be a fixed part and one proportional to the
    batch, as they are between this batch and twice of it; (0, 0) where drafts never pay.
    """
    task, twice = step.task, np.array([batch, 2 * batch])
    alone = task.with_layout(positions_per_step=1.0, tokens_per_step=1.0, drafter=None)
    rows = np.zeros(2, dtype=int)
    plain, drafted = (
        type(step)(way, step.layouts.take(rows), bound=False).work(twice) for way in (alone, task)
    )
    drafts = task.positions_per_step - 1.0
    t_const, t_each = _affine(plain["step"], batch)
    passes = _affine(drafted["part.drafts"] / drafts, batch)
    checked = _affine((drafted["step"] - drafted["part.drafts"] - plain["step"]) / drafts, batch)
    symbols = {
        "t_const": t_const, "t_each": t_each, "t_check": checked[1],
        "t_draft_const": passes[0] + checked[0], "t_draft_each": passes[1], "n_draft": drafts,
        "g": task.tokens_per_step, "one_seq": 1.0, "one_token": 1.0,
    }  # fmt: skip
    gain = task.tokens_per_step - 1.0
    even = max(float(feed(get_kernel("break_even"), symbols)["B_even"]), 0.0)
    # Drafts that save time per sequence pay above the break-even batch, all others below it.
    return (even, np.inf) if drafts * (checked[1] + passes[1]) < gain * t_each else (0.0, even)


def _affine(times: np.ndarray, batch: float) -> tuple[float, float]:
    """The fixed part [s] and that per sequence [s/seq] of times at a batch and at twice it."""
    slope = max(float(times[1] - times[0]) / batch, 0.0)
    return max(float(times[0]) - slope * batch, 0.0), slope


def with_accepted(
    task: Task, name: str, ends: tuple[Any, Any], prices: tuple[Any, Any]
) -> tuple[Any, Any]:
    """A band, as ratios, with the range of accepted lengths in it; both are off independently.

    A time per token falls as a step brings more, a price by decoding's share of it. `prices` are
    those of an input and of an output token, None where there is none.
    """
    read, made = (0.0 if price is None else price for price in prices)
    made = made * task.output_tokens
    paid = made + read * task.input_tokens
    share = 1.0 if name == "tpot" else made / paid if name == "usd_per_mtok" else 0.0
    low, high = np.log(ends[0]), np.log(ends[1])
    fewer, more = np.log(task.accepted_range)
    less = np.hypot(low, share * more) - np.abs(low)
    return np.exp(low - less), np.exp(high + np.hypot(high, share * fewer) - np.abs(high))
