"""Refresh of listed prices from the installed package genai-prices, without network access.

The rows of the snapshot that came from that package are replaced; those of other lists stay as they
are. What is new, gone or priced otherwise is said row by row, so that nothing changes silently.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from statistics import median
from typing import Any, Literal

from planner.catalogue.api_prices import (
    COLUMNS,
    HOST,
    OUTLIER,
    PRICES,
    RESELLER,
    STANDARD,
    TOKENS,
    VENDOR,
    ListedPrice,
    host_name,
    listed_token_prices,
)
from planner.text.errors import MissingExtra
from planner.text.tables import csv_text

PACKAGE, EXTRA = "genai-prices", "prices"
IDS = "open_model_ids.toml"
# Factor above or below the median output price of a model's hosts that marks a row as suspect.
MAX_RATIO = 10.0
KEYS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
TIERS = ("processing", "service_tier", "speed")  # of a request, which choose a tier


@dataclass(frozen=True)
class PriceChange:
    """One row that is new, gone, or has other prices than before [USD/token]."""

    what: Literal["new", "gone", "changed"]
    before: ListedPrice | None
    after: ListedPrice | None

    @property
    def model(self) -> str:
        """The model whose row it is."""
        row = self.after or self.before
        return row.model if row else ""


@dataclass(frozen=True)
class PriceRefresh:
    """The snapshot with the rows of the package read anew; `left_out` are models of vendors whose
    rows do not tell a maker from a reseller, and which are therefore not taken."""

    source: str
    rows: tuple[ListedPrice, ...]
    changes: tuple[PriceChange, ...]
    left_out: tuple[str, ...]

    def csv(self) -> str:
        """The snapshot as a file that PLANNER_API_PRICES may name."""
        cells = [
            vars(row)
            | {x: f"{y * TOKENS:.10g}" for x in PRICES if (y := getattr(row, x)) is not None}
            for row in self.rows
        ]
        return csv_text([COLUMNS, *(map(row.get, COLUMNS) for row in cells)])


def price_refresh(day: date) -> PriceRefresh:
    """Shipped or chosen snapshot, updated with the installed package's prices on a day.

    Raises MissingExtra without the package.
    """
    source = f"{PACKAGE} {_installed()}"
    snapshot = listed_token_prices()
    kinds: dict[str, set[str]] = {}
    named: dict[tuple[str, str], str] = {}
    for row in snapshot:
        if row.kind != HOST:
            kinds.setdefault(row.host, set()).add(row.kind)
            named[row.host, row.model] = row.kind
    fresh: list[ListedPrice] = []
    left_out: set[str] = set()
    from genai_prices.data import providers

    for provider in providers:
        host = host_name(provider.id)
        for model in provider.models:
            opened = _open_models().get(model.id.rpartition("/")[2].lower())
            if opened is not None:
                kind = RESELLER if kinds.get(host) == {RESELLER} else HOST
                fresh += _rows_of(model, opened, host, kind, source, day)
            if host != provider.id:
                continue  # another list of a vendor that has its own
            kind = named.get((host, model.id), "")
            if not kind and opened is None and VENDOR in kinds.get(host, ()):
                kind = VENDOR if kinds[host] == {VENDOR} else ""
                left_out |= set() if kind else {f"{host}/{model.id}"}
            if kind:
                fresh += _rows_of(model, model.id, host, kind, source, day)
    others = [row for row in snapshot if not row.source.startswith(PACKAGE)]
    before = [row for row in snapshot if row.source.startswith(PACKAGE)]
    remarks = {_identity(row): row.suspect for row in before}
    after = [replace(x, suspect=remarks.get(_identity(x), "")) for x in dict.fromkeys(fresh)]
    merged = tuple(_judged([*others, *after]))
    return PriceRefresh(
        source, merged, tuple(price_changes(before, after)), tuple(sorted(left_out))
    )


def _installed() -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(PACKAGE)
    except PackageNotFoundError as error:
        raise MissingExtra(PACKAGE, EXTRA, "reading listed prices anew") from error


@cache
def _open_models() -> Mapping[str, str]:
    text = files("planner.catalogue.refresh").joinpath(IDS).read_text(encoding="utf-8")
    ids = tomllib.loads(text)["ids"]
    return {spelling: name for name, spellings in ids.items() for spelling in spellings}


def _rows_of(
    model: Any, name: str, host: str, kind: str, source: str, day: date
) -> Iterator[ListedPrice]:
    """The rows of one model at one host: standard prices by date and hour, then its tiers."""
    status = "deprecated" if model.deprecated else ""
    shared = {"model": name, "host": host, "kind": kind, "reseller": kind == RESELLER,
              "as_of": day.isoformat(), "source": source, "status": status}  # fmt: skip
    several = model.prices if isinstance(model.prices, list) else [None]
    starts = [_start(each) for each in several]
    for place, (conditional, start) in enumerate(zip(several, starts, strict=True)):
        prices = model.prices if conditional is None else conditional.prices
        hours = _hours(conditional)
        until = "" if hours else next((x for x in starts[place + 1 :] if x), "")
        yield from _by_length(prices, {**shared, "tier": STANDARD, "hours": hours, "since": start,
                                       "until": until})  # fmt: skip
    for variant in model.price_variants or ():
        chosen = [variant.when[x] for x in TIERS if x in variant.when]
        if chosen and chosen != ["default"]:
            parts = {**shared, "tier": chosen[0], "hours": "", "since": "", "until": ""}
            yield from _by_length(variant.prices, parts)


def _start(conditional: Any) -> str:
    start = getattr(getattr(conditional, "constraint", None), "start_date", None)
    return start.isoformat() if start else ""


def _hours(conditional: Any) -> str:
    limits = getattr(conditional, "constraint", None)
    if limits is None or not hasattr(limits, "start_time"):
        return ""
    return f"{limits.start_time:%H:%M}-{limits.end_time:%H:%M}"


def _by_length(prices: Any, parts: Mapping[str, Any]) -> Iterator[ListedPrice]:
    listed = {name: getattr(prices, key, None) for name, key in zip(PRICES, KEYS, strict=True)}
    if not listed["input"] or not listed["output"]:
        return
    edges = {x.start for price in listed.values() for x in getattr(price, "tiers", ())}
    for above in (0, *sorted(edges)):
        at: dict[str, Any] = {name: _price_above(price, above) for name, price in listed.items()}
        yield ListedPrice(**parts, **at, above=above)


def _price_above(price: Any, above: int) -> float | None:
    """A price of a prompt above a length [USD/token]."""
    if price is None:
        return None
    steps = [each for each in getattr(price, "tiers", ()) if each.start <= above and above]
    listed = steps[-1].price if steps else getattr(price, "base", price)
    return float(f"{float(listed):.10g}") / TOKENS  # some are quotients: 1.0399999999999998


def _same_place(row: ListedPrice) -> tuple[object, ...]:
    return row.model, row.host, row.kind, row.tier, row.above, row.hours, row.since, row.until


def _identity(row: ListedPrice) -> tuple[object, ...]:
    return (*_same_place(row), *(getattr(row, x) for x in PRICES), row.status)


def _judged(listed: Sequence[ListedPrice]) -> Iterator[ListedPrice]:
    """Rows of hosts, those far from the other hosts of their model marked as such."""
    outputs: dict[str, list[float]] = {}
    for row in listed:
        if row.kind == HOST and row.tier == STANDARD and not row.above and not row.hours:
            outputs.setdefault(row.model, []).append(row.output)
    for row in listed:
        over = row.output / median(outputs[row.model]) if row.kind == HOST else 1.0
        far = not 1 / MAX_RATIO < over < MAX_RATIO
        note = f"{over:.2g}x the {OUTLIER} output price"
        yield replace(row, suspect=note) if far and not row.suspect else row


def price_changes(
    before: Sequence[ListedPrice], after: Sequence[ListedPrice]
) -> Iterator[PriceChange]:
    """Changed, removed and new prices, by model, host and tier.

    One row of a place that differs from the one row that was there has changed; where a host lists
    several of them (versions of a checkpoint), those without their equal are gone and new.
    """
    places: dict[tuple[object, ...], tuple[list[ListedPrice], list[ListedPrice]]] = {}
    for side, listed in enumerate((before, after)):
        for row in dict.fromkeys(listed):
            places.setdefault(_same_place(row), ([], []))[side].append(row)
    for _, (old, new) in sorted(places.items(), key=lambda item: tuple(map(str, item[0]))):
        were, are = ({_identity(row) for row in side} for side in (old, new))
        gone = [row for row in old if _identity(row) not in are]
        fresh = [row for row in new if _identity(row) not in were]
        if len(gone) == len(fresh) == 1:
            yield PriceChange("changed", gone[0], fresh[0])
            continue
        yield from (PriceChange("gone", row, None) for row in gone)
        yield from (PriceChange("new", None, row) for row in fresh)
