"""Value of choices by predictions: measured speed of the choice over the best measured.

A decision is a limit of TPOT on a group of measured runs, of which a rule picks one: a layout, its
chips and its concurrency. Rows of the fit are better known than a user's own, so they are counted,
and models of which the fit saw no row stand apart.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.measurements.entry import Entry
from planner.measurements.measurement import row_profile
from planner.protocol.promise import sum_chance
from planner.text.errors import InputError, Mistake
from planner.validation.estimates import AUTO, read

LIMITS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2)  # s, as services promise
BREAK_FACTOR = 1.1  # times the limit: a choice that is slower in measurement is worth nothing
MEASURED, EXPECTED, ROOFLINE = range(3)
MEANING = """Measured tokens/s per chip of each choice over the best within a limit of TPOT
(broken: slower than the limit by more than 10 %, which counts 0)"""
HEAD = f"{'groups':>7}{'n':>6}{'mean':>8}{'median':>8}{'broken':>8}"


@dataclass(frozen=True)
class LayoutRun:
    """One run: TPOT [s] and output tokens per second and chip, as MEASURED, EXPECTED, ROOFLINE.

    `question` is what runs of a group share beside the `engine`, `layout` what they differ in
    beside the concurrency; `band` are the ends of the TPOT expected [s]. `models` says whether the
    fit saw the model, `seen` that it saw this very row.
    """

    models: str
    question: tuple[object, ...]
    engine: str
    layout: str
    chips: int
    tpots: tuple[float, ...]
    rates: tuple[float, ...]
    band: tuple[float, float]
    seen: bool = False


@dataclass(frozen=True)
class ChoiceRule:
    """Choose the run with maximum tokens/s per chip within a limit, `by` EXPECTED or ROOFLINE.

    Before that the fewest or the most `chips`, -1 or 1. What keeps a limit is judged by the same
    times, or by the band's `chance` of keeping it; where none does, the least TPOT is chosen.
    """

    name: str
    by: int = EXPECTED
    chips: int = 0
    chance: float = 0.0

    def share(self, runs: Sequence[LayoutRun], limit: float) -> float:
        """Measured speed of the choice over the best that keeps the limit [s], 0 if it breaks."""
        chosen = max(runs, key=lambda run: self._order(run, limit))
        if chosen.tpots[MEASURED] > limit * BREAK_FACTOR:
            return 0.0
        best = max(run.rates[MEASURED] for run in runs if run.tpots[MEASURED] <= limit)
        return min(chosen.rates[MEASURED] / best, 1.0)  # a choice within 10 % of it may be faster

    def _order(self, run: LayoutRun, limit: float) -> tuple[float, ...]:
        keeps = run.tpots[self.by] <= limit
        if self.chance:
            keeps = sum_chance(limit, [(1.0, *run.band)]) >= self.chance  # ends over 1 s
        value = (self.chips * run.chips, run.rates[self.by]) if keeps else (-run.tpots[self.by],)
        return (keeps, *value)


RULES = (
    ChoiceRule("most expected tokens/s per chip"),
    ChoiceRule("fewest chips", chips=-1),
    ChoiceRule("most chips", chips=1),
    ChoiceRule("roofline", ROOFLINE),
)


@dataclass(frozen=True)
class DecisionScore:
    """Shares of a rule over `n` decisions of some groups, and of how many limits it breaks.

    `runs` are those of the groups, of which `in_fit` are rows of the fit.
    """

    of: str
    runs: int
    in_fit: int
    rule: str
    groups: int
    n: int
    mean: float
    median: float
    broken: float


def decisions(path: Path, wanted: str = AUTO, chance: float | None = None) -> list[DecisionScore]:
    """The scores of every rule on a file of runs, predicted by a profile or `auto`.

    Raises InputError for a file of no runs, or without two layouts of one question. One more rule
    asks for a `chance` that a limit is kept.
    """
    name = f"limit kept in {100 * (chance or 0):g} of 100 cases"
    surer = [ChoiceRule(name, chance=chance)] if chance else []
    runs = list(layout_runs(read(path, wanted)[1], wanted))
    scores = list(_scores(runs, (RULES[0], *surer, *RULES[1:])))
    if not scores:
        words = (
            f"no decision in {len(runs)} runs with a TPOT and an estimate: give runs of one model, "
            "chip, number format and lengths in two layouts (tp_size) or two engines (backend)"
        )
        raise InputError(Mistake(str(path), 1, None, "", words))
    return scores


def table(name: str, scores: Sequence[DecisionScore]) -> str:
    """The scores of a file as lines of a table."""
    lines = [f"{name:<34}{HEAD}"]
    for x in scores:
        title = f"{x.of} ({x.runs:,} runs, {x.in_fit:,} of them rows of the fit)"
        lines += [] if title in lines else [title]
        shares = f"{x.mean:>8.3f}{x.median:>8.3f}{x.broken:>8.1%}"
        lines.append(f"  {x.rule:<32}{x.groups:>7,}{x.n:>6,}{shares}")
    return "\n".join(lines)


def layout_runs(entries: Sequence[Entry], wanted: str = AUTO) -> Iterator[LayoutRun]:
    """The runs whose TPOT can be scored, predicted by a profile; of pools with known workers.

    Each request in flight takes the first token's time and the steps after it. Runs without a
    measured TTFT meet each other alone, by their speed while decoding.
    """
    firsts = {entry.row: entry for entry in entries if entry.quantity == "ttft" and entry.scored}
    for entry in entries:
        row, made = entry.measurement, entry.prediction
        if entry.quantity != "tpot" or not entry.scored or not row or not made or row.assumed:
            continue
        pools = [row.pools.prefill, row.pools.decode] if row.pools else []
        chips = sum(pool.workers * pool.chips for pool in pools) or row.chips
        requests = row.pools.concurrency if row.pools else row.batch
        tpots, ttfts = (
            np.array([x.seconds, x.prediction and x.prediction.estimate, x.roofline], dtype=float)
            for x in (entry, firsts.get(entry.row, entry))
        )
        rates = requests * row.output / (ttfts + (row.output - 1) * tpots) / chips
        hull, timed = row_profile(row, wanted).hull, entry.row in firsts
        fitted = hull is not None and hull.covers("model", row.sizes.name)
        yield LayoutRun(
            "known models" if fitted else "models not fitted",
            (row.model, row.precision, row.chip.name, row.prompt, row.output, timed),
            row.engine,
            str([(pool.layout, pool.chips, pool.workers) for pool in pools] or row.layout),
            chips,
            tuple(tpots.tolist()),
            tuple(rates.tolist()),
            (made.low, made.high),
            entry.seen is True,
        )


def _scores(runs: Sequence[LayoutRun], rules: Sequence[ChoiceRule]) -> Iterator[DecisionScore]:
    """Scores of rules over groups of one engine with several layouts, and of several engines."""
    groups, choices = defaultdict(list), defaultdict(list)
    for run in runs:
        groups[f"one engine, {run.models}", run.engine, run.question].append(run)
        groups[f"engine free, {run.models}", "", run.question].append(run)
    for (of, engine, _), group in groups.items():
        if len({run.layout if engine else run.engine for run in group}) > 1 and _limits(group):
            choices[of].append(group)
    for of, several in choices.items():
        sizes = sum(map(len, several)), sum(run.seen for group in several for run in group)
        for rule in rules:
            x = [rule.share(group, limit) for group in several for limit in _limits(group)]
            means = float(np.mean(x)), float(np.median(x)), x.count(0.0) / len(x)
            yield DecisionScore(of, *sizes, rule.name, len(several), len(x), *means)


def _limits(runs: Sequence[LayoutRun]) -> list[float]:
    """The limits that some run keeps [s]; of those that all keep the tightest."""
    times = [run.tpots[MEASURED] for run in runs]
    met = [limit for limit in LIMITS if limit >= min(times)]
    return met[: 1 + sum(limit < max(times) for limit in met)]
