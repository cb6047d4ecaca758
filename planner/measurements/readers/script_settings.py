"""What the scripts of published runs set, where a table does not say it.

They are rows of `published_scripts.toml`, by the runs that a script made: no run has a name here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from planner.text.tables import table

Facts = Mapping[str, str | float]
Condition = str | float | Sequence[str] | Mapping[str, str | float]


@dataclass(frozen=True)
class ScriptSettings:
    """Settings of one run.

    Attributes
    ----------
    length : mean of the lengths that were drawn, of the nominal ones. [1]
    even : all requests have the same lengths.
    mixed : prompts share the steps that decode, whatever the engine does by itself.
    cache : number format of the cache, empty where the engine's own is kept.
    poll, hold : decode steps between two looks for new requests, and for which these are held back.
    most : requests that run at once, 0 where memory alone limits them.
    reserved : of as many slots as requests are sent, those that no request gets.
    chunk : prompt tokens that a pass reads, 0 where the engine's own number is kept. [token]
    beyond : prompt tokens that a pass reads beyond one whole prompt, 0 where `chunk` holds. [token]
    drafts, drafting : tokens drafted per step of a run with drafts, and whether this one has them.
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
    """The settings of a run of which these facts hold; those that no script sets are usual ones.

    Parameters
    ----------
    facts : by the names that the conditions of the table use; one that is missing meets none.
    """
    changes: dict[str, object] = {}
    for row in _scripts()["settings"]:  # type: ignore[attr-defined]
        entry = dict(row)
        when, unless = entry.pop("when", {}), entry.pop("unless", {})
        if meets(facts, when) and not (unless and meets(facts, unless)):
            changes |= entry
    return ScriptSettings(**changes)  # type: ignore[arg-type]


def plain_export() -> str:
    """The model id under which a table's second export stands, of runs without drafts."""
    return str(_scripts()["plain"])


def meets(facts: Facts, conditions: Mapping[str, Condition]) -> bool:
    """Whether facts meet every condition; one that is missing meets none."""
    return all(name in facts and _holds(facts[name], wanted) for name, wanted in conditions.items())


def _holds(value: str | float, wanted: Condition) -> bool:
    """Whether a fact is what is wanted: a number, one of several patterns, or within ends."""
    if isinstance(wanted, Mapping):
        least, below = wanted.get("from"), wanted.get("below")
        return (least is None or value >= least) and (below is None or value < below)  # type: ignore[operator]
    if isinstance(wanted, str | float | int):
        wanted = [wanted]  # type: ignore[list-item]
    return any(
        fnmatchcase(value, each) if isinstance(value, str) else value == each for each in wanted
    )
