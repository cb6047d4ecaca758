"""Text of `planner catalog`: every entry, and every figure with its source and date.

What `planner model` prints: the make-up of a model, counted from its layers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from planner.architecture import read_config, summary
from planner.catalogue import api_prices, models
from planner.catalogue.chips import chip, chip_names
from planner.catalogue.figures import SourcedValue
from planner.catalogue.hub import hub_config, is_hub_name
from planner.catalogue.listed_prices import default_price, rentals, tier, tier_names
from planner.catalogue.profile import profile, profile_names
from planner.catalogue.scaling_laws import RANGES, Coefficient, Covariance, law, law_names
from planner.catalogue.systems import system, system_names
from planner.report.text import price_table
from planner.report.text.price_table import OF_MODELS, model_row
from planner.text.errors import CatalogueError, InputError, did_you_mean
from planner.text.listing import Cell, Listing
from planner.text.quantities import show

T = TypeVar("T")
_Row = Callable[[str], tuple[Cell, ...]]
MAX_NAMES_WIDTH = 100  # letters of the names of a kind, where the kinds are listed
MIN_SHOWN_CORRELATION = 0.9  # correlations of coefficients that are printed


def catalog(
    kind: str | None = None, name: str | None = None, find: str | None = None,
    where: Sequence[str] = (),
) -> dict[str, object]:  # fmt: skip
    """Return catalogue data: all kinds, the rows of a kind, or an entry with its figures.

    `find` and `where` are those of `Listing.selected`. Every figure of an entry has its unit, its
    source and the date of the source. Raises CatalogueError if the kind or the name is unknown,
    with the nearest, and InputError for a condition that is none.
    """
    if kind is not None and kind not in KINDS:
        raise CatalogueError(
            f"no catalogue of {kind!r}{did_you_mean(kind, KINDS)} known: {', '.join(KINDS)}"
        )
    if kind is None and where:
        raise InputError(f"--where needs a kind, such as planner catalog chips --where "
                         f"'memory>=100 GB' (kinds: {', '.join(KINDS)})")  # fmt: skip
    if kind is None:
        every = {kind: list(names()) for kind, (names, *_) in KINDS.items()}
        entries = {kind: listing(kind).selected(find).names for kind in KINDS} if find else every
        return {"kinds": entries}
    names, entry = KINDS[kind][:2]
    if name is None:
        rows = listing(kind).selected(find, where)
        return {"kind": kind, "names": rows.names, "rows": rows.records}
    if find or where:
        raise InputError(f"--find and --where choose among {kind}; leave out {name!r}")
    if name not in names():
        raise CatalogueError.unknown(kind.rstrip("s"), name, names())
    return {"kind": kind, "name": name, **entry(name)}


def listing(kind: str) -> Listing:
    """List every entry of a kind with the figures used for selection, in base units."""
    names, _, columns, row = KINDS[kind]
    return Listing(columns, tuple(row(name) for name in names()))


def catalog_text(card: Mapping[str, Any]) -> str:
    """Format catalogue data for a terminal."""
    if "kinds" in card:
        kinds = {kind: names for kind, names in card["kinds"].items() if names}
        such = [", ".join(x)[:MAX_NAMES_WIDTH].rpartition(",")[0] or x[0] for x in kinds.values()]
        rows = [(kind, float(len(kinds[kind])), few) for kind, few in zip(kinds, such, strict=True)]
        listed = str(Listing({"kind": None, "entries": "number", "such as": None}, tuple(rows)))
        return f"{listed}\n\nplanner catalog KIND lists them; --find WORDS searches all of them"
    if "rows" in card and "names" in card:
        shown = tuple(tuple(row.values()) for row in card["rows"])
        head = f"{UNIT_OF_PRICES}{api_prices.chosen_file()}\n\n" * (card["kind"] == API_PRICES)
        return head + str(Listing(KINDS[card["kind"]][2], shown)) if shown else "nothing is that"
    if card["kind"] == API_PRICES:
        return price_table.price_text(card)
    lines = [f"{card['name']}{': ' + card['title'] if card.get('title') else ''}"]
    lines += [f"{key}: {value}" for key, value in card.get("facts", {}).items()]
    for figure in card.get("figures", []):
        note = f"  {figure['note']}" if figure["note"] else ""
        ground = f"({figure['as_of'] or 'undated'}, verified: {figure['verified']})"
        lines.append(f"{figure['name']:<18} {figure['value']:g} {figure['unit']}{note}")
        lines.append(f"{'':<18} {figure['source']} {ground}")
    return "\n".join(lines)


def _figures(figures: Mapping[str, SourcedValue]) -> list[dict[str, object]]:
    return [{"name": name, **asdict(figure)} for name, figure in figures.items()]


def _chip(name: str) -> dict[str, object]:
    entry = chip(name)
    return {"title": entry.title, "figures": _figures(entry.figures)}


def _system(name: str) -> dict[str, object]:
    entry = system(name)
    facts = {
        "chip": entry.chip.name,
        "network": entry.topology
        or ("PCI Express of one host" if entry.scale_up else "none known: one chip alone"),
    }
    return {"facts": facts, "figures": _figures(entry.figures)}


def _model(name: str) -> dict[str, object]:
    record = models.record(name)
    return {"facts": {"source": record.source, "as_of": record.as_of}}


def _price(name: str) -> dict[str, object]:
    listed_rents = rentals(name)
    rows = []
    for row in listed_rents:
        ground = (f"{row.provider}: {row.source}", row.as_of, row.verified, row.note)
        rows += _figures({row.tier: SourcedValue(row.value * 3600, "USD/hour", row.value, *ground)})
    facts = {}
    if any(row.tier == "on-demand" and row.verified != "no" for row in listed_rents):
        price = default_price(name)
        facts["default"] = (
            f"{show(price.value, 'price')}, {show(price.low, 'price')} to "
            f"{show(price.high, 'price')}, {price.source} ({price.as_of})"
        )
    facts |= price_table.contract_facts(name)
    return {"facts": facts, "figures": rows}


def _profile(name: str) -> dict[str, object]:
    entry = profile(name)
    facts = {
        "engine": entry.engine,
        "chips": ", ".join(entry.chips),
        "rows": entry.rows,
        "source": entry.source,
        "as_of": entry.as_of,
        **{f"error {key}": value for key, value in entry.errors.items()},
        **{f"band {key}": f"{b.low:g} to {b.high:g}" for key, b in entry.bands.items()},
        **dict(entry.values),
    }
    return {"facts": facts}


def _law(name: str) -> dict[str, object]:
    entry = law(name)
    facts = {
        "form": entry.form,
        **{symbol: _spread(each) for symbol, each in entry.coefficients.items()},
        **{symbol: f"{value:g} (chosen)" for symbol, value in entry.settings.items()},
        **_together(entry.covariance),
        "fitted on": entry.scope,
        **{
            f"range of {key}": " to ".join(dict.fromkeys(_end(x, RANGES[key]) for x in ends))
            for key, ends in entry.range.items()
        },
        **({"note": entry.note} if entry.note else {}),
        "source": f"{entry.source} {entry.link} ({entry.as_of}, verified: {entry.verified})",
    }
    numbers = {symbol: asdict(each) for symbol, each in entry.coefficients.items()}
    more = {"range": dict(entry.range), "settings": dict(entry.settings)}
    if entry.covariance is not None:
        more["covariance"] = asdict(entry.covariance)
    return {"title": entry.title, "facts": facts, "coefficients": numbers, **more}


def _tier(name: str) -> dict[str, object]:
    entry = tier(name)
    facts = {"kind": entry.kind, "drain time": show(entry.capacity / entry.read_rate, "time")}
    return {"title": entry.title, "facts": facts, "figures": _figures(entry.figures)}


def _end(value: float, dimension: str) -> str:
    if dimension == "number":
        return f"{value:g}"
    return f"{value:g} FLOP" if dimension == "work" else show(value, dimension)


def _together(covariance: Covariance | None) -> dict[str, str]:
    """The correlations that are larger than the rest, and where they come from."""
    if covariance is None:
        return {}
    pairs = [
        f"{covariance.of[i]} and {covariance.of[j]} {row[j]:+.4f}"
        for i, row in enumerate(covariance.correlation)
        for j in range(i)
        if abs(row[j]) >= MIN_SHOWN_CORRELATION
    ]
    return {"correlated": f"{', '.join(pairs) or 'weakly'}; {covariance.source}"}


def _spread(coefficient: Coefficient) -> str:
    spread = ""
    if coefficient.error is not None:
        spread = f" ± {coefficient.error:g}"
    elif coefficient.low is not None:
        spread = f" ({coefficient.low:g} to {coefficient.high:g})"
    return f"{coefficient.value:g}{spread}"


def _row(find: Callable[[str], T], cells: Callable[[T], tuple[Cell, ...]]) -> _Row:
    return lambda name: (name, *cells(find(name)))


def _model_row(name: str) -> tuple[Cell, ...]:
    card: Mapping[str, Any] = summary(models.load(name))
    figures = (card["n_total"], card["n_active"]["all"], card["n_layers"],
               card["kv_bytes_per_token"], card["max_context"])  # fmt: skip
    return (name, *(None if x is None else float(x) for x in figures), card["family"])


def _price_row(name: str) -> tuple[Cell, ...]:
    rows = [row for row in rentals(name) if row.tier == "on-demand" and row.verified != "no"]
    price = default_price(name) if rows else None
    ends = (price.value, price.low, price.high) if price else (None, None, None)
    return (name, *ends, float(len(rentals(name))), price.as_of if price else None)


API_PRICES = "api-prices"
UNIT_OF_PRICES = "listed prices of models, medians over the hosts that count"
_Names = Callable[[], tuple[str, ...]]
_Entry = Callable[[str], dict[str, object]]
_Columns = Mapping[str, str | None]
_RATES: _Columns = dict.fromkeys(("bf16", "fp8", "fp4"), "compute")
KINDS: Mapping[str, tuple[_Names, _Entry, _Columns, _Row]] = {
    "chips": (
        chip_names, _chip,
        {"chip": None, "memory": "size", "bandwidth": "bandwidth", **_RATES, "power": "power",
         "title": None},
        _row(chip, lambda x: (x.memory, x.memory_bandwidth, *map(x.flops.get, _RATES), x.power,
                              x.title)),
    ),
    "systems": (
        system_names, _system,
        {"system": None, "chip": None, "domain": "number", "scale_up": "bandwidth",
         "scale_out": "bandwidth", "network": None},
        _row(system, lambda x: (x.chip.name, x.chips_per_domain and float(x.chips_per_domain),
                                x.scale_up, x.scale_out, x.topology)),
    ),
    "models": (
        models.model_names, _model,
        {"model": None, "params": "params", "active": "params", "layers": "number",
         "kv": "bytes_per_token", "context": "tokens", "family": None}, _model_row,
    ),
    "prices": (
        lambda: tuple(dict.fromkeys(row.chip for row in rentals())), _price,
        {"chip": None, "price": "price", "low": "price", "high": "price", "rows": "number",
         "read": None}, _price_row,
    ),
    "profiles": (
        profile_names, _profile,
        {"profile": None, "engine": None, "rows": "number", "as_of": None, "chips": None},
        _row(profile, lambda x: (x.engine, float(x.rows), x.as_of, ", ".join(x.chips))),
    ),
    "laws": (
        law_names, _law, {"law": None, "form": None, "as_of": None, "title": None},
        _row(law, lambda x: (x.form, x.as_of, x.title)),
    ),
    "tiers": (
        tier_names, _tier,
        {"tier": None, "kind": None, "capacity": "size", "read_rate": "bandwidth", "drain": "time",
         "title": None},
        _row(tier, lambda x: (x.kind, x.capacity, x.read_rate, x.capacity / x.read_rate, x.title)),
    ),
    API_PRICES: (api_prices.model_names, price_table.price_card, OF_MODELS, model_row),
}  # fmt: skip


CLASSES = ("attention", "dense_ffn", "shared", "routed", "embedding", "head", "router", "other")


def model(name: str | Path) -> dict[str, object]:
    """Count a model from its layers: parameters, bytes [byte], FLOP [flop].

    Raises InputError if the name is neither of the catalogue nor the path of a Hugging Face
    config.json that can be counted.
    """
    name = str(name)
    if is_hub_name(name) and not Path(name).exists():
        name = models.model_of_repository(name) or str(hub_config(name).path)
    file = Path(name).exists() or "/" in name or name.endswith(".json")
    if file and name not in models.model_names():
        return summary(read_config(Path(name)))
    return summary(models.load(name)) | {"as_of": models.record(name).as_of}


def model_text(card: Mapping[str, Any]) -> str:
    """Format the counts of a model for a terminal."""
    active = card["n_active"]
    low, high = card["n_active_range"]
    lines = [
        f"{card['name']} ({card['family']}), {card['n_layers']} layers, hidden {card['hidden']}",
        f"total parameters     {card['n_total']:>20,}",
        f"active, all          {active['all']:>20,}",
        f"  no input embedding {active['no_input_embedding']:>20,}   what FLOP are counted with",
        *([f"    a mean, from     {low:>20,}   to {high:,}"] if low < high else []),
        f"  no embedding, head {active['no_embedding_no_head']:>20,}",
        "",
        "layers",
    ]
    for kind in card["layers"]:
        mixer, window = kind["mixer"] or "nothing", kind.get("window")
        if window:
            mixer = f"{mixer} {window}" if mixer == "window" else f"{mixer}, window {window}"
        lines.append(f"  {kind['count']:>4} x {mixer} + {kind['ffn'] or 'nothing'}")
    experts = card["experts"]
    if experts["routed"]:
        lines.append(
            f"  {experts['routed']} experts, {experts['active']} of them and "
            f"{experts['shared']} shared for each token"
        )
    lines += ["", "weights"]
    for group in CLASSES:
        if card["params"][group]:
            size = show(card["weight_bytes"][group], "size")
            dtype = card["weight_dtypes"][group]
            lines.append(f"  {group:<10} {card['params'][group]:>18,}  {size:>9}  {dtype}")
    size = show(sum(card["weight_bytes"].values()), "size")
    lines += [
        f"  {'in all':<10} {card['n_total']:>18,}  {size:>9}",
        "",
        f"KV cache             {card['kv_bytes_per_token']:,.0f} byte/token ({card['kv_dtype']})",
    ]
    for key, label in (("window", "windows"), ("state", "state")):
        if size := card[f"{key}_bytes_per_sequence"]:
            lines.append(f"{label:<20} {show(size, 'size')} per sequence")
    attention = card["attention_flop_per_cached_token"]
    lines.append(f"attention            {attention:,.0f} FLOP per cached token")
    if card["excluded"]:
        lines.append(f"not counted          {', '.join(card['excluded'])}")
    lines.append(f"source               {card['source']}")
    return "\n".join(lines)
