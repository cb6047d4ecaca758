"""Options as an engine's own parser takes them: `_` for `-`, unique beginnings, negated switches.

`engine_options.toml` lists every option of each parser; `imports.toml` its short names, what a
scenario has no key for, and options of earlier releases.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import MappingProxyType

from planner.engines.launch import MODEL, FactValue, Release, releases
from planner.text.errors import InputError, did_you_mean
from planner.text.tables import table

OPTION = re.compile(r"--?[A-Za-z]")
NEGATIONS = (("--no-", "--"), ("--disable-", "--enable-"), ("--enable-", "--disable-"))


class OptionError(InputError):
    """Error in an option of a launch; `word` is its name in the release's rows."""

    def __init__(self, word: str, message: str) -> None:
        self.word = word
        super().__init__(message)


@dataclass(frozen=True)
class EngineOptions:
    """The options of one engine: `names` by how they may be spelled, `-` for `_`.

    `carried` are those of the release's rows, `switches` take no value, `idle` change neither
    layout, memory nor step; `refused` has the reasons of those that a scenario has no key for,
    `effects` what others change that a plan does not count, `earlier` those of older releases;
    `turned` are switches that make one option mean another.
    """

    release: Release
    names: Mapping[str, str]
    carried: frozenset[str]
    switches: frozenset[str]
    idle: frozenset[str]
    refused: Mapping[str, str]
    effects: Mapping[str, str]
    earlier: frozenset[str]
    turned: Mapping[str, Sequence[str]]

    def named(self, spelled: str) -> tuple[str, bool] | None:
        """The option that a word means, and whether it is not negated; None for no option of it.

        Raises OptionError for a beginning of several options of which one lays out chips, and for
        what is spelled like one.
        """
        word = _dashed(spelled)
        if word in self.names:
            return self.names[word], True
        for prefix, positive in NEGATIONS:
            switch = positive + word.removeprefix(prefix)
            if word.startswith(prefix) and switch in self.names:
                return self.names[switch], False
        meant = {name for x, name in self.names.items() if x.startswith(word)}
        meant = meant if word.startswith("--") else set()
        if len(meant) == 1:
            return meant.pop(), True
        if meant & self.carried:
            words = f"{spelled} begins several options: {', '.join(sorted(meant))}; write it out"
            raise OptionError(spelled, words)
        hint = "" if meant else did_you_mean(spelled, sorted({*self.carried, *self.names}))
        if any(repr(name) in hint for name in self.carried):
            words = f"{self.release.stamp} has no option {spelled}{hint}"
            raise OptionError(spelled, words)
        return None

    def pairs(self, words: Sequence[str]) -> Iterator[tuple[str, FactValue]]:
        """Options with their values, by name; words before, between and after them under "".

        A switch has None, or False where it is negated; what is no option keeps its spelling.
        """
        place, single = 0, True
        while place < len(words):
            spelled, sign, value = words[place].partition("=")
            place += 1
            if not OPTION.match(spelled):
                if single:
                    yield "", words[place - 1]
                continue
            whole, dot, path = spelled.partition(".")
            name, positive = self.named(whole) or (spelled, True)
            single = name in self.switches
            if not sign and not single and place < len(words) and not OPTION.match(words[place]):
                value, sign = words[place], "="
                place += 1
            single = single or name == MODEL
            if dot and sign and name != spelled:
                try:
                    inner = json.loads(value)
                except ValueError:
                    inner = value
                for key in reversed(path.split(".")):
                    inner = {key: inner}
                yield name, json.dumps(inner)
            else:
                yield name, value if sign else None if positive else False


def _dashed(word: str) -> str:
    return word.replace("_", "-")


def options_by_name(pairs: Iterable[tuple[str, FactValue]]) -> dict[str, FactValue]:
    """Return the options by name, the last of duplicates; JSON values of one option are merged."""
    options: dict[str, FactValue] = {}
    for name, value in pairs:
        before, now = (_mapping(x) for x in (options.get(name), value))
        options[name] = json.dumps({**before, **now}) if before and now else value
    return options


def _mapping(value: FactValue) -> dict[str, object]:
    try:
        read = json.loads(value) if isinstance(value, str) and value.startswith("{") else None
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


@cache
def engine_options(engine: str) -> EngineOptions:
    """The options of an engine."""
    release = releases()[engine]
    listed = table("planner.engines", "engine_options.toml")[engine]
    rows = table("planner.engines", "imports.toml")[engine]
    words = {
        key: [x if key.endswith("settings") else f"--{x}" for x in text.split()]
        for key, text in listed.items()
    }
    settings = words.pop("settings", []), words.pop("idle_settings", [])
    earlier = [f"--{x}" for x in rows["earlier"].split()]
    carried = [row.name for row in (*release.options, *release.settings, *release.followers)]
    aliases: Mapping[str, str] = rows["aliases"]
    whole = [*words["switches"], *words["idle"], *words["rest"], *earlier, *rows["refused"]]
    whole += chain.from_iterable(settings)
    names = {name: name for name in (*whole, *carried)} | dict(aliases)
    switches = {row.name for row in (*release.options, *release.settings, *release.followers)
                if row.value is None and row.fact is None}  # fmt: skip
    return EngineOptions(
        release=release,
        names=MappingProxyType({_dashed(word): name for word, name in names.items()}),
        carried=frozenset([*carried, MODEL]),
        switches=frozenset([*words["switches"], *switches]),
        idle=frozenset([*words["idle"], *settings[1]]),
        refused=rows["refused"],
        effects=rows["effects"],
        earlier=frozenset(earlier),
        turned=rows.get("turned", {}),
    )
