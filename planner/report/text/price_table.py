"""Tables of listed prices: tokens by host, and chips by contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from planner.catalogue import api_prices
from planner.catalogue.api_prices import PRICES, TOKENS, ListedPrice
from planner.catalogue.listed_prices import CONTRACTS, contract_rent
from planner.text.errors import CatalogueError
from planner.text.listing import Cell, format_columns
from planner.text.quantities import show

if TYPE_CHECKING:
    from planner.catalogue.refresh.price_refresh import PriceChange, PriceRefresh

OF_PRICES = ("input", "output", "cached", "write", "write 1h")
HEADINGS = ("host", "tier", "above", *OF_PRICES, "from", "read")
OF_MODELS: Mapping[str, str | None] = {
    "model": None, "hosts": "number",
    **dict.fromkeys(("input", "output", "least 3:1", "median 3:1", "most 3:1"), "token_price"),
    "read": None,
}  # fmt: skip
OF_CHANGES = ("", "model", *HEADINGS[:-2], "status", "from", "until", "read")
UNIT = "USD per million tokens"


def price_card(model: str) -> dict[str, object]:
    """Every row of one model, those that count first, and the spread over its hosts."""
    rows = api_prices.prices_on_date(model)
    counted = set(api_prices.host_prices(model))
    ordered = sorted(rows, key=lambda x: (x not in counted, x.reseller, x.host, x.tier, x.above))
    later = [
        row for row in api_prices.listed_token_prices() if row.model == model and row not in rows
    ]
    return {
        "unit": "USD/token",
        "rule": api_prices.SELECTION_RULE,
        "hosts": _spread(tuple(counted)),
        "rows": [asdict(row) | {"counted": row in counted} for row in ordered],
        "not_in_force": [asdict(row) for row in later],
    }


def _spread(rows: Sequence[ListedPrice]) -> dict[str, object] | None:
    """Quartiles of input, output and a mix of 3 : 1 over hosts [USD/token]."""
    if not rows:
        return None
    of = {"input": lambda x: x.input, "output": lambda x: x.output, "mix_3_1": mix}
    return {name: asdict(api_prices.quartiles(rows, value)) for name, value in of.items()}


def mix(row: ListedPrice) -> float:
    """Three tokens in for one out [USD/token]."""
    return (3 * row.input + row.output) / 4


def price_text(card: Mapping[str, Any]) -> str:
    """The rows of a model under column headings, in USD per million tokens."""
    lines = [f"{card['name']}, {UNIT}{api_prices.chosen_file()}", ""]
    cells = [_cells(row) for row in card["rows"]]
    lines += format_columns(HEADINGS, cells, words=(0, 1))
    if (hosts := card["hosts"]) is not None and hosts["input"]["n"] > 1:
        lines.append("")
        for name, row in hosts.items():
            middle = f"{_usd(row['q25'])} / {_usd(row['median'])} / {_usd(row['q75'])}"
            ends = f"{_usd(row['least'])} to {_usd(row['most'])}"
            lines.append(f"{name.replace('_3_1', ' 3:1'):<9} quartiles {middle}, {ends}")
        lines += [f"{hosts['input']['n']} hosts counted (*):", f"  {card['rule']}"]
    if card["not_in_force"]:
        dates = sorted({row["since"] or f"until {row['until']}" for row in card["not_in_force"]})
        lines.append(f"rows of other dates, in --json: {', '.join(dates)}")
    return "\n".join(lines)


def model_row(model: str) -> tuple[Cell, ...]:
    """A model with its hosts that count, and medians over them [USD/token]; see OF_MODELS."""
    rows = api_prices.host_prices(model)
    if not rows:
        return (model, 0.0, *[None] * (len(OF_MODELS) - 2))
    spread = api_prices.quartiles(rows, mix)
    sides = (attrgetter("input"), attrgetter("output"))
    middle = (api_prices.quartiles(rows, value).median for value in sides)
    ends = (spread.least, spread.median, spread.most)
    return (model, float(len(rows)), *middle, *ends, max(row.as_of for row in rows))


def refresh_text(refresh: PriceRefresh, model: str | None = None) -> str:
    """Format the changed, new and removed prices of a model, or of all models, with dates."""
    shown = [x for x in refresh.changes if model in (None, x.model)]
    counts = Counter(each.what for each in shown)
    totals = ", ".join(f"{counts[what]} {what}" for what in ("changed", "new", "gone"))
    lines = [f"{refresh.source} beside the snapshot, {UNIT}: {totals}"]
    if shown:
        lines += ["", *format_columns(OF_CHANGES, [_change(x) for x in shown], words=(0, 1, 2, 3))]
    if refresh.left_out and model is None:
        names = ", ".join(refresh.left_out[:3])
        many = f"left out, {len(refresh.left_out)} models of vendors that resell others' too"
        lines += ["", f"{many}: {names}, ..."]
    return "\n".join(lines)


def _change(change: PriceChange) -> tuple[str, ...]:
    """Row of the table of changes: old value, arrow, new value."""
    before, after = change.before or change.after, change.after or change.before
    assert before is not None
    assert after is not None

    def both(old: str, new: str) -> str:
        return new if old == new else f"{old or 'none'} -> {new or 'none'}"

    prices = (both(_usd(getattr(before, x)), _usd(getattr(after, x))) for x in PRICES)
    tier = after.tier + (f" {after.hours} UTC" if after.hours else "")
    above = f"{after.above:,}" if after.above else ""
    status = both(before.status or "listed", after.status or "listed")
    read = both(before.as_of, after.as_of)
    return (change.what, after.model, after.host, tier, above, *prices,
            "" if status == "listed" else status, after.since, after.until, read)  # fmt: skip


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    marks = "*" * row["counted"] + " (reseller)" * row["reseller"] + " (withdrawn)" * (
        row["status"] == "deprecated"
    )  # fmt: skip
    prices = (row[key] for key in PRICES)
    tier = row["tier"] + (f" {row['hours']} UTC" if row["hours"] else "")
    above = f"{row['above']:,}" if row["above"] else ""
    return (row["host"] + marks, tier, above, *map(_usd, prices), row["since"], row["as_of"])


def _usd(value: float | None) -> str:
    return "" if value is None else f"{value * TOKENS:.4g}"


def contract_facts(chip: str) -> dict[str, str]:
    """Rents of a chip by contract: median, range, number of rows, newest date."""
    facts = {}
    for contract in CONTRACTS:
        try:
            rent = contract_rent(chip, contract)
        except CatalogueError:
            continue  # no rent is listed under this contract
        low, high = (show(each, "price") for each in (rent.low, rent.high))
        span = low if rent.count == 1 else f"{low} to {high}, median {show(rent.value, 'price')}"
        facts[contract] = f"{span} ({rent.count} listed, newest {rent.as_of})"
    return facts
