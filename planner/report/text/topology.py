"""Text of `planner topology`: a network's links, its rates by group size, and its doubts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.report.files import check_file, deliver, unwritten
from planner.text.errors import InputError
from planner.text.quantities import show
from planner.text.wording import WIDTH, first_sentences, wrap_text

if TYPE_CHECKING:
    from topologies.fabric.fabric import Fabric

LABEL = 16
TIERS = {"scale_up": "scale-up", "scale_out": "scale-out", "host": "host"}
MAX_FAULTS_SHOWN = 8  # faults, doubts
FORMS = ("svg", "json", "yaml", "yml", "graphml")


def machines_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The machines of the catalogue, one a line."""
    lines = [f"{'':<20}{'chips in a domain':<26}{'inside':>10}{'between':>12}   per chip, one way"]
    for row in rows:
        sides = "x".join(map(str, row["dims"])) if row["dims"] else ""
        what = f"{row['chips_per_domain']:>5} {row['kind']} {sides}".rstrip()
        out = show(row["scale_out"], "bandwidth") if row["scale_out"] else "-"
        lines.append(
            f"{row['name']:<20}{what:<26}{show(row['scale_up'], 'bandwidth'):>10}{out:>12}"
        )
    return "\n".join(lines)


def topology_text(net: Mapping[str, Any]) -> str:
    """The document of a network on a terminal, at most 80 columns wide."""
    seen: dict[tuple[str, str], list[str]] = {}
    for figure in net["figures"]:
        if figure["assumed"]:  # a doubt, and said there
            continue
        seen.setdefault((figure["source"], figure["as_of"]), []).append(figure["name"])
    lines = []
    for (source, as_of), names in seen.items():
        lines += wrap_text(f"{', '.join(names)}: {source} ({as_of})")
    if not lines and net["source"]:
        dated = f" ({net['as_of']})" if net["as_of"] else ""
        lines = wrap_text(f"source: {net['source']}{dated}")
    blocks = [
        _head(net),
        _links(net["links"]),
        _facts(net),
        _groups(net),
        _binding(net["groups"]),
        _times_of(net["collectives"]),
        first_sentences("faults", net["faults"], MAX_FAULTS_SHOWN),
        first_sentences("doubts", net["doubts"], MAX_FAULTS_SHOWN),
        "\n".join(lines),
    ]
    return "\n\n".join(block for block in blocks if block)


def write_picture(G: Fabric, path: Path) -> None:
    """Write the picture of a fabric; InputError if the file cannot be written."""
    from topologies.picture import svg

    deliver(svg(G), path)


def write_fabric(G: Fabric, path: Path) -> None:
    """Write a fabric in the form that the file's ending says.

    Raises InputError if no form has that ending, the form cannot express the fabric, or the file
    cannot be written; SolverError if the disk is at fault.
    """
    from planner.text.console import note
    from topologies import write
    from topologies.fabric.limits import TopologyError

    if check_file(path, "--out", FORMS) == "svg":
        write_picture(G, path)
        return
    try:
        write(G, path)
    except TopologyError as error:
        if isinstance(error.__cause__, OSError):
            raise unwritten(path, error.__cause__) from error
        raise InputError(f"--out {error}") from error
    note(f"wrote {path}", warning=True)


def _head(net: Mapping[str, Any]) -> str:
    domains = net["domains"]
    sizes = [f"{n:,}" for n in domains["chips"]]
    single = domains["count"] == 1
    chips = f"{net['chips']:,} chip{'s' if net['chips'] != 1 else ''}"
    where = "in one scale-up domain" if single else f"in {domains['count']:,} scale-up domains"
    if not single:
        where += f" of {sizes[0]}" if len(sizes) == 1 else f" of {sizes[0]} to {sizes[-1]}"
    others = [
        f"{many:,} {kind if many == 1 else 'switches' if kind == 'switch' else kind + 's'}"
        for kind, many in net["nodes"].items()
        if kind != "accelerator"
    ]
    relays = "chips relay for others" if net["relays"] else "chips relay for nobody"
    title = net["name"] if net["title"] == net["name"] else f"{net['name']}: {net['title']}"
    return "\n".join(
        [*wrap_text(title), *wrap_text("; ".join([f"{chips} {where}", *others, relays]))]
    )


def _links(rows: Iterable[Mapping[str, Any]]) -> str:
    lines = [f"{'links':<26}{'one way':>12}{'number':>10}{'latency':>10}"]
    for row in rows:
        ends = " - ".join(row["ends"])
        ends += f" along {' '.join(row['along'])}" if row["along"] else ""
        back = row["bandwidth_back"]
        notes = [TIERS.get(row["tier"], row["tier"])]
        if back is None:
            notes.append("this way only")
        elif back != row["bandwidth"]:
            notes.append(f"back {show(back, 'bandwidth')}")
        if row["cables"] > 1:
            notes.append(f"{row['cables']} cables")
        if row["degraded"]:
            notes.append("degraded")
        rate, late = show(row["bandwidth"], "bandwidth"), show(row["latency"], "time")
        line = f"  {ends[:24]:<24}{rate:>12}{row['links']:>10,}{late:>10}  {notes[0]}"
        if len(line) + len(", ".join(notes[1:])) + 2 <= WIDTH:
            lines.append(", ".join([line, *notes[1:]]))
        else:
            lines += [line, f"    {', '.join(notes[1:])}"]
    return "\n".join(lines)


def _facts(net: Mapping[str, Any]) -> str:
    lines = []
    if half := net["bisection"]:
        where = f"{'across' if len(half['across']) == 1 else 'of the'} {half['across']}"
        lines += _row("bisection", f"{show(half['rate'], 'bandwidth')} each way, halves {where}")
    if out := net["leaving"]:
        leaving = f"begins with groups of {out['from_chips']:,} chips"
        if out["slowdown_all_to_all"]:
            exchange, gather = out["slowdown_all_to_all"], out["slowdown_all_gather"]
            leaving += f"; from one domain to two an all-to-all becomes {_times(exchange)}"
            leaving += f", an all-gather {_times(gather)}"
        if out["slowdown_links"]:
            leaving += f"; a chip's own links: {_times(out['slowdown_links'])}"
        lines += _row("leaving a domain", leaving)
    adds = net["in_network_reduce"]
    if adds["switches"]:
        since = f", used from groups of {adds['from_chips']}" if adds["from_chips"] else ""
        many = f"{adds['switches']:,} switch{'es' if adds['switches'] != 1 else ''}"
        lines += _row("reduction", f"{many} can add what passes through{since}")
    return "\n".join(lines)


def _groups(net: Mapping[str, Any]) -> str:
    rows = net["groups"]
    boxes = net["leaving"] and any(row["box"] for row in rows)
    limit = ", at most what it reaches in a domain" if boxes else ""
    routing = "" if net["routing"] == "optimal" else ", on shortest paths"
    lines = [
        f"what a chip reaches in a group: a bound{limit}{routing}",
        f"{'chips':>8}{'domains':>9}{'all-to-all':>13}{'all-gather':>13}{'send':>12}{'latency':>11}",
    ]
    for row in rows:
        rates = [show(row[key], "bandwidth") for key in ("all_to_all", "all_gather", "send")]
        rates[1] += "+" if row["shared_evenly"] else ""
        box = "   " + "x".join(map(str, row["box"])) if row["box"] else ""
        lines.append(
            f"{row['chips']:>8,}{row['domains']:>9,}{rates[0]:>13}{rates[1]:>13}{rates[2]:>12}"
            f"{show(row['latency'], 'time'):>11}{box}"
        )
    if any(row["shared_evenly"] for row in rows):
        lines += wrap_text("  + links shared evenly; together the groups may gather faster")
    return "\n".join(lines)


def _binding(rows: Iterable[Mapping[str, Any]]) -> str:
    """Lines on the links that limit the rates of each group size, and the engine that says so."""
    lines = ["what binds, and what one percent more of it brings"]
    for row in rows:
        if not (cut := row["cut"]):
            continue
        full = [f"{_class(each)} {each['elasticity']:+.2f}%" for each in row["binding"][:4]]
        narrow = [f"{each['arcs']:,} x {_class(each)}" for each in cut["links"][:4]]
        chips = f"{cut['chips']:,} chip{'s' if cut['chips'] != 1 else ''}"
        lines += _row(f"groups of {row['chips']:,}", f"all-to-all: {', '.join(full)}")
        lines += _row("", f"all-gather: what enters {chips}, {' and '.join(narrow)}")
        if row["reduction"]:
            rate = show(row["reduction"]["all_reduce"], "bandwidth")
            lines += _row("", f"all-reduce: {rate} of bus bandwidth where the switches add")
        same = f", confirmed by {row['confirmed_by']}" if row["confirmed_by"] else ""
        lines += _row("", f"found by {row['engine']}{same}")
    return "\n".join(lines) if len(lines) > 1 else ""


def _times_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Table of collective times: expected value, range, and lower bound."""
    if not rows:
        return ""
    lines = [
        rows[0]["operation"],
        f"{'chips':>8}{'message':>10}{'expected':>12}{'range':>22}{'bound':>11}  algorithm",
    ]
    for row in rows:
        span = f"{show(row['low'], 'time')} to {show(row['high'], 'time')}"
        lines.append(
            f"{row['chips']:>8,}{show(row['bytes'], 'size'):>10}{show(row['seconds'], 'time'):>12}"
            f"{span:>22}{show(row['bound'], 'time'):>11}  {row['algorithm']}"
        )
    for reason in dict.fromkeys(row["reason"] for row in rows if row["reason"]):
        lines += wrap_text(f"  {reason}")
    return "\n".join(lines)


def _class(link: Mapping[str, Any]) -> str:
    return f"{' - '.join(link['ends'])} of {show(link['bandwidth'], 'bandwidth')}"


def _times(factor: float) -> str:
    if abs(factor - 1) < 0.005:
        return "no slower"
    return f"{factor:.3g} times slower" if factor >= 1 else f"{1 / factor:.3g} times faster"


def _row(label: str, text: str) -> list[str]:
    return wrap_text(text, f"{label:<{LABEL}}  ", " " * (LABEL + 2))
