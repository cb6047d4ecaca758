"""What is left out of fits, how far predictions of it are off, and what bands follow.

Runs of a model on a chip under an engine share what no coefficient says, so each such group weighs
the same in a band, and in the error by groups, however many runs it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from planner.calibration.cross_validation import (
    COST,
    constant,
    folds,
    group_error,
    group_weights,
    mean_by_group,
    score,
    weights_of_groups,
)
from planner.calibration.sample import TTFT_WEIGHT, Sample, configuration_key
from planner.catalogue.coefficient_spread import (
    DISTANCE_ASSUMED,
    DISTANCE_POOLED,
    DISTANCES,
    IN_SAMPLE,
    NEW_ARCHITECTURE,
    NEW_CHIP,
    NEW_ENGINE,
    NEW_MODEL,
    NEW_PAIR,
    NEW_VERSION,
    Quantiles,
    RunContext,
)
from planner.catalogue.profile import COVERAGE
from planner.measurements.measurement import Measurement
from planner.text.tolerances import QUANTILE_90
from tools.fit.left_out_errors import Fit, SpreadLeftOut, leave_out
from tools.fit.shipped_profile import values_of

REPEATS = 5  # draws of folds, over which errors are means
FEW_DRAWS = 5  # sets left out, from which they tell a band of their own
NODE = 8  # chips
TAIL = (1 - COVERAGE) / 2
BATCHES = 4.0  # a range of batches holds those up to so many times its least


@dataclass(frozen=True)
class LeaveOut:
    """A way of leaving rows out: by what they share, a fifth of all values or each by itself.

    `regime` is the distance that such rows have from a fit of the others. A row whose key is empty
    is never left out.
    """

    word: str
    key: Callable[[Measurement, RunContext], str]
    regime: str
    by_fifths: bool = False

    def keys(self, sample: Sample) -> np.ndarray:
        """What is left out together, one name for each row; empty where it is never left out."""
        pairs = zip(sample.rows, sample.places, strict=True)
        return np.array([self.key(row, place) for row, place in pairs])

    def fold(self, sample: Sample, repeat: int = 0) -> np.ndarray:
        """A number for what is left out together, below zero for what never is."""
        keys = self.keys(sample)
        if self.by_fifths:
            return folds(keys, repeat=repeat)
        fold: np.ndarray = np.where(keys == "", -1, np.unique(keys, return_inverse=True)[1])
        return fold

    def predictions(
        self, sample: Sample, fit: Fit, sound: np.ndarray | None = None, repeat: int = 0
    ) -> SpreadLeftOut:
        """The rows that are left out, each predicted by a fit of `sound` rows unlike it."""
        return leave_out(sample, self.fold(sample, repeat), fit, sound)


def _range(row: Measurement, _: RunContext) -> str:
    return f"from {BATCHES ** np.floor(np.log(row.batch) / np.log(BATCHES) + 1e-9):g}"


LEAVE_OUTS = (
    LeaveOut("configurations", lambda row, _: configuration_key(row), IN_SAMPLE, by_fifths=True),
    LeaveOut("groups", lambda row, _: row.group, "groups", by_fifths=True),
    LeaveOut("models", lambda row, _: row.model, NEW_MODEL),
    LeaveOut("chips", lambda row, _: row.chip.name, NEW_CHIP),
    LeaveOut("architectures", lambda _, place: place.architecture, NEW_ARCHITECTURE),
    LeaveOut("engines", lambda _, place: place.engine, NEW_ENGINE),
    LeaveOut("engine-chips", lambda _, place: f"{place.engine} {place.chip}", NEW_PAIR),
    LeaveOut("versions", lambda _, place: f"{place.engine} {place.version}", NEW_VERSION),
    LeaveOut("formats", lambda _, p: f"{p.math} on {p.chip}", "new_format", by_fifths=True),
    LeaveOut("caches", lambda _, p: f"{p.cache} on {p.chip}", "new_cache", by_fifths=True),
    LeaveOut("batches", _range, "new_batch"),
    LeaveOut(
        "scale",
        lambda row, _: "more than a node" if row.chips > NODE and not row.looped else "",
        "new_scale",
    ),
)


# Models left out of a fit whose form was chosen among rivals without them too.
CHOSEN = LeaveOut("models, chosen", lambda row, _: row.model, "chosen", by_fifths=True)


@dataclass(frozen=True)
class LeaveOutScore:
    """How far predictions of rows left out are off, by rows and by groups that weigh the same.

    `draws` counts the values left out. `group_log` is the mean over groups of the median |ln
    (predicted / measured)|; `holds` the share of a group's rows inside a band made of the other
    draws, in the mean over groups, and `width` the median of its high over its low end.
    What is left out by fifths is so REPEATS times: errors are means over these, whose medians lie
    from `median_low` to `median_high`; the rest is of the first.
    """

    word: str
    quantity: str
    rows: int
    groups: int
    draws: int
    median: float
    mean: float
    within_10: float
    group_log: float
    constant_median: float
    constant_group_log: float
    roofline_median: float
    roofline_group_log: float
    holds: float
    width: float
    median_low: float
    median_high: float


@dataclass(frozen=True)
class Residuals:
    """ln (measured / predicted) of one quantity in standard deviations, shape (n_rows,).

    `draw` is what was left out, `group` the model, chip and engine, `row` the row of the sample.
    """

    error: np.ndarray
    sigma: np.ndarray
    draw: np.ndarray
    group: np.ndarray
    row: np.ndarray

    def take(self, mask: np.ndarray) -> Residuals:
        """Some of the rows."""
        return Residuals(*(values[mask] for values in vars(self).values()))

    @classmethod
    def joined(cls, parts: Iterable[Residuals]) -> Residuals:
        """The rows of several."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def scatter(self) -> float:
        """What the middle COVERAGE of known places is off beyond their standard deviation."""
        low, high = quantiles_by_group(self.error, self.group, (TAIL, 1 - TAIL))
        spread = ((high - low) / (2 * QUANTILE_90)) ** 2
        return max(spread - mean_by_group(self.sigma**2, self.group), 0.0) ** 0.5

    def ends(self, scatter: float) -> tuple[float, float, float]:
        """Quantiles that hold COVERAGE of the rows of a group to come (split conformal).

        Groups weigh the same and are what is drawn: of n of them, COVERAGE of those to come lies
        between ranks 0.1 (n + 1) and 0.9 (n + 1). The third number is the scatter.
        """
        n = float(weights_of_groups(self.group)[1].sum())
        level = max(TAIL * (n + 1) - 0.5, 0.0) / n
        z = self.error / np.hypot(self.sigma, scatter)
        low, high = quantiles_by_group(z, self.group, (level, 1 - level))
        return low, high, scatter


def quantiles_by_group(
    values: np.ndarray, group: np.ndarray, levels: Sequence[float]
) -> list[float]:
    """Quantiles of values whose groups weigh the same, those of fewer than FEW_ROWS less."""
    weight = group_weights(group)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order]) - weight[order] / 2
    return [float(x) for x in np.interp(levels, below, values[order])]


@dataclass(frozen=True)
class LeaveOutStudy:
    """Every way of leaving rows of a sample out, by word, each row predicted without its like.

    `repeats` are the estimates [s] of further draws of folds.
    """

    sample: Sample
    left: Mapping[str, SpreadLeftOut]
    residuals: Mapping[tuple[str, str], Residuals]
    repeats: Mapping[str, Sequence[np.ndarray]]

    @classmethod
    def of(cls, sample: Sample, fit: Fit, choosing: Fit | None = None) -> LeaveOutStudy:
        """All fits; `fit` makes one from the rows that it may see, `choosing` its form as well."""
        left, residuals, repeats = {}, {}, {}
        values = values_of(list(dict.fromkeys(sample.places)))
        for leave in (*LEAVE_OUTS, *([CHOSEN] if choosing else [])):
            fold = leave.fold(sample)
            says = leave.regime in values or leave.regime not in DISTANCES
            if len(np.unique(fold)) < 2 or not says:
                continue
            index = np.flatnonzero(fold >= 0)
            make = choosing if leave is CHOSEN and choosing else fit
            left[leave.word] = made = leave.predictions(sample, make).take(index)
            further = range(1, REPEATS) if leave.by_fifths and leave is not CHOSEN else ()
            repeats[leave.word] = [
                leave.predictions(sample, make, repeat=i).estimate[index] for i in further
            ]
            for quantity, rows in residuals_of(made, index).items():
                residuals[leave.word, quantity] = rows
        return cls(sample, left, residuals, repeats)

    def quantiles(self, assumed: SpreadLeftOut | None = None) -> Quantiles:
        """Ends of bands in standard deviations, by kind of distance and quantity.

        Parameters
        ----------
        assumed : rows that no fit saw, because numbers of them had to be worked out.
        """
        ends: dict[str, dict[str, tuple[float, float, float]]] = {}
        for leave in LEAVE_OUTS:
            for quantity in QUANTITIES:
                if (leave.word, quantity) in self.residuals:
                    basis, scatter = self._basis(leave.word, quantity)
                    ends.setdefault(leave.regime, {})[quantity] = basis.ends(scatter)
        if (LEAVE_OUTS[0].word, POOLED_TPOT) in self.residuals:
            basis, scatter = self._basis(LEAVE_OUTS[0].word, POOLED_TPOT)
            ends[DISTANCE_POOLED] = dict.fromkeys(("tpot", COST), basis.ends(scatter))
        if assumed is not None and assumed.covariances:
            parts = residuals_of(assumed, np.arange(len(assumed.fold)), apart=False)
            ends[DISTANCE_ASSUMED] = {q: rows.ends(self._scatter(q)) for q, rows in parts.items()}
        return ends

    def scores(self) -> list[LeaveOutScore]:
        """How far each is off, by way of leaving out and quantity."""
        return [
            self._score(leave, quantity)
            for leave in (*LEAVE_OUTS, CHOSEN)
            for quantity in (*QUANTITIES, POOLED_TPOT)
            if quantity != COST and (leave.word, quantity) in self.residuals
        ]

    def _basis(
        self, word: str, quantity: str, without: Sequence[int] = ()
    ) -> tuple[Residuals, float]:
        """The rows that a band is made of, and the scatter of known places, without some rows.

        Of many draws they are their own, of few those of all ways of leaving out.
        """
        rows = self.residuals[word, quantity]
        if len(np.unique(rows.draw)) < FEW_DRAWS:
            rows = self._joined(quantity, without)
            if len(np.unique(rows.group)) < FEW_DRAWS and quantity == POOLED_TPOT:
                rows = Residuals.joined((rows, self._joined("tpot", without)))
        return rows.take(~np.isin(rows.row, without)), self._scatter(quantity, without)

    def _joined(self, quantity: str, without: Sequence[int]) -> Residuals:
        parts = Residuals.joined(x for (_, name), x in self.residuals.items() if name == quantity)
        return parts.take(~np.isin(parts.row, without))

    def _scatter(self, quantity: str, without: Sequence[int] = ()) -> float:
        rows = self.residuals.get((LEAVE_OUTS[0].word, quantity))
        if rows is None:
            return 0.0
        rows = rows.take(~np.isin(rows.row, without))
        return rows.scatter() if len(rows.row) else 0.0

    def _score(self, leave: LeaveOut, quantity: str) -> LeaveOutScore:
        rows, left = self.residuals[leave.word, quantity], self.left[leave.word]
        at = np.searchsorted(np.flatnonzero(leave.fold(self.sample) >= 0), rows.row)
        part, group = left.take(at), rows.group
        seconds, roofs = part.sample.seconds, part.sample.columns.roofline
        estimates = [part.estimate, *(times[at] for times in self.repeats[leave.word])]
        errors = [score(times, seconds) for times in estimates]
        guesses = (constant(roofs, seconds, part.fold), roofs)
        logs = [group_error(times / seconds, group) for times in (*estimates, *guesses)]
        medians, means, near = (
            [getattr(error, name) for error in errors] for name in ("median", "mean", "within_10")
        )
        inside, widths = np.zeros(len(seconds)), np.zeros(len(seconds))
        for draw in np.unique(rows.draw):
            here = rows.draw == draw
            basis, scatter = self._basis(leave.word, quantity, rows.row[here].tolist())
            if len(basis.row):
                low, high, _ = basis.ends(scatter)
                sigma = np.hypot(rows.sigma[here], scatter)
                z = rows.error[here] / sigma
                inside[here] = (z >= low) & (z <= high)
                widths[here] = np.exp((high - low) * sigma)
        return LeaveOutScore(
            leave.word, quantity, len(seconds), len(np.unique(group)),
            len(np.unique(leave.keys(part.sample))),
            fmean(medians), fmean(means), fmean(near), fmean(logs[:-2]),
            score(guesses[0], seconds).median, logs[-2], score(roofs, seconds).median, logs[-1],
            mean_by_group(inside, group), float(np.median(widths)), min(medians), max(medians),
        )  # fmt: skip


QUANTITIES, POOLED_TPOT = ("tpot", "ttft", COST), "pooled tpot"


def residuals_of(
    left: SpreadLeftOut, index: np.ndarray, *, apart: bool = True
) -> dict[str, Residuals]:
    """Residuals by quantity of rows whose indices in the sample are `index`.

    Where `apart`, runs of two pools are a quantity of their own.
    """
    if left.shares is None:
        return {}
    rows, prompts = np.arange(len(left.fold)), left.sample.prompts
    pooled = left.sample.column("pooled") & apart
    sigma, error = left.sigma(left.shares, rows), np.log(left.ratio)
    group = left.sample.column("group")
    slots, ratio = left.slots
    masks = {"tpot": ~prompts & ~pooled, "ttft": prompts & ~pooled, POOLED_TPOT: ~prompts & pooled}
    residuals = {
        name: Residuals(error[mask], sigma[mask], left.fold[mask], group[mask], index[mask])
        for name, mask in masks.items()
        if mask.any()
    }
    alone = ~pooled[slots]
    if alone.any():
        wide = left.sigma(left.slot_shares(), slots)
        at = slots[alone]
        residuals[COST] = Residuals(
            np.log(ratio[alone]), wide[alone], left.fold[at], group[at], index[at]
        )
    return residuals


def inner_error(left: SpreadLeftOut) -> float:
    """How far rows of one pool are off: by groups and by rows, prompts weighing as in a fit."""
    sample, error = left.sample, 0.0
    group, alone = sample.column("group"), ~sample.column("pooled") & (left.fold >= 0)
    for mask, weight in ((~sample.prompts & alone, 1.0), (sample.prompts & alone, TTFT_WEIGHT)):
        if mask.any():
            estimate, seconds = left.estimate[mask], sample.seconds[mask]
            by_group = group_error(estimate / seconds, group[mask])
            error += weight * (by_group + score(estimate, seconds).mean)
    return error


def scores_text(scores: Iterable[LeaveOutScore]) -> str:
    """The scores as a table."""
    lines = [
        f"{'left out':15}{'quantity':12}{'rows':>6}{'groups':>7}{'draws':>6}  {'median':>6}"
        f"{'mean':>7}{'<10 %':>7}{'|log|':>7}  {'constant':>8}{'|log|':>7}  {'roofline':>8}"
        f"{'|log|':>7}  {'band holds':>10}{'width':>7}"
    ]
    lines += [
        f"{x.word:15}{x.quantity:12}{x.rows:6}{x.groups:7}{x.draws:6}  {x.median:6.3f}{x.mean:7.3f}"
        f"{x.within_10:7.3f}{x.group_log:7.3f}  {x.constant_median:8.3f}{x.constant_group_log:7.3f}"
        f"  {x.roofline_median:8.3f}{x.roofline_group_log:7.3f}  {x.holds:10.2f}{x.width:7.2f}"
        for x in scores
    ]
    return "\n".join(lines) + "\n"
