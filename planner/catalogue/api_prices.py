"""Listed prices of tokens: a dated snapshot of the rates of hosts and model vendors.

One row is one price in force: a model at a host, in a tier (standard, batch, flex, priority, fast),
above a length of prompt, at hours of the day, between two dates. A host has one name however a list
spells it; a reseller passes another's price on, so that its rows are shown and never counted.
"""

import csv
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import quantiles
from typing import Any

from planner.text.errors import CatalogueError, Mistake, quote
from planner.text.tables import csv_cell

FILE = "api_prices.csv"
REFRESH = "planner catalog api-prices --refresh --out FILE"
PRICES_ENV_VAR = "PLANNER_API_PRICES"  # names a file that stands for the shipped one
MIN_TOKEN_PRICE, MAX_PRICE = 1e-9, 7e-4  # USD/token of a price on a list: 0.001 to 700 per million
PRICES = ("input", "output", "cached", "write", "write_1h")
COLUMNS = ("model", "host", "kind", "tier", "above", "hours", "since", "until", *PRICES, "as_of",
           "source", "status", "suspect")  # fmt: skip
HOURS = re.compile(r"([01]\d|2[0-4]):[0-5]\d-([01]\d|2[0-4]):[0-5]\d")
TOKENS = 1e6  # the file lists USD per million tokens
HOSTS = "api_hosts.toml"  # one host under several names
STANDARD, RESELLER, HOST, VENDOR = "standard", "reseller", "host", "vendor"
OUTLIER = "median"  # what the note of a row says that lies far from the other hosts of its model
SELECTION_RULE = (
    "newest standard row of each host, one name per host; resellers, withdrawn and outlying "
    "rows out"
)


@dataclass(frozen=True)
class ListedPrice:
    """One listed price; all prices in USD/token, dates as YYYY-MM or YYYY-MM-DD.

    `above` is the length of prompt from which the whole request is priced so [token]; `hours` are
    UTC; the row holds from `since` and before `until`, either empty where the list has none.
    """

    model: str
    host: str
    tier: str
    input: float
    output: float
    cached: float | None
    write: float | None
    write_1h: float | None
    above: int
    hours: str
    since: str
    until: str
    as_of: str
    source: str
    reseller: bool
    kind: str = HOST
    status: str = ""
    suspect: str = ""

    def in_force(self, day: date | None) -> bool:
        """True if the row is in force on a day; None means the end of the snapshot's month."""
        at = day.isoformat() if day else f"{self.as_of[:7]}-31"
        return self.since <= at and (not self.until or at < self.until)

    @property
    def counted(self) -> bool:
        """True if the row counts among the hosts' prices of its model."""
        base = self.tier == STANDARD and not self.above and not self.hours
        sound = not self.reseller and self.status != "deprecated" and OUTLIER not in self.suspect
        return base and sound


@cache
def _hosts() -> dict[str, Any]:
    return tomllib.loads(files("planner.catalogue").joinpath(HOSTS).read_text(encoding="utf-8"))


def host_name(name: str) -> str:
    """Canonical name of a host: `huggingface_novita` and `novita-ai` become `novita`."""
    hosts = _hosts()
    for prefix in hosts["gateways"]:
        name = name.removeprefix(prefix)
    for prefix, host in hosts["families"].items():
        if name.startswith(prefix):
            return host
    return hosts["spellings"].get(name, name)


@cache
def listed_token_prices() -> tuple[ListedPrice, ...]:
    """Every row of the shipped snapshot, or of the file that PLANNER_API_PRICES names.

    Raises CatalogueError for a file that cannot be read, or a row that is no price.
    """
    if not (chosen := os.environ.get(PRICES_ENV_VAR)):
        text = files("planner.catalogue").joinpath(FILE).read_text(encoding="utf-8")
        return tuple(dict.fromkeys(_row(row) for row in csv.DictReader(text.splitlines())))
    try:
        lines = Path(chosen).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{PRICES_ENV_VAR}={chosen}: {error}") from error
    table = csv.DictReader(lines)
    if missing := {*COLUMNS} - {*(table.fieldnames or ())}:
        words = f"has no column {', '.join(sorted(missing))}: {REFRESH} writes such a file"
        raise CatalogueError(f"{PRICES_ENV_VAR}={chosen}: {words}")
    try:
        listed_prices = [_row(row) for row in table]
    except (ValueError, csv.Error) as error:
        raise CatalogueError(Mistake(chosen, table.line_num, 1, "", str(error))) from error
    return tuple(dict.fromkeys(listed_prices))


def chosen_file() -> str:
    """Text that names the user's own price file; empty for the shipped prices."""
    chosen = os.environ.get(PRICES_ENV_VAR)
    return f", from {Path(chosen).name}" if chosen else ""


def token_price(price: float, written: object, *, free: bool = False) -> float:
    """Validate a price per token [USD/token]; `free` allows zero.

    Raises ValueError for one that no list would have, with what was probably meant.
    """
    if (price == 0 and free) or MIN_TOKEN_PRICE <= price <= MAX_PRICE:
        return price
    meant = price / TOKENS
    hint = f'; did you mean "${price:g}/Mtok"?' if MIN_TOKEN_PRICE <= meant <= MAX_PRICE else ""
    raise ValueError(
        f'expected a price per token such as "$3/Mtok", from $0.001 to $700 per million '
        f"tokens, got {quote(written)}, which is ${price * TOKENS:,.10g} per million{hint}"
    )


def _row(row: dict[str, str]) -> ListedPrice:
    """Parse a row of the price file; raises ValueError, with the column, for an invalid entry."""
    if None in row or None in row.values():
        entries = sum(value is not None for key, value in row.items() if key is not None)
        many = "more than" if None in row else f"{entries} of"
        raise ValueError(f"the row has {many} {len(row.keys() - {None})} entries, one a column")
    row = {name: csv_cell(text) for name, text in row.items()}
    for name in ("since", "until", "as_of"):
        if row[name] or name == "as_of":
            date.fromisoformat(row[name] if len(row[name]) > len("2026-11") else f"{row[name]}-01")
    if not row["above"].isdecimal():
        raise ValueError(f"above: expected a number of tokens, got {quote(row['above'])}")
    if row["hours"] and not HOURS.fullmatch(row["hours"]):
        raise ValueError(f"hours: expected such as 00:30-16:30, got {quote(row['hours'])}")
    prices = {name: _price(row, name) for name in PRICES}
    read, written = prices.pop("input"), prices.pop("output")
    assert read is not None, "which may not be left empty"
    assert written is not None, "which may not be left empty"
    if (prices["cached"] or 0.0) > read:
        raise ValueError(f"cached: {row['cached']} is above input, {row['input']}: swapped?")
    return ListedPrice(
        model=row["model"], host=host_name(row["host"]), tier=row["tier"],
        input=read, output=written, **prices,
        above=int(row["above"]), hours=row["hours"], since=row["since"], until=row["until"],
        as_of=row["as_of"], source=row["source"], reseller=row["kind"] == RESELLER,
        kind=row["kind"], status=row["status"], suspect=row["suspect"],
    )  # fmt: skip


def _price(row: dict[str, str], name: str) -> float | None:
    text, needed = row[name], name in ("input", "output")
    if not text and not needed:
        return None
    try:
        return token_price(float(text) / TOKENS, f"{text}", free=not needed)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


@cache
def model_names() -> tuple[str, ...]:
    """Every model that is listed, sorted."""
    return tuple(sorted({row.model for row in listed_token_prices()}))


@cache
def open_models() -> tuple[str, ...]:
    """Models whose weights are public, which several hosts serve."""
    return tuple(sorted({row.model for row in listed_token_prices() if row.kind == HOST}))


def prices_on_date(model: str, on: date | None = None) -> tuple[ListedPrice, ...]:
    """The rows of a model that hold on a day, resellers and all tiers with them.

    Raises CatalogueError with the nearest name for a model that is not listed.
    """
    if model not in model_names():
        raise CatalogueError.unknown("listed model", model, model_names())
    return tuple(row for row in listed_token_prices() if row.model == model and row.in_force(on))


def host_prices(
    model: str, hosts: Sequence[str] = (), on: date | None = None
) -> tuple[ListedPrice, ...]:
    """One row of each host that serves a model, by the rule `SELECTION_RULE`; sorted by host.

    Where a host lists several rows of one date (versions of a checkpoint), the one in the middle
    by output price stands for it. Raises CatalogueError for an unknown model or host.
    """
    by_host: dict[str, list[ListedPrice]] = {}
    for row in prices_on_date(model, on):
        if row.counted:
            by_host.setdefault(row.host, []).append(row)
    wanted = [host_name(host) for host in hosts] or sorted(by_host)
    for host in wanted:
        if host not in by_host:
            raise CatalogueError.unknown(f"host of {model}", host, by_host)
    return tuple(newest_price(by_host[host]) for host in wanted)


def newest_price(several: Sequence[ListedPrice]) -> ListedPrice:
    """The newest row; of several of one date, the lower middle one by output and input price."""
    newest = max((row.as_of[:7], row.since) for row in several)
    latest = [row for row in several if (row.as_of[:7], row.since) == newest]
    return sorted(latest, key=lambda row: (row.output, row.input))[(len(latest) - 1) // 2]


@dataclass(frozen=True)
class Quartiles:
    """Least, quartiles and most of the hosts' prices, and how many hosts [USD/token]."""

    least: float
    q25: float
    median: float
    q75: float
    most: float
    n: int


def quartiles(prices: Sequence[ListedPrice], of: Callable[[ListedPrice], float]) -> Quartiles:
    """The spread of one price, or of a mix of prices, over hosts."""
    values = sorted(of(price) for price in prices)
    low, middle, high = (
        quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    )
    return Quartiles(values[0], low, middle, high, values[-1], len(values))


def median_prices(model: str, on: date | None = None) -> tuple[float, float]:
    """Medians over the hosts of a model, of the input and of the output price [USD/token].

    Raises CatalogueError for an unknown model.
    """
    hosts = host_prices(model, on=on)
    return (quartiles(hosts, lambda x: x.input).median, quartiles(hosts, lambda x: x.output).median)


def sheet_rows(name: str, on: date | None = None) -> tuple[ListedPrice, ...]:
    """The rows of `HOST/MODEL` that hold on a day: every tier, step and hour.

    Raises CatalogueError for a host or a model that is not listed, with the nearest.
    """
    host, _, model = name.partition("/")
    held_by = prices_on_date(model, on)
    here = tuple(row for row in held_by if row.host == host_name(host))
    if not here:
        raise CatalogueError.unknown(f"host of {model}", host, sorted({x.host for x in held_by}))
    return here
