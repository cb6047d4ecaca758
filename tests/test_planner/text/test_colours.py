"""The six parts are told apart in light and dark, by readers who see colours differently too."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from planner.text.colours import PART_COLOURS
from tests.loops import for_all

# Linear RGB as seen with one kind of cone missing (Machado, Oliveira and Fernandes, 2009).
SEEN = {
    "normal": np.eye(3),
    "deutan": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                        [-0.011820, 0.042940, 0.968881]]),
    "protan": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                        [-0.003882, -0.048116, 1.051998]]),
    "tritan": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                        [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
WHITE_POINT = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    """CIELAB of `#rrggbb` as it is seen (CIE 15:2004)."""
    channels = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    share = XYZ @ np.clip(seen @ linear, 0, 1) / WHITE_POINT
    f = np.where(share > (6 / 29) ** 3, np.cbrt(share), share / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@for_all("mode", [0, 1], ids=["light", "dark"])
@for_all("kind", list(SEEN))
def test_parts_are_told_apart(mode: int, kind: str) -> None:
    """The least CIELAB distance between two of the six is 14 or more."""
    points = [lab(pair[mode], SEEN[kind]) for pair in PART_COLOURS.values()]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(points, 2)) >= 14
