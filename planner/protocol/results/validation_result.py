"""Typed result of a validation: text, page and JSON show it.

A file has sections, one for each quantity of each part of it; a section has scores of the estimate
beside those of plain baselines, groups by engine, chip and model, and single rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from typing import Any

from planner.protocol.document import to_document


@dataclass(frozen=True)
class Score:
    """Errors of n predictions: |predicted/measured - 1| and the range of predicted/measured.

    `median` and `mean` are of the error, `within_10` and `within_20` shares of rows, `low` and
    `high` the 10 % and 90 % quantiles of the ratio and `middle` its median.
    """

    n: int
    median: float
    mean: float
    within_10: float
    within_20: float
    low: float
    middle: float
    high: float

    def named(self, prefix: str) -> dict[str, float]:
        """Fields of the score by prefixed name, as in a profile's file."""
        names = ("median", "mean", "within_10", "within_20")
        return {f"{prefix}_rows": self.n, **{f"{prefix}_{x}": getattr(self, x) for x in names}}


@dataclass(frozen=True)
class BandShare:
    """Promised coverage of a band, and its observed coverage of scored rows [1]."""

    coverage: float
    holds: float


@dataclass(frozen=True)
class GroupErrors:
    """Mean over `count` groups of model, chip and engine of the median |log(predicted/measured)|.

    A group counts once, however many rows it has; baselines are None without a roofline.
    """

    count: int
    estimate: float
    roofline: float | None
    constant: float | None


@dataclass(frozen=True)
class CurveShape:
    """Errors once each curve over the concurrency is scaled to meet its lowest point.

    The lowest points, which then have none, are left out of the scores. The best constant times the
    roofline has the shape of the roofline.
    """

    curves: int
    estimate: Score
    roofline: Score | None


@dataclass(frozen=True)
class SectionScores:
    """Scores of the estimate, its band, and of both baselines where every row has a roofline.

    `shape` is None where no curve has two points.
    """

    estimate: Score
    band: BandShare
    roofline: Score | None
    constant: Score | None
    groups: GroupErrors
    shape: CurveShape | None


@dataclass(frozen=True)
class KindScores:
    """Scores of one kind of question over all files, such as decode or prefill."""

    kind: str
    quantity: str
    scores: SectionScores


@dataclass(frozen=True)
class GroupScore:
    """The score of one engine, chip or model, and the share of its rows inside their band.

    Over its `groups` of model, chip and engine: means of medians of |ln ratio|, of shares inside.
    """

    name: str
    score: Score
    band_holds: float
    groups: int
    group_log: float
    group_band_holds: float


@dataclass(frozen=True)
class ListedRow:
    """A listed row: its line number, its description, and its times [s].

    `measured` is the value in its own unit, `seconds` the time that it states.
    """

    line: int
    quantity: str
    model: str
    chip: str
    engine: str
    setting: str
    measured: float | None
    seconds: float | None
    estimate: float | None
    bound: float | None

    def expected(self, of: str) -> float:
        """The `estimate` or the `bound` [s], not a number if it is missing."""
        time = self.estimate if of == "estimate" else self.bound
        return nan if time is None else time

    def ratio(self, of: str) -> float:
        """The estimate or the bound over the measured time, not a number if a time is missing."""
        return self.expected(of) / (self.seconds or nan)


@dataclass(frozen=True)
class SuspectRow(ListedRow):
    """A row that cannot be right as stated, and the likeliest explanation."""

    why: str


@dataclass(frozen=True)
class PlotPoint:
    """One point of a plot; times are in s."""

    line: int
    engine: str
    chip: str
    model: str
    measured: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class ValidationSection:
    """Scores and rows of one quantity in one part of a file.

    `refused` counts rows by reason, `refused_rows` gives their lines, `in_sample` counts those
    that the fit saw; `scores` are None where nothing can be scored, `without_speculation` and
    `unseen` where all rows are alike in that.
    """

    part: str
    quantity: str
    column: str
    rows: int
    predicted: int
    refused: Mapping[str, int]
    refused_rows: Mapping[str, Sequence[int]]
    in_sample: int
    sample_known: bool
    scores: SectionScores | None
    speculating: Sequence[str]
    without_speculation: SectionScores | None
    unseen: SectionScores | None
    by: Mapping[str, Sequence[GroupScore]]
    worst: Sequence[ListedRow]
    points: Sequence[PlotPoint]

    def to_json(self) -> dict[str, object]:
        """The section as JSON: a group has its name under the key of its grouping."""
        by = {
            name: [{name: x.pop("name"), **x.pop("score"), **x} for x in map(asdict, groups)]
            for name, groups in self.by.items()
        }
        return {**to_document(self), "by": by}


@dataclass(frozen=True)
class FileScores:
    """Scores of one file: its rows, sections, and the rows that cannot be right as stated.

    `models` are configurations that stand for catalogue entries, `labels` what groupings are
    called, `engines_unseen` how many values each engine has that no fit saw; `bounded` counts the
    values that have a bound.
    """

    name: str
    kind: str
    models: Mapping[str, str]
    rows: int
    repeats: int
    predicted: int
    labels: Mapping[str, str]
    profiles: Sequence[str]
    engines_unseen: Mapping[str, int]
    sections: Sequence[ValidationSection]
    below_bound: Sequence[SuspectRow]
    bounded: int
    units: Sequence[SuspectRow]

    def to_json(self) -> dict[str, object]:
        """The file as JSON."""
        return {**to_document(self), "sections": [each.to_json() for each in self.sections]}


@dataclass(frozen=True)
class ProfileRecord:
    """Errors that a profile records of itself, on rows that its fits did not see.

    `errors` by name; of the profile of collectives, by way to predict a curve, then by name.
    `left_out` by way of leaving rows out and quantity, empty where a profile has none.
    """

    name: str
    kind: str
    as_of: str
    engine: str
    chips: Sequence[str]
    rows: int
    source: str
    coverage: float
    errors: Mapping[str, float | Mapping[str, float]]
    left_out: Sequence[Mapping[str, Any]] = ()

    @property
    def of_serving(self) -> Mapping[str, float]:
        """Errors by name; empty for the profile of collectives."""
        return {name: x for name, x in self.errors.items() if not isinstance(x, Mapping)}

    @property
    def of_curves(self) -> Mapping[str, Mapping[str, float]]:
        """Errors by way to predict a curve; empty for a profile of serving."""
        return {name: x for name, x in self.errors.items() if isinstance(x, Mapping)}


@dataclass(frozen=True)
class SkippedFile:
    """A file of a folder that was not read, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"skipped {self.name}: {self.why}"


@dataclass(frozen=True)
class ValidationDocument:
    """The validation of some files by a profile, and what profiles record of themselves.

    `refit` is what was left out of fits to the rows themselves, None for a profile as it ships;
    `skipped` are files of folders that could not be read; `kinds` are scores over all files.
    """

    problem: str
    status: str
    profile: str
    refit: str | None
    kinds: Sequence[KindScores]
    files: Sequence[FileScores]
    skipped: Sequence[SkippedFile]
    recorded: Sequence[ProfileRecord]
    provenance: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        """The document as JSON."""
        return {**to_document(self), "files": [each.to_json() for each in self.files]}
