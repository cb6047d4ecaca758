"""What only a fleet's fields hold: chances per hour, machines, demand by hour, regions."""

import csv
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from planner.scenario.keys.fields import Kind, Quantity, Record, Refusals, Whole, Word, count
from planner.text.errors import quoted
from topologies.files.units import UnreadAmount, amount

HOUR = 3600.0
MACHINES = re.compile(r"\s*([0-9]+)\s*(?:machines?)?\s*")
ZONED = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$")
LARGEST_FILE = 2_000_000  # bytes
Fraction = Annotated[float, Quantity("share", zero=True, at_most=1.0)]
Latency = Annotated[float, Quantity("time", zero=True, at_most=60.0)]
HINT = 'expected columns hour and requests/s, such as "0, 12.5"'


@dataclass(frozen=True)
class HourlyChance(Kind):
    """A chance per hour; a bare number or a share is one."""

    def read(self, value: object) -> float:
        """The chance [1/hour]."""
        expected = f'expected a chance per hour such as "5%/hour", got {quoted(value)}'
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(expected)
        try:
            read = amount(str(value))
        except UnreadAmount:
            raise ValueError(expected) from None
        if read.powers not in ((), (("s", -1),)):
            raise ValueError(expected)
        chance = read.value * (HOUR if read.powers else 1.0)
        if not 0 <= chance < 1:
            raise ValueError(f"expected a chance of at least 0 and below 1 per hour, got {value}")
        return round(chance, 15)

    def schema(self) -> dict[str, object]:
        """JSON Schema: a chance per hour."""
        return {"type": ["string", "number"], "examples": ["5%/hour"]}


@dataclass(frozen=True)
class Machines(Kind):
    """A whole number of machines: 12, or "12 machines"."""

    least: int = 0

    def read(self, value: object) -> int:
        """The number."""
        match = MACHINES.fullmatch(value) if isinstance(value, str) else None
        return count(int(match.group(1)) if match else value, self.least)

    def schema(self) -> dict[str, object]:
        """JSON Schema: a count, with or without its word."""
        return {"type": ["integer", "string"], "examples": [12, "12 machines"]}


def described_demand(value: object, info: ValidationInfo) -> object:
    """A rate, a list of rates or the name of a CSV file as the mapping that it stands for."""
    if isinstance(value, list | tuple):
        return {"hourly": list(value)}
    if isinstance(value, str) and value.strip().lower().endswith(".csv"):
        folder = (info.context or {}).get("folder") or Path()
        return {"hourly": rates_of(folder / value, value)}
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"mean": value}
    return value


def rates_of(path: Path, written: str) -> list[float]:
    """Requests per second by hour of a CSV file `hour, requests/s`, hours 0, 1, 2, ... in order.

    Raises ValueError with every line that is wrong: missing, doubled or unordered hours, a shift of
    the time zone, negative rates.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"no file {quoted(written)} is found") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{quoted(written)} cannot be read: {type(error).__name__}") from None
    if len(text) > LARGEST_FILE:
        raise ValueError(f"{quoted(written)} is larger than {LARGEST_FILE:,} bytes")
    rates: list[float] = []
    faults: list[str] = []
    wanted = 0
    zones: set[str] = set()
    for line, hour, rate in _lines(text, faults):
        zone = ZONED.search(hour)
        zones.add(zone.group() if zone else "")
        number = _hour_of(hour, wanted)
        if len(zones) == 2 and zone is not None:
            faults.append(f"line {line}: the time zone shifts to {zone.group()}; give UTC")
            zones = {zone.group()}
        if number != wanted:
            faults.append(f"line {line}: {_misplaced(number, wanted)}")
        wanted = max(wanted, number + 1)
        if not rate >= 0 or math.isinf(rate):
            faults.append(f"line {line}: expected requests/s of at least 0, got {rate:g}")
        rates.append(rate)
    if not rates and not faults:
        faults.append(HINT)
    if faults:
        raise Refusals([((), f"{written}: {fault}") for fault in faults[:20]])
    return rates


def _lines(text: str, faults: list[str]) -> Iterator[tuple[int, str, float]]:
    """Line, hour as written and rate of each row after the head."""
    for line, row in enumerate(csv.reader(text.splitlines()), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (line == 1 and cells[0].lower() in ("hour", "utc", "time")):
            continue
        try:
            yield line, cells[0], float(cells[1])
        except (ValueError, IndexError):
            faults.append(f"line {line}: {HINT}, got {quoted(','.join(row))}")


def _hour_of(written: str, wanted: int) -> int:
    """The hour's number; of a date and time it is the hour that was wanted."""
    try:
        return int(written)
    except ValueError:
        return wanted


def _misplaced(number: int, wanted: int) -> str:
    if number == wanted - 1:
        return f"hour {number} is doubled"
    if number > wanted:
        return f"hour {wanted} is missing (hour {number} follows {wanted - 1})"
    return f"hour {number} is out of order, hour {wanted} was expected"


def dollars_or_mapping(value: object) -> Any:
    """A price alone as the contract it stands for."""
    return value if isinstance(value, Mapping) or value is None else {"price": value}


def latencies(value: object) -> object:
    """One latency as that to every other region, "*"."""
    return value if isinstance(value, Mapping) or value is None else {"*": value}


class FleetRegion(Record):
    """Where requests come from, and where else they may be served."""

    demand: Fraction = Field(description="share of every model's demand")
    utc: Annotated[int, Whole(least=-12)] = 0
    """hours by which its clock is ahead of UTC: the hours of demand are then those of its clock"""
    moves: Annotated[str, Word(("none", "allowed"))] = "none"
    """whether its requests may be served in another region"""
    latency: Annotated[dict[str, Latency] | None, BeforeValidator(latencies)] = Field(
        None, description="added to the time to first token elsewhere [s], or {region: latency}"
    )

    @model_validator(mode="after")
    def _moves_or_stays(self) -> "FleetRegion":
        if (self.moves == "allowed") != (self.latency is not None):
            raise ValueError("moves: allowed and latency, such as 90 ms, go together: give both")
        if self.utc > 14:
            raise ValueError(f"utc: expected -12 to 14 hours, got {self.utc}")
        return self

    def latency_to(self, region: str) -> float | None:
        """What being served there adds [s]; None where its requests may not go."""
        return None if self.latency is None else self.latency.get(region, self.latency.get("*"))
