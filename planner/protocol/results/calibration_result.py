"""Typed result of a calibration on a user's own runs: text and JSON show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from planner.protocol.document import json_key
from planner.protocol.results.validation_result import Score


@dataclass(frozen=True)
class CalibrationFile:
    """A file of runs: its kind, data lines, configurations read for models that are no entries."""

    name: str
    kind: str
    lines: int
    models: Mapping[str, str]


@dataclass(frozen=True)
class CalibrationRows:
    """Counts of lines, values and runs, of the values used, and of the rest by reason.

    `left_out_rows` names the rows of each reason.
    """

    lines: int
    values: int
    used: int
    runs: int
    left_out: Mapping[str, int]
    left_out_rows: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class MethodScores:
    """Errors of the profile before, of fits that did not see a row, and of both baselines.

    One run leaves no row to a fit, so nothing is known of it `after`.
    """

    before: Score
    after: Score | None
    constant: Score
    roofline: Score


@dataclass(frozen=True)
class FittedCoefficient:
    """A coefficient before and after the fit: values, 80 % interval, and verdict of the rows.

    `state` is `moved` (the value before lies outside the interval), `kept` (inside), `limited`
    (held at what the chip was measured to sustain), `joint` (moved, but the rows cannot tell it
    apart from others), `inseparable` (neither) or `idle` (it takes no time worth counting in these
    rows). `share` is the largest share of a row's time that it takes.
    """

    name: str
    before: float
    value: float
    low: float
    high: float
    share: float
    state: str


@dataclass(frozen=True)
class FittedAdjustment:
    """A factor on the times of some coefficients in a scope, and its 80 % interval."""

    of: Sequence[str]
    scope: Mapping[str, str]
    factor: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class FittedBand:
    """A band, where it comes from, the fewest rows that make one, the share of others it holds."""

    json_first: ClassVar = ("low", "high", "from")

    low: float
    high: float
    fewest: int
    holds: float | None
    origin: str = json_key("from")


@dataclass(frozen=True)
class WorstRow:
    """A row with a large cross-validation error: measured and estimated time [s]."""

    row: str
    quantity: str
    measured: float
    estimate: float


@dataclass(frozen=True)
class CalibrationResult:
    """Calibration of any outcome: its name and day, the files read, and the rows used."""

    calibration: str
    as_of: str
    files: Sequence[CalibrationFile]
    rows: CalibrationRows
    status: str


@dataclass(frozen=True)
class RefusedCalibration(CalibrationResult):
    """Runs that identify nothing, and why."""

    why: str


@dataclass(frozen=True)
class FittedCalibration(CalibrationResult):
    """A profile fitted to runs: its errors by quantity, what moved, its bands, the worst rows."""

    like: str
    engine: str
    chips: Sequence[str]
    models: Sequence[str]
    left_out_by: str
    errors: Mapping[str, MethodScores]
    coefficients: Sequence[FittedCoefficient]
    adjustments: Sequence[FittedAdjustment]
    bands: Mapping[str, FittedBand]
    worst: Sequence[WorstRow]
    limits: Mapping[str, float]
    notes: Sequence[str]
