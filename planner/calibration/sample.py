"""Which measured rows a profile may be fitted on, and what is left out, by reason.

A row that no steady decoding explains is left out and counted, never absorbed: prompts that queue
because the engine decodes fewer requests than are sent, rows faster than the bound, repeats, and
rows in which tokens were speculated without the table saying so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.features import Features, features
from planner.calibration.ideal import bound_of
from planner.calibration.measurements import Measurement
from planner.calibration.squares import solve

__all__ = ["Sample", "runs_sample", "steady_sample"]

TTFT_WEIGHT = 0.3  # first tokens under load hold queueing that no coefficient describes
IN_FLIGHT = 0.5  # least share of the requests sent that must be decoding
SPECULATED = 0.85  # a group this much faster than the fit of the others speculates
MAY_SPECULATE = ("trtllm-2026",)  # engines whose tables mix rows with and without speculation
DECODE = ("tpot", "step")


@dataclass(frozen=True)
class Sample:
    """Rows with their columns, times [s] and weights, and how many were left out, by reason.

    `aside` holds the rows in which tokens seem to be speculated: not fitted, but scored.
    """

    rows: tuple[Measurement, ...]
    columns: Features
    seconds: np.ndarray
    weights: np.ndarray
    left_out: dict[str, int]
    aside: tuple[Measurement, ...] = ()

    def take(self, mask: np.ndarray) -> Sample:
        """Some of the rows, by mask or index."""
        index = np.arange(len(self.rows))[mask]
        return replace(
            self,
            rows=tuple(self.rows[i] for i in index),
            columns=self.columns.take(index),
            seconds=self.seconds[index],
            weights=self.weights[index],
        )

    def column(self, name: str) -> np.ndarray:
        """An attribute of every row."""
        return np.array([getattr(row, name) for row in self.rows])

    @property
    def decodes(self) -> np.ndarray:
        """Mask of the rows that time tokens, the others time prompts."""
        return np.isin(self.column("quantity"), DECODE)


def runs_sample(rows: Sequence[Measurement]) -> Sample:
    """Runs of whole engines that may be fitted: TPOT and TTFT of each."""
    pairs: dict[str, dict[str, Measurement]] = defaultdict(dict)
    for row in rows:
        pairs[row.id][row.quantity] = row
    left_out: Counter[str] = Counter()
    kept: list[Measurement] = []
    for pair in pairs.values():
        reason = _refused(pair["tpot"], pair["ttft"])
        if reason:
            left_out[reason] += 1
        else:
            kept += [pair["tpot"], pair["ttft"]]
    sample = _sample(kept, dict(left_out))
    return _without_speculation(sample)


def steady_sample(rows: Sequence[Measurement], engine: str) -> Sample:
    """Clean steady batches of one engine on machines whose network is known."""
    left_out: Counter[str] = Counter()
    kept = []
    for row in rows:
        if row.engine != engine or not row.quality.startswith("clean"):
            continue
        if row.layout is None or row.drafts or (row.machine is None and row.chips > 1):
            left_out["layout or network not known"] += 1
        elif row.machine is None:
            left_out["not a data-centre chip with a network"] += 1
        else:
            kept.append(row)
    return _sample(kept, dict(left_out))


def _sample(rows: Sequence[Measurement], left_out: dict[str, int]) -> Sample:
    seconds = np.array([row.seconds for row in rows])
    prompts = np.array([row.quantity == "ttft" and row.looped for row in rows])
    return Sample(
        tuple(rows), features(rows), seconds, np.where(prompts, TTFT_WEIGHT, 1.0), left_out
    )


def _refused(token: Measurement, prompt: Measurement) -> str | None:
    if token.quality == "wip":
        return "marked unfinished"
    decoding = token.output * token.seconds
    share = decoding / (decoding + prompt.seconds)
    if share < IN_FLIGHT:
        return "more requests sent than decoded: the prompts queue"
    steady = replace(token, quantity="step", batch=max(1.0, share * token.batch))
    if token.seconds < bound_of(steady):
        return "faster than the bound"
    return None


def _without_speculation(sample: Sample) -> Sample:
    """Set aside the groups that only speculation explains: a latent choice, made once per group."""
    tokens = sample.take(sample.column("quantity") == "tpot")
    keys = np.array([_group(row) for row in tokens.rows])
    suspects = {
        key
        for key, row in zip(keys, tokens.rows, strict=True)
        if row.engine in MAY_SPECULATE and row.sizes.mtp_blocks
    }
    found: set[str] = set()
    for _ in range(4):
        known = tokens.take(~np.isin(keys, list(found)))
        x = solve(known.columns, known.seconds)
        ratio = tokens.seconds / (tokens.columns.matrix @ x + tokens.columns.rest)
        found = {key for key in suspects if np.median(ratio[keys == key]) < SPECULATED}
    mask = np.array([_group(row) in found for row in sample.rows])
    aside = tuple(row for row, out in zip(sample.rows, mask, strict=True) if out)
    reason = {"tokens seem to be speculated": len(aside) // 2}
    return replace(sample.take(~mask), aside=aside, left_out={**sample.left_out, **reason})


def _group(row: Measurement) -> str:
    return f"{row.group} {row.precision} {row.version}"
