"""What `planner catalog` prints: every entry, and every figure with its source and date.

What `planner model` prints: the make-up of a model, counted from its layers.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planner.architecture import read_config, summary
from planner.catalogue import api_prices, models
from planner.catalogue.chips import chip, chip_names
from planner.catalogue.figures import Figure
from planner.catalogue.hub import hub_config, is_hub_name
from planner.catalogue.listed_prices import default_price, rentals, tier, tier_names
from planner.catalogue.profile import profile, profile_names
from planner.catalogue.scaling_laws import RANGES, Coefficient, Covariance, Law, law, law_names
from planner.catalogue.systems import system, system_names
from planner.report.text.price_table import contract_facts, models_text, price_card, price_text
from planner.text.errors import CatalogueError, did_you_mean
from planner.text.quantities import show

MANY = 100  # names that are counted, not printed, among all kinds
STRONG = 0.9  # correlations of coefficients that are printed


def catalog(kind: str | None = None, name: str | None = None) -> dict[str, object]:
    """What is known: all kinds, the names of one kind, or one entry with its figures.

    Every figure has its unit, its source and the date of the source. Raises CatalogueError if the
    kind or the name is unknown, with the nearest.
    """
    if kind is None:
        return {"kinds": {each: list(names()) for each, (names, _) in _KINDS.items()}}
    if kind not in _KINDS:
        raise CatalogueError(
            f"no catalogue of {kind!r}{did_you_mean(kind, _KINDS)} known: {', '.join(_KINDS)}"
        )
    names, entry = _KINDS[kind]
    if name is None:
        return {"kind": kind, "names": list(names())}
    if name not in names():
        raise CatalogueError.unknown(kind.rstrip("s"), name, names())
    return {"kind": kind, "name": name, **entry(name)}


def catalog_text(card: Mapping[str, Any]) -> str:
    """The same on a terminal."""
    if "kinds" in card:
        return "\n\n".join(
            f"{kind} ({len(names)})\n  " + "\n  ".join(_printed_names(kind, names))
            for kind, names in card["kinds"].items()
        )
    if "names" in card:
        return models_text() if card["kind"] == API_PRICES else "\n".join(card["names"])
    if card["kind"] == API_PRICES:
        return price_text(card)
    lines = [f"{card['name']}{': ' + card['title'] if card.get('title') else ''}"]
    lines += [f"{key}: {value}" for key, value in card.get("facts", {}).items()]
    for figure in card.get("figures", []):
        note = f"  {figure['note']}" if figure["note"] else ""
        ground = f"({figure['as_of'] or 'undated'}, verified: {figure['verified']})"
        lines.append(f"{figure['name']:<18} {figure['value']:g} {figure['unit']}{note}")
        lines.append(f"{'':<18} {figure['source']} {ground}")
    return "\n".join(lines)


def _printed_names(kind: str, names: list[str]) -> list[str]:
    return names if len(names) < MANY else [f"planner catalog {kind}"]


def _figures(figures: Mapping[str, Figure]) -> list[dict[str, object]]:
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
        rows += _figures({row.tier: Figure(row.value * 3600, "USD/hour", row.value, *ground)})
    facts = {}
    if any(row.tier == "on-demand" and row.verified != "no" for row in listed_rents):
        price = default_price(name)
        facts["default"] = (
            f"{show(price.value, 'price')}, {show(price.low, 'price')} to "
            f"{show(price.high, 'price')}, {price.source} ({price.as_of})"
        )
    facts |= contract_facts(name)
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
        **_ranges(entry),
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


def _ranges(entry: Law) -> dict[str, str]:
    """The ranges that were fitted on, as `range of n`: lowest to highest."""
    return {
        f"range of {key}": " to ".join(dict.fromkeys(_end(x, RANGES[key]) for x in ends))
        for key, ends in entry.range.items()
    }


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
        if abs(row[j]) >= STRONG
    ]
    return {"correlated": f"{', '.join(pairs) or 'weakly'}; {covariance.source}"}


def _spread(coefficient: Coefficient) -> str:
    """A coefficient with its standard error or interval."""
    spread = ""
    if coefficient.error is not None:
        spread = f" ± {coefficient.error:g}"
    elif coefficient.low is not None:
        spread = f" ({coefficient.low:g} to {coefficient.high:g})"
    return f"{coefficient.value:g}{spread}"


API_PRICES = "api-prices"
_Entry = Callable[[str], dict[str, object]]
_KINDS: Mapping[str, tuple[Callable[[], tuple[str, ...]], _Entry]] = {
    "chips": (chip_names, _chip),
    "systems": (system_names, _system),
    "models": (models.names, _model),
    "prices": (lambda: tuple(dict.fromkeys(row.chip for row in rentals())), _price),
    "profiles": (profile_names, _profile),
    "laws": (law_names, _law),
    "tiers": (tier_names, _tier),
    API_PRICES: (api_prices.model_names, price_card),
}


CLASSES = ("attention", "dense_ffn", "shared", "routed", "embedding", "head", "router", "other")


def model(name: str | Path) -> dict[str, object]:
    """What a model is made of, counted from its layers: parameters, bytes [byte], FLOP [flop].

    Raises InputError if the name is neither of the catalogue nor the path of a Hugging Face
    config.json that can be counted.
    """
    name = str(name)
    if is_hub_name(name) and not Path(name).exists():
        name = models.of_repository(name) or str(hub_config(name).path)
    file = Path(name).exists() or "/" in name or name.endswith(".json")
    if file and name not in models.names():
        return summary(read_config(Path(name)))
    return summary(models.load(name)) | {"as_of": models.record(name).as_of}


def model_text(card: Mapping[str, Any]) -> str:
    """The same on a terminal."""
    active = card["n_active"]
    lines = [
        f"{card['name']} ({card['family']}), {card['n_layers']} layers, hidden {card['hidden']}",
        f"total parameters     {card['n_total']:>20,}",
        f"active, all          {active['all']:>20,}",
        f"  no input embedding {active['no_input_embedding']:>20,}   what FLOP are counted with",
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
