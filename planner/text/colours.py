"""The colours of every picture and page: one token for each part, in light and in dark.

Parts are told apart by readers who see red and green alike: in CIELAB the least distance between
two of them is 14 or more, seen normally or with any of the three kinds of colour blindness (Okabe
and Ito, 2008, moved apart in both modes). Order and names of parts never change.
"""

from collections.abc import Mapping
from types import MappingProxyType

LIGHT_MODE, DARK = 0, 1
# Colour of each token in light and in dark mode.
PART_COLOURS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "weights": ("#0072b2", "#3b9fdc"),
    "kv": ("#e69f00", "#f0b429"),
    "compute": ("#009e73", "#2fc396"),
    "collectives": ("#d37fb0", "#e58cc0"),
    "overhead": ("#5f6770", "#6b737d"),
    "prefill": ("#56b4e9", "#8fd0f5"),
})  # fmt: skip
BROKEN_COLOUR = ("#c2410c", "#ff9466")  # a broken promise; never alone, always with words or a dash
SURFACE: Mapping[str, tuple[str, str]] = MappingProxyType({
    "paper": ("#fcfcfa", "#0f1317"),
    "panel": ("#f1f1ec", "#1b2026"),
    "ink": ("#14171a", "#eceae4"),
    "quiet": ("#5b6470", "#a3abb5"),
    "rule": ("#d9dad6", "#333a42"),
    "link": ("#005f96", "#7cc0ee"),
})  # fmt: skip
# Of letters on a part: white where that reads better than the ink of light paper.
WHITE, BLACK = "#ffffff", "#0f1317"
EXTRAS = ("weights", "kv", "compute", "collectives", "prefill", "overhead")  # for parts of no name


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, between 0 and 1 (WCAG 2.2)."""
    channels = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, paper: str) -> float:
    """Contrast ratio of two colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(colour), luminance(paper)))
    return (high + 0.05) / (low + 0.05)


def text_colour(colour: str) -> str:
    """Black or white, whichever reads better on a colour."""
    return max((WHITE, BLACK), key=lambda ink: contrast(ink, colour))


def tokens(mode: int) -> dict[str, str]:
    """Every token with its colour in light (0) or dark (1), letters on parts among them."""
    parts = {name: pair[mode] for name, pair in PART_COLOURS.items()}
    return {
        **parts,
        **{f"on-{name}": text_colour(colour) for name, colour in parts.items()},
        "broken": BROKEN_COLOUR[mode],
        **{name: pair[mode] for name, pair in SURFACE.items()},
    }
