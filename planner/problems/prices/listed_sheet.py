"""A price sheet in base units, from the catalogue or from rows: prices, writes, steps, tiers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import prod

from planner.catalogue import api_prices
from planner.catalogue.api_prices import STANDARD, ListedPrice
from planner.problems.prices.question import PricesScenario, SheetRows, edge
from planner.protocol.plan import DataSource
from planner.scenario.keys.buy_keys import relative, scaled_prices
from planner.text.errors import CatalogueError, FieldError
from planner.text.wording import digits

SHORT_HOLD_S, LONG_HOLD_S = 300.0, 3600.0  # s; cache lifetimes of a write where a list prices two
YEAR = 365  # days after which a listed price is old
MEDIAN = "median over hosts"


@dataclass(frozen=True)
class SheetStep:
    """Prices of a whole request from `edge` tokens of prompt on, over those below it [-]."""

    edge: int
    input: float | None
    output: float | None


@dataclass(frozen=True)
class SheetTier:
    """A mode's price and speed over those of the standard tier [-]; speed is None if unlisted."""

    name: str
    price: float
    speed: float | None = None


@dataclass(frozen=True)
class PriceSheet:
    """Prices of tokens [USD/token], of writes by hold time [s], and of storage [USD/(token*s)].

    A hold time of 0 is one that is not listed.
    """

    name: str
    input: float
    output: float
    cached: float | None = None
    writes: tuple[tuple[float, float], ...] = ()
    storage: float | None = None
    steps: tuple[SheetStep, ...] = ()
    tiers: tuple[SheetTier, ...] = ()
    data: tuple[DataSource, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Price of an output token over that of an input token [-]."""
        return self.output / self.input

    @property
    def mix(self) -> float:
        """Price of a token where three are read for each one written [USD/token]."""
        return (3 * self.input + self.output) / 4


def price_sheet(question: PricesScenario, today: date) -> PriceSheet:
    """Price sheet of the question, each price multiplied by all factors of `multiply`.

    Raises FieldError for a sheet that the catalogue does not have on the day asked for.
    """
    sheet, times = _with_warnings(_single(question, today)), question.multiply
    if not times:
        return sheet
    return replace(
        scaled_prices(sheet, times, "input", "output", "cached", "storage"),
        writes=tuple((hold, price * prod(times.values())) for hold, price in sheet.writes),
    )


def _single(question: PricesScenario, today: date) -> PriceSheet:
    sheet = question.sheet
    if isinstance(sheet, SheetRows):
        return PriceSheet(
            "your price sheet",
            sheet.input,
            sheet.output,
            sheet.cached,
            tuple((row.hold, row.price) for row in sheet.write if row.price),
            sheet.storage,
            tuple(
                SheetStep(
                    edge(step.above),
                    None if step.input is None else relative(step.input, sheet.input),
                    None if step.output is None else relative(step.output, sheet.output),
                )
                for step in sheet.steps
            ),
            tuple(SheetTier(x.name, relative(x.price, sheet.output), x.speed) for x in sheet.tiers),
        )
    day = date.fromisoformat(question.date) if question.date else today
    try:
        if "/" in sheet:
            return _listed(sheet, api_prices.sheet_rows(sheet, day), day)
        return _median(sheet, day)
    except CatalogueError as error:
        raise FieldError(("sheet", str(error))) from error


def _listed(name: str, rows: Sequence[ListedPrice], day: date) -> PriceSheet:
    """Price sheet of one host: its newest standard row, with its steps and tiers."""
    base = [row for row in rows if row.tier == STANDARD and not row.above and not row.hours]
    if not base:
        dates = ", ".join(sorted({row.tier for row in rows}))
        raise CatalogueError(f"{name} has no standard price in force on {day} (it has {dates})")
    first = api_prices.newest_price(base)
    above = [row for row in rows if row.tier == STANDARD and row.above and not row.hours]
    tiers = [row for row in rows if row.tier != STANDARD and not row.above and not row.hours]
    writes = [(SHORT_HOLD_S if first.write_1h else 0.0, first.write), (LONG_HOLD_S, first.write_1h)]
    notes = []
    if first.reseller:
        notes.append(f"{name} is a reseller: it passes on another host's price")
    age = (day - date.fromisoformat(f"{first.as_of}-01"[:10])).days
    if age > YEAR:
        notes.append(f"the prices of {name} were read in {first.as_of}, {age} days before {day}")
    if first.as_of[:7] > day.isoformat()[:7]:
        notes.append(f"the prices of {name} were read in {first.as_of}, after {day}")
    if first.write and first.write < first.input:
        notes.append("a write is listed below the input price, and is not used")
    if hours := sorted({row.hours for row in rows if row.hours}):
        notes.append(f"other prices at {', '.join(hours)} UTC; those of the other hours are read")
    if any(row.tier != STANDARD for row in rows):
        notes.append("a list does not say how fast a tier is: give rows with speed to read one")
    return PriceSheet(
        name,
        first.input,
        first.output,
        first.cached,
        tuple((hold, price) for hold, price in writes if price and price >= first.input),
        None,
        tuple(
            SheetStep(edge(x.above), _step(x.input, first.input), _step(x.output, first.output))
            for x in sorted(above, key=lambda x: x.above)
        ),
        tuple(SheetTier(x.tier, x.output / first.output) for x in tiers),
        (DataSource(f"prices of {name}{api_prices.chosen_file()}", first.source, first.as_of),),
        tuple(notes),
    )


def _step(above: float, below: float) -> float | None:
    return above / below if abs(above / below - 1) > 1e-9 else None


def _median(name: str, day: date) -> PriceSheet:
    """Medians over the hosts of a model with public weights."""
    hosts = api_prices.host_prices(name, on=day)
    if name not in api_prices.open_models():
        names = ", ".join(f"{row.host}/{name}" for row in hosts)
        raise CatalogueError(f"{name} is sold by its vendor; write {names}")
    middle = api_prices.median_prices(name, day)
    rule = f"{MEDIAN} ({len(hosts)}): {api_prices.SELECTION_RULE}"
    newest = max(row.as_of for row in hosts)
    data = (DataSource(f"prices of {name}{api_prices.chosen_file()}", rule, newest),)
    return PriceSheet(name, middle[0], middle[1], data=data)


def _with_warnings(sheet: PriceSheet) -> PriceSheet:
    """Add warnings about unusual prices to the sheet."""
    notes = list(sheet.warnings)
    if sheet.ratio < 0.5:
        notes.append(
            f"an output token at {digits(sheet.ratio)} of an input token: less than half is unusual"
        )
    notes += [
        f"{tier.name} at {digits(tier.price)} of the standard price is dearer: unusual for a batch"
        for tier in sheet.tiers if tier.name in ("batch", "flex") and tier.price > 1
    ]  # fmt: skip
    return replace(sheet, warnings=tuple(notes))
