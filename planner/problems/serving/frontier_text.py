"""The frontier of price against speed as a person reads it: rows, a table, its two ends in words.

Layouts are letters in the table and are spelled out below it, so that a row fits a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.problems.serving.head import question
from planner.problems.serving.point import layout_text
from planner.problems.serving.presentation import shortfall
from planner.problems.serving.task.plan_limits import LIMITS
from planner.protocol.page import table_page
from planner.protocol.plan import extrapolation_text
from planner.protocol.section import sections_text, table
from planner.text.quantities import show
from planner.text.wording import (
    duration,
    joined_ends,
    label_row,
    three_digits,
    three_figures,
    wrap_text,
    wrapped,
)

if TYPE_CHECKING:
    from planner.problems.serving.deployment.frontier import ServingFrontier

LABEL = 10  # columns of a row label before its text
AIM = "least cost at every speed"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PLAN_NUMBERS = (
    "tokens_per_s_per_user", "usd_per_mtok", "usd_per_hour", "tokens_per_s_per_chip", "tpot",
    "ttft", "batch", "chips", "mode",
)  # fmt: skip


def frontier_rows(answer: ServingFrontier) -> list[dict[str, Any]]:
    """The points as plain dicts: speed, price, batch, times [s], layout in words, mode marked."""
    # Labels of each marked point; several modes may mark a single point.
    marked: dict[int, list[str]] = {}
    places = [(tier.name, tier.place) for tier in answer.tiers or () if tier.place is not None]
    for name, place in (*answer.marks.items(), *places):
        marked.setdefault(place, []).append(name)
    return [
        {
            "mark": ", ".join(marked[place]) if place in marked else None,
            **{name: getattr(point.plan, name) for name in PLAN_NUMBERS},
            "layout": layout_text(point.plan),
            "bound_usd_per_mtok": point.bound.usd_per_mtok,
            "bound_tpot": point.bound.tpot,
        }
        for place, point in enumerate(answer.points)
    ]


def frontier_text(answer: ServingFrontier) -> str:
    """The frontier on a terminal, as wide as it is."""
    sentence = "\n".join(wrap_text(question(answer.scenario, AIM)))
    if not answer.points:
        return f"{sentence}\n\n{shortfall(answer)}"
    rows = frontier_rows(answer)
    modes = {point["layout"]: point["mode"] for point in rows}
    chips = {point["layout"]: point["chips"] for point in rows}
    lines, letters = ["layouts"], _letters(rows)
    for layout, letter in letters.items():
        words = layout if modes[layout] == "disaggregated" else f"{modes[layout]} {layout}"
        words += f", {chips[layout]} chips" if len({*chips.values()}) > 1 else ""
        lines.append(label_row(f"  {letter}", words, 5))
    # The points that are marked, the ends, and the first of each layout; `--json` has all.
    whole = _columns(rows, letters)
    shown = {0, len(rows) - 1, *(place for place, x in enumerate(rows) if x["mark"])}
    shown |= {[x["layout"] for x in rows].index(layout) for layout in letters}
    printed = {head: [cells[i] for i in sorted(shown)] for head, cells in whole.items() if cells}
    left = f"\n({len(rows) - len(shown)} more between them: --json)" * (len(shown) < len(rows))
    points = sections_text([table(printed)]) + left
    notes = [part(answer) for part in (_modes, _tiers, _ends, _grounds)]
    return "\n\n".join(filter(None, [sentence, points, *map("\n".join, [lines, *notes])]))


def frontier_page(answer: ServingFrontier) -> str:
    """The frontier as the fragment of HTML that a notebook shows."""
    title = question(answer.scenario, AIM)
    if not answer.points:
        return table_page(title, {}, [shortfall(answer)])
    rows = frontier_rows(answer)
    columns = _columns(rows, {each["layout"]: f"{each['mode']} {each['layout']}" for each in rows})
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    lines = [line for part in (_modes, _tiers, _ends, _grounds) for line in part(answer)]
    return table_page(title, shown, [" ".join(line.split()) for line in lines], words="layout")


def _columns(rows: Sequence[Mapping[str, Any]], layouts: Mapping[str, str]) -> dict[str, list[str]]:
    """The points as words by the heads of a table, each layout as it is called."""
    bills = [f"{x['usd_per_hour']:,.2f}" for x in rows]
    return {
        "": [x["mark"] or "" for x in rows],
        "tok/s per user": [three_figures(x["tokens_per_s_per_user"] or 0.0) for x in rows],
        "$/Mtok": [three_digits(x["usd_per_mtok"]) for x in rows],
        "$/hour": bills if len({*bills}) > 1 else [],
        "TPOT": [duration(x["tpot"]) if x["tpot"] is not None else "" for x in rows],
        "users": [f"{x['batch']:,}" for x in rows],
        "TTFT": [duration(x["ttft"]) if x["ttft"] is not None else "" for x in rows],
        "layout": [layouts[x["layout"]] for x in rows],
    }


def _letters(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = dict.fromkeys(row["layout"] for row in rows)
    twice = [a + b for a in ("", *LETTERS) for b in LETTERS]
    return dict(zip(names, twice, strict=False))


def _modes(answer: ServingFrontier) -> list[str]:
    """A sentence on the price of twice the speed of the cheapest plan."""
    rows = frontier_rows(answer)
    speed, price = rows[-1]["tokens_per_s_per_user"] or 0.0, rows[-1]["usd_per_mtok"]
    faster = [x for x in rows if (x["tokens_per_s_per_user"] or 0.0) >= 2 * speed]
    if len(rows) == 1:
        return wrap_text("one plan is the fastest and the cheapest")
    if not faster:
        return wrap_text(f"No plan is twice as fast as the cheapest ({three_figures(speed)} tok/s)")
    twice, pace = faster[-1], three_figures(faster[-1]["tokens_per_s_per_user"] or 0.0)
    dear = three_digits(twice["usd_per_mtok"] / price)
    return wrap_text(f"Twice the speed of the cheapest ({pace} tok/s) costs {dear}× as much: "
                     f"${three_digits(twice['usd_per_mtok'])}/Mtok")  # fmt: skip


def _tiers(answer: ServingFrontier) -> list[str]:
    """Each listed tier: its price and speed over normal, ours, and the layout that it needs."""
    lines = ["listed tiers, as multiples of normal"] if answer.tiers else []
    for tier in answer.tiers or ():
        at = "" if tier.speed is None else f" at {tier.speed:.3g}x the speed"
        ours = "" if tier.our_price is None or tier.our_speed is None else (
            f"ours {tier.our_price:.3g}x at {tier.our_speed:.3g}x; "
        )  # fmt: skip
        text = f"{tier.name}: {tier.price:.3g}x the price{at}; {ours}{tier.verdict}"
        lines.append("\n".join(wrapped(text)))
    return lines


def _ends(answer: ServingFrontier) -> list[str]:
    if answer.ends is None:
        return []
    fastest, cheapest = answer.ends.fastest, answer.ends.cheapest
    batch, rows = fastest.batch_per_replica, frontier_rows(answer)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in fastest.shares.items()
                       if share >= 0.005)  # fmt: skip
    users = f"{batch:,} user{'s' if batch > 1 else ''} a replica"
    why = " and ".join(
        LIMITS[name].holds_back if name in LIMITS else f"the {name} is given"
        for name in cheapest.binds
    )
    ends = [three_figures(rows[place]["tokens_per_s_per_user"] or 0.0) for place in (0, -1)]
    why = why or "larger batches are slower and no cheaper"
    return [
        *wrap_text(f"Faster than {ends[0]} tok/s: nothing; with {users} a step of "
                   f"{duration(fastest.step)} is {shares}"),
        *wrap_text(f"Slower than {ends[1]} tok/s: {why}"),
    ]  # fmt: skip


def _grounds(answer: ServingFrontier) -> list[str]:
    points, ground = answer.points, answer.provenance
    band = points[answer.marks["normal"]].band
    lines = []
    if band and band.usd_per_mtok:
        ends = joined_ends(*(f"${three_digits(end)}/Mtok" for end in band.usd_per_mtok))
        outside = points[answer.marks["normal"]].outside
        rests = extrapolation_text(outside) or f"within measurements; {band.coverage:.0%} of runs"
        at = three_figures(points[answer.marks["normal"]].plan.tokens_per_s_per_user or 0.0)
        lines.append(label_row("How sure", f"at {at} tok/s {ends}: {rests}", LABEL))
    mine = answer.current
    if mine and mine.tpot:
        lines.append(label_row("Yours", f"{three_figures(1 / mine.tpot)} tok/s per user at "
                     f"${mine.usd_per_mtok:.3g}/Mtok, batch {mine.batch}, "
                     f"{layout_text(mine)}", LABEL))  # fmt: skip
    lines.append(label_row("Sources", f"assumptions {ground.assumptions}, estimate "
                 f"{ground.estimate}, token-planner {ground.version}; {_prices(answer)}",
                 LABEL))  # fmt: skip
    return lines


def _prices(answer: ServingFrontier) -> str:
    hourly = {
        f"{plan.chip or 'chip'} {show(plan.usd_per_hour / plan.chips, 'money')}/hour"
        for plan in (point.plan for point in answer.points)
    }
    return ", ".join(sorted(hourly))
