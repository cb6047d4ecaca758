"""Values that nobody should give, and ways to put them into a document or a text."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    8,
    64,
    10**6,
    10**9,
    10**18,
    10**400,
    -(10**30),
    0.0,
    -0.0,
    1e-300,
    5e-324,
    1e300,
    1.7e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    0.1,
    0.5,
    0.999999,
    1.5,
    "",
    " ",
    "0",
    "-1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e400 s",
    "0 s",
    "1 ms",
    "-3 ms",
    "nan s",
    "inf s",
    "1e-320 s",
    "50 GB",
    "1 TB/s",
    "$1/h",
    "$0/h",
    "$1e400/h",
    "3.50",
    "$3.50",
    "8 chips",
    "fp8",
    "int4",
    "nvfp4",
    "bf16",
    "auto",
    "any",
    "none",
    "null",
    "bound",
    "calibrated",
    "lecture",
    "decode",
    "prefill",
    "disaggregated",
    "energy",
    "llama-3.1-8b",
    "hgx-h100",
    "hgx-h200",
    "mixtral-8x7b",
    "tpu-v6e",
    "gb200-nvl72",
    "1e12 tokens",
    "5 requests/s",
    "100%",
    "0%",
    "-5 %",
    "1/0",
    "1..2",
    "a" * 300,
    "\u0000",
    "\ud800",
    "\u202e\u200b",
    "$x_{$",
    "../../etc/passwd",
    "/dev/zero",
    "~",
    "*a",
    "&a",
    "!!python/x",
    "{",
    "[",
    "日本語",
    [],
    {},
    [[]],
    [1, 2],
    [0],
    [-1],
    ["hgx-h100", "hgx-h200"],
    {"like": "hgx-h100"},
    {"mean": 100, "cv": 1},
    {"mean": 1e9, "cv": 1e9},
    {"p50": 1, "p99": 1e18},
    {"from": 1, "to": 4},
    {"from": 4, "to": 1},
    {"quantiles": {"p50": 100, "p90": 50}},
    {"x": {"x": {"x": {}}}},
)
NUMBER = re.compile(r"[0-9]+(?:[.][0-9]+)?")
MILD = (0.1, 0.3, 0.5, 0.9, 0.999, 1.001, 1.5, 2, 3, 4, 8, 10, 30)
VAST = (0, -1, 1e-3, 1e3, 1e-9, 1e9, 1e-30, 1e30)
LETTERS = "0123456789abmnx:{}[]-.,_ \n\t#&*!|>'\"%$eE+~\\/\x00é日"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below a value."""
    rows = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, below in rows:
        yield (*path, key)
        yield from places(below, (*path, key))


def nudged(rng: random.Random, value: Any) -> Any:
    """A sound value made somewhat, or vastly, larger or smaller; in a text, its first number."""
    if isinstance(value, str) and (number := NUMBER.search(value)):
        changed = nudged(rng, float(number[0]))
        return f"{value[: number.start()]}{changed:.6g}{value[number.end() :]}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return rng.choice(HOSTILE)
    factor = rng.choice(MILD if rng.random() < 0.7 else VAST)
    try:
        return type(value)(value * factor)
    except (OverflowError, ValueError):
        return value


def spoilt(rng: random.Random, document: Any, keys: tuple[str, ...], most: int = 3) -> Any:
    """A copy in which a few values are gone, replaced, nudged, exchanged, added or renamed."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, most))):
        every = list(places(document))
        if not every:
            return document
        *above, last = rng.choice(every)
        holder = document
        for part in above:
            holder = holder[part]
        what = rng.choice(("drop", "replace", "add", "rename", "swap", *("nudge",) * 5))
        if what == "drop":
            del holder[last]
        elif what == "replace":
            holder[last] = copy.deepcopy(rng.choice(HOSTILE))
        elif what == "nudge":
            holder[last] = nudged(rng, holder[last])
        elif what == "swap":
            *other, end = rng.choice(every)
            source = document
            for part in other:
                source = source[part]
            holder[last] = copy.deepcopy(source[end])
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(rng.choice((holder[last], *HOSTILE))))
        elif what == "rename":
            holder[str(last)[: rng.randint(0, 9)] + rng.choice(LETTERS)] = holder.pop(last)
        else:
            holder[rng.choice(keys)] = copy.deepcopy(rng.choice(HOSTILE))
    return document


def garbled(rng: random.Random, text: str, most: int = 4) -> str:
    """A text with letters put in, taken out, repeated or cut off."""
    for _ in range(rng.choice((1, 1, 1, 2, most))):
        at, length = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 1, 2, 5, 40))
        new = "".join(rng.choice(LETTERS) for _ in range(rng.choice((0, 1, 1, 2, 4))))
        if rng.random() < 0.1:
            new = text[at : at + 200] * rng.choice((2, 20))
        text = text[:at] + new + text[at + length :]
    return text


def written(document: Any) -> str:
    """A document as YAML that any JSON is, where numbers that are none have names of their own."""
    text = json.dumps(document, ensure_ascii=False)
    for word, name in (("-Infinity", "-.inf"), ("Infinity", ".inf"), ("NaN", ".nan")):
        text = text.replace(f": {word}", f": {name}").replace(f"[{word}", f"[{name}")
    return text
