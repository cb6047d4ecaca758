"""Legend of a picture: classes of links at the left, everything else below."""

from collections import defaultdict
from typing import Any

from topologies.fabric.fabric import ACCELERATOR
from topologies.picture.amounts import counted_text, rate_text, time_text
from topologies.picture.canvas import FAULT, INK, QUIET, TIER_COLOURS, fitted
from topologies.picture.canvas_state import (
    CHIP_FILL,
    GUTTER,
    MARGIN,
    SWITCH_FILL,
    WIDTH,
    PictureSheet,
)
from topologies.picture.scene import LinkClass, side_name

TIERS = {"scale_up": "scale-up", "scale_out": "scale-out", "host": "host"}
TALL, MOST_FAULTS, MOST_CLASSES = 60.0, 6, 12


def classes(sheet: PictureSheet, top: float, bottom: float) -> float:
    """Label each class of link once, beside where it is drawn; where the labels end."""
    groups: dict[tuple[Any, ...], list[LinkClass]] = defaultdict(list)
    for link in sheet.scene.classes:
        if not link.faulty:
            groups[(*link.kind[:3], link.figures)].append(link)
    wanted = sorted(groups, key=lambda key: sheet.heights.get(key, bottom))
    keys, left_out = wanted[:MOST_CLASSES], wanted[MOST_CLASSES:]
    y = top
    places = []
    for key in keys:
        y = max(y, min(sheet.heights.get(key, bottom) - TALL / 2, bottom - TALL))
        places.append(y)
        y += TALL
    over = y - max(bottom, top)
    for i in range(len(places) - 1, -1, -1):  # what was pushed below the drawing moves up
        room = places[i - 1] + TALL if i else top
        shift = max(0.0, min(over, places[i] - room))
        places[i] -= shift if over > 0 else 0.0
    for key, at in zip(keys, places, strict=True):
        _class(sheet, groups[key], at)
    if left_out:
        words = f"and {counted_text(len(left_out), 'other class')} of links"
        sheet.marks.text(MARGIN, y + 14, words, size=11, colour=QUIET)
        y += 24
    return max(y, bottom)


def _class(sheet: PictureSheet, alike: list[LinkClass], y: float) -> None:
    first = alike[0]
    colour = TIER_COLOURS.get(first.tier, QUIET)
    there, back, latency, count = first.figures
    number = sum(each.number for each in alike)
    sheet.marks.line([(MARGIN, y + 8), (MARGIN + 22, y + 8)], colour, sheet.stroke(there))
    if back is None:
        rate = f"{rate_text(there)}, this way only"
    elif back != there:
        rate = f"{rate_text(there)}, back {rate_text(back)}"
    else:
        rate = f"{rate_text(there)} each way"
    room = GUTTER - MARGIN - 40
    sheet.marks.text(MARGIN + 30, y + 12, fitted(rate, room, 13), size=13, colour=colour, bold=True)
    axes = sorted({axis for each in alike for axis in each.axis})
    along = f" along {', '.join(side_name(d) for d in axes)}" if axes else ""
    cables = f" of {count} cables" if count > 1 else ""
    lines = (
        f"{counted_text(number, 'link')}{cables}, {time_text(latency)}",
        f"{' – '.join(first.roles)}{along}",
    )
    for i, words in enumerate(lines):
        sheet.marks.text(
            MARGIN + 30, y + 27 + 14 * i, fitted(words, room, 10.5), size=10.5, colour=QUIET
        )


def legend(sheet: PictureSheet, top: float) -> float:
    """Marks, thickness and faults below the drawing; where they end."""
    sheet.marks.line([(MARGIN, top), (WIDTH - MARGIN, top)], "#cbd5e1", 1)
    y = top + 26
    x = _symbols(sheet, MARGIN, y)
    y = _scale(sheet, x, y)
    return _faults(sheet, y + 14)


def _symbols(sheet: PictureSheet, x: float, y: float) -> float:
    G = sheet.scene.G
    chips = [d for _, d in G.nodes(data=True) if d.get("kind") == ACCELERATOR]
    others = [d for _, d in G.nodes(data=True) if d.get("kind") != ACCELERATOR]
    marks = sheet.marks
    if any(not d.get("forward") for d in chips):
        marks.box(x, y - 10, 13, 13, fill=CHIP_FILL, round_=2)
        x = _sentence(sheet, x + 19, y, "chip")
    if any(d.get("forward") for d in chips):
        marks.disc(x + 7, y - 4, 7, fill=CHIP_FILL)
        x = _sentence(sheet, x + 20, y, "chip that relays for others")
    if any(d.get("kind") == "switch" for d in others):
        marks.box(x, y - 10, 24, 13, fill=SWITCH_FILL, round_=6.5)
        x = _sentence(sheet, x + 30, y, "switch")
    if any(d.get("in_network_reduce") for d in others):
        x = _sentence(sheet, x, y, "Σ adds what passes through")
    for tier in dict.fromkeys(each.tier for each in sheet.scene.links):
        marks.line([(x, y - 4), (x + 22, y - 4)], TIER_COLOURS.get(tier, QUIET), 3)
        x = _sentence(sheet, x + 28, y, TIERS.get(tier, tier))
    if sheet.rings:
        marks.line([(x, y), (x + 11, y - 14), (x + 22, y)], TIER_COLOURS["scale_up"], 2, faint=True)
        x = _sentence(sheet, x + 28, y, "link that closes a ring")
    if sheet.faults:
        marks.line([(x, y - 4), (x + 22, y - 4)], FAULT, 3, dash="6 4")
        x = _sentence(sheet, x + 28, y, "degraded or missing")
    return x


def _sentence(sheet: PictureSheet, x: float, y: float, words: str) -> float:
    sheet.marks.text(x, y, words, size=12, colour=INK)
    return x + 7 * len(words) + 22


def _scale(sheet: PictureSheet, x: float, y: float) -> float:
    """Three thicknesses and what they carry; the line that they stand on."""
    rates = sorted({max(c.rate, 1.0) for c in sheet.scene.classes})
    picked = list(dict.fromkeys((rates[0], rates[len(rates) // 2], rates[-1]))) if rates else []
    if len(picked) < 2:
        return y
    if x + 130 + 118 * len(picked) > WIDTH - MARGIN:
        x, y = MARGIN, y + 24
    x = _sentence(sheet, x, y, "thickness:")
    for rate in picked:
        sheet.marks.line([(x, y - 4), (x + 22, y - 4)], INK, sheet.stroke(rate))
        x = _sentence(sheet, x + 28, y, rate_text(rate))
    return y


def _faults(sheet: PictureSheet, y: float) -> float:
    shown = sheet.faults[:MOST_FAULTS]
    for fault in shown:
        y += 18
        words = fitted(fault.text, WIDTH - 2 * MARGIN - 30, 12)
        sheet.marks.text(MARGIN + 14, y, words, size=12, colour=FAULT)
        sheet.marks.text(MARGIN, y, "✕", size=12, colour=FAULT, bold=True)
    if len(sheet.faults) > len(shown):
        y += 18
        words = f"and {len(sheet.faults) - len(shown):,} more"
        sheet.marks.text(MARGIN + 14, y, words, size=12, colour=FAULT)
    return y + 10
