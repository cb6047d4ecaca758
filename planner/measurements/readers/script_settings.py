"""Settings of the scripts of published runs, for values that a table does not state.

They are rows of `published_scripts.toml`, by the runs that a script made: no run has a name here.
Of two pools, `published_pools.csv` holds how many workers a script starts, and of which ways:
InferenceX, .github/configs/nvidia-master.yaml of 2025-12-05 to 2026-04-14 and the recipes of
github.com/NVIDIA/srt-slurm that it names, as they were at its days.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from planner.text.tables import table

Facts = Mapping[str, str | float]
Condition = str | float | Sequence[str] | Mapping[str, str | float]


@dataclass(frozen=True)
class ScriptSettings:
    """Settings of one run.

    Attributes:
        length: mean of the lengths that were drawn, of the nominal ones. [1]
        even: all requests have the same lengths.
        mixed: prompts share the steps that decode, whatever the engine does by itself.
        cache: number format of the cache, empty where the engine's own is kept.
        poll, hold: decode steps between two looks for new requests, and for which these are held
            back.
        most: requests that run at once, 0 where memory alone limits them.
        reserved: of as many slots as requests are sent, those that no request gets.
        chunk: prompt tokens that a pass reads, 0 where the engine's own number is kept. [token]
        beyond: prompt tokens that a pass reads beyond one whole prompt, 0 where `chunk` holds.
            [token]
        drafts, drafting: tokens drafted per step of a run with drafts, and whether this one has
            them.
    """

    length: float = 1.0
    even: bool = True
    mixed: bool = False
    cache: str = ""
    poll: float = 0.0
    hold: float = 0.0
    most: float = 0.0
    reserved: float = 0.0
    chunk: float = 0.0
    beyond: float = 0.0
    drafts: int = 0
    drafting: bool = False


@cache
def _scripts() -> Mapping[str, object]:
    return table("planner.measurements", "published_scripts.toml")


def script_settings(facts: Facts) -> ScriptSettings:
    """Settings of a run with these facts; a setting that no script makes has its usual value.

    Args:
        facts: by the names that the conditions of the table use; one that is missing meets none.
    """
    changes: dict[str, object] = {}
    for row in _scripts()["settings"]:  # type: ignore[attr-defined]
        entry = dict(row)
        when, unless = entry.pop("when", {}), entry.pop("unless", {})
        if conditions_met(facts, when) and not (unless and conditions_met(facts, unless)):
            changes |= entry
    return ScriptSettings(**changes)  # type: ignore[arg-type]


def plain_export() -> str:
    """Model id of a table's second export, which holds runs without drafts."""
    return str(_scripts()["plain"])


def conditions_met(facts: Facts, conditions: Mapping[str, Condition]) -> bool:
    """True if the facts meet every condition; a missing fact meets none."""
    return all(name in facts and _holds(facts[name], wanted) for name, wanted in conditions.items())


def _holds(value: str | float, wanted: Condition) -> bool:
    """True if a fact meets a condition: a number, a pattern out of several, or a range."""
    if isinstance(wanted, Mapping):
        least, below = wanted.get("from"), wanted.get("below")
        return (least is None or value >= least) and (below is None or value < below)  # type: ignore[operator]
    if isinstance(wanted, str | float | int):
        wanted = [wanted]  # type: ignore[list-item]
    return any(
        fnmatchcase(value, each) if isinstance(value, str) else value == each for each in wanted
    )


# Maximum time between a run and its script's dates; a sweep is merged some days after its runs.
DATE_WINDOW = timedelta(days=14)
GROUP_KEYS = ("engine", "chip", "weights", "lengths")


@dataclass(frozen=True)
class ScriptPool:
    """Pool of a disaggregated run as a script starts it: workers, and parallel sizes of each.

    `places` are the requests that a worker runs at once, 0 where memory alone limits them.
    """

    workers: int
    chips: int
    copies: int
    experts: int
    places: int = 0


@dataclass(frozen=True)
class ScriptPools:
    """Two pools of a script, that prefills and that decodes, and the tokens drafted per step.

    A pass of a copy that prefills reads `chunk` tokens, 0 where the script does not say.
    """

    drafts: int
    chunk: int
    pools: tuple[ScriptPool, ScriptPool]


@cache
def _deployed() -> Mapping[tuple[str, ...], list[dict[str, str]]]:
    text = files("planner.measurements").joinpath("published_pools.csv").read_text("utf-8")
    by: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for row in csv.DictReader(text.splitlines()):
        for requests in row["requests"].split():
            by[(*(row[name] for name in GROUP_KEYS), requests)].append(row)
    return by


def script_pools(facts: Facts) -> list[ScriptPools]:
    """The pools that scripts of these facts start, of the days nearest to that of the run."""
    if facts["source"] or facts["pooled"] == "no":
        return []
    key = (*(str(facts[name]) for name in GROUP_KEYS), f"{facts['requests']:g}")
    rows = [r for r in _deployed().get(key, ()) if fnmatchcase(str(facts["model"]), r["model"])]
    if not facts["day"] or not rows:
        return []
    day = date.fromisoformat(str(facts["day"])[:10])
    apart = [
        max(date.fromisoformat(r["first"]) - day, day - date.fromisoformat(r["last"]), timedelta())
        for r in rows
    ]
    nearest = min(apart)
    if nearest > DATE_WINDOW:
        return []
    return [_pools(r) for r, away in zip(rows, apart, strict=True) if away == nearest]


def _pools(row: Mapping[str, str]) -> ScriptPools:
    ways = ("workers", "chips", "copies", "experts")
    prefill, decode = (
        ScriptPool(*(int(row[f"{side}_{name}"]) for name in ways)) for side in ("prefill", "decode")
    )
    decode = replace(decode, places=int(row["places"]))
    return ScriptPools(int(row["drafts"]), int(row["prefill_chunk"]), (prefill, decode))
