"""Measured quantity of a row, with its prediction or the reason why it has no prediction.

All tables come down to these, so that scores, plots and prediction files are made once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner.measurements.measurement import CollectiveRow, Measurement
from planner.text.errors import InputError


@dataclass(frozen=True)
class Prediction:
    """Predicted times of one row [s]: lower bound, estimate, and the band around it."""

    bound: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Entry:
    """A measured value and its prediction.

    Attributes:
        row, line: Index of the row in its table and its line in the file.
        column, quantity, part: Column that holds the value; what it times; and the part of the
            table that it is scored with, such as aggregated runs or clean rows.
        model, chip, engine, version, setting: What was measured, as far as the row says; `setting`
            is the rest of it in short.
        measured: The value in its own unit, None where there is none.
        seconds: The time that the value states. [s]
        rate: The value is a rate: the shorter the time, the larger.
        prediction: Bound, estimate and band, in the time that `seconds` is; None without an
            estimate.
        bound: The least time, given without an estimate too. [s]
        roofline: The plain roofline on the layout that ran. [s]
        reason: Why there is no estimate; empty where there is one.
        profile: Name of the profile that the estimate comes from.
        repeat: The same configuration stands in an earlier row.
        unit: Why the value seems to be in another unit than its column says: it is then not scored.
        seen: The fit of the profile saw this very row; None where that is not recorded.
        measurement, collective: The row as calibration reads it.
    """

    row: int
    line: int
    column: str
    quantity: str
    part: str
    model: str
    chip: str
    engine: str
    version: str = ""
    setting: str = ""
    measured: float | None = None
    seconds: float | None = None
    rate: bool = False
    prediction: Prediction | None = None
    bound: float | None = None
    roofline: float | None = None
    reason: str = ""
    repeat: bool = False
    profile: str = ""
    unit: str = ""
    seen: bool | None = None
    measurement: Measurement | None = None
    collective: CollectiveRow | None = None

    @property
    def group(self) -> str:
        """Model, chip and engine: rows of one group are left out together."""
        return f"{self.model} {self.chip} {self.engine}"

    @property
    def scored(self) -> bool:
        """True if the entry counts: measured in its unit, predicted, and no repeat."""
        sound = self.seconds is not None and not self.unit
        return sound and self.prediction is not None and not self.repeat

    def measuring(self, row: Measurement, value: float) -> Entry:
        """The entry of a measured row, whose names go before those that the table spells."""
        entry = replace(self, model=row.model, chip=row.chip.name, engine=row.engine)
        return replace(entry, measured=value, seconds=row.seconds, measurement=row)

    def in_unit(self, time: float) -> float:
        """A time [s] in the unit of the measured value."""
        if self.measured is None or self.seconds is None:
            return time
        ratio = self.seconds / time if self.rate else time / self.seconds
        return self.measured * ratio


def parse_facts(texts: Iterable[str]) -> dict[str, str]:
    """Facts by name; raises InputError for a text that is not NAME=VALUE."""
    facts = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise InputError(f"--fact {text}: expected NAME=VALUE, such as tp=8")
        facts[name.strip()] = value.strip()
    return facts
