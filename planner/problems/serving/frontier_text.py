"""The frontier of price against speed as a person reads it: rows, a table, its two ends in words.

Layouts are letters in the table and are spelled out below it, so that a row fits a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

from planner.problems.serving.presentation import question, shortfall
from planner.text.quantities import show
from planner.text.wording import WIDTH, duration, figure, laid_out

NARROW = 40
AIM = "least cost at every speed"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# What holds the cheapest plan back from a larger batch, by the name of the promise.
HELD = {
    "memory": "memory is full",
    "ttft": "the promise on TTFT is used up",
    "ttft_p95": "the promise on the TTFT of 95 % is used up",
    "ttft_p99": "the promise on the TTFT of 99 % is used up",
    "tpot": "the promise on TPOT is used up; --set promises.tpot=null shows what lies beyond",
    "e2e": "the promise on the whole request is used up",
    "prefill keeps up": "prompts take all the time that decoding leaves",
    "prefill queue is stable": "the pool that reads prompts is busy all the time",
    "batch": "the batch is given",
    "demand": "the load is given",
}


def rows_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The points as plain dicts: speed, price, batch, times [s], layout in words, mode marked."""
    marked = _marked(document)
    return [
        {
            "mark": marked.get(place),
            "tokens_per_s_per_user": plan["tokens_per_s_per_user"],
            "usd_per_mtok": plan["usd_per_mtok"],
            "tokens_per_s_per_chip": plan["tokens_per_s_per_chip"],
            "tpot": plan["tpot"],
            "ttft": plan["ttft"],
            "batch": plan["batch"],
            "chips": plan["chips"],
            "mode": plan["mode"],
            "layout": laid_out(plan),
            "bound_usd_per_mtok": point["bound"]["usd_per_mtok"],
            "bound_tpot": point["bound"]["tpot"],
        }
        for place, point in enumerate(document["points"])
        for plan in (point["plan"],)
    ]


def frontier_text(document: Mapping[str, Any]) -> str:
    """The frontier on a terminal: at most 80 columns, less where the terminal has less."""
    width = max(NARROW, min(WIDTH, get_terminal_size((80, 24)).columns - 2))
    sentence = textwrap.fill(question(document, AIM).replace("\n", " "), width)
    if not document["points"]:
        return f"{sentence}\n\n{shortfall(document)}"
    rows = rows_of(document)
    blocks = [
        sentence,
        _table(document, rows),
        _layouts(rows, width),
        "\n".join(_modes(document, width)),
        "\n".join(_ends(document, width)),
        "\n".join(_grounds(document, width)),
    ]
    return "\n\n".join(block for block in blocks if block)


def _marked(document: Mapping[str, Any]) -> dict[int, str]:
    """What is written beside each marked point; modes may share one."""
    marked: dict[int, list[str]] = {}
    for name, place in document["marks"].items():
        marked.setdefault(place, []).append(name)
    return {place: ", ".join(names) for place, names in marked.items()}


def _letters(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = dict.fromkeys(row["layout"] for row in rows)
    twice = [a + b for a in ("", *LETTERS) for b in LETTERS]
    return dict(zip(names, twice, strict=False))


def _table(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    letters, first = _letters(rows), any(row["ttft"] is not None for row in rows)
    marks = max((len(row["mark"] or "") for row in rows), default=0)
    late = f"{'TTFT':>9}" if first else ""
    lines = [
        f"{'':<{marks}}{'tokens/s':>9}{'price':>9}{'tokens/s':>10}",
        f"{'':<{marks}}{'per user':>9}{'$/Mtok':>9}{'per chip':>10}{'batch':>8}{late}  layout",
    ]
    for row in rows:
        late = f"{duration(row['ttft']):>9}" if first else ""
        lines.append(
            f"{row['mark'] or '':<{marks}}{figure(row['tokens_per_s_per_user']):>9}"
            f"{row['usd_per_mtok']:>9.3g}{figure(row['tokens_per_s_per_chip']):>10}"
            f"{row['batch']:>8,}{late}  {letters[row['layout']]}"
        )
    return "\n".join(line.rstrip() for line in lines)


def _layouts(rows: Sequence[Mapping[str, Any]], width: int) -> str:
    modes = {row["layout"]: row["mode"] for row in rows}
    lines = ["layouts"]
    for layout, letter in _letters(rows).items():
        words = layout if modes[layout] == "disaggregated" else f"{modes[layout]} {layout}"
        start = f"  {letter:<3}"
        lines.append(textwrap.fill(words, width, initial_indent=start, subsequent_indent="     "))
    return "\n".join(lines)


def _modes(document: Mapping[str, Any], width: int) -> list[str]:
    """How much faster and dearer fast is than normal, and slow."""
    sentences = []
    fast, slow = (document["compared"][name] for name in ("fast", "slow"))
    if fast["speed"] > 1:
        sentences.append(f"fast is {fast['speed']:.2g}x as fast as normal at {fast['price']:.2g}x "
                     "its price")  # fmt: skip
    if slow["speed"] < 1:
        sentences.append(f"slow has {slow['speed']:.0%} of its speed at {slow['price']:.0%} of its "
                     "price")  # fmt: skip
    text = "; ".join(sentences) or "one plan is the fastest and the cheapest"
    return [textwrap.fill(text, width)]


def _ends(document: Mapping[str, Any], width: int) -> list[str]:
    fastest, cheapest = document["ends"]["fastest"], document["ends"]["cheapest"]
    batch = fastest["batch_per_replica"]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in fastest["shares"].items()
                       if share >= 0.005)  # fmt: skip
    sequences = f"{batch:,} sequence{'s' if batch > 1 else ''} per replica"
    why = " and ".join(HELD.get(name, name) for name in cheapest["binds"])
    return [
        _entry("fastest", f"{sequences}; a step of {duration(fastest['step'])} is {shares}", width),
        _entry("cheapest", why or "past the critical batch: a larger one is slower, no cheaper",
               width),
    ]  # fmt: skip


def _grounds(document: Mapping[str, Any], width: int) -> list[str]:
    points, ground = document["points"], document["provenance"]
    band = points[document["marks"]["normal"]]["band"]
    lines = []
    if band:
        low, high = band["usd_per_mtok"]
        span = f"${low:.3g} to ${high:.3g}/Mtok, {band['coverage']:.0%} of measured runs"
        text = f"the normal mode costs {span} (profile {band['from']})"
        lines.append(_entry("band", text, width))
    mine = document["current"]
    if mine and mine["tpot"]:
        lines.append(_entry("yours", f"{figure(1 / mine['tpot'])} tokens/s per user at "
                     f"${mine['usd_per_mtok']:.3g}/Mtok, batch {mine['batch']}, "
                     f"{laid_out(mine)}", width))  # fmt: skip
    lines.append(_entry("grounds", f"assumptions {ground['assumptions']}, estimate "
                 f"{ground['estimate']}, token-planner {ground['version']}; {_prices(document)}",
                 width))  # fmt: skip
    return lines


def _prices(document: Mapping[str, Any]) -> str:
    hourly = {
        f"{plan['chip'] or 'chip'} {show(plan['usd_per_hour'] / plan['chips'], 'money')}/hour"
        for plan in (point["plan"] for point in document["points"])
    }
    return ", ".join(sorted(hourly))


def _entry(label: str, text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
