"""Facts carried by the options of a launch: the rows that write an option, read backwards."""

import json
import math
import re
from string import Formatter
from typing import Any

from planner.engines.containers import MAX_COUNT
from planner.engines.launch import FactValue, OptionRow
from planner.engines.launch_words import WrittenLaunch
from planner.engines.option_names import OptionError
from planner.text.errors import quote
from planner.text.tables import table

Facts = dict[str, Any]
# Facts that are no numbers.
TEXT_FACTS = ("cache", "connector", "conversion", "drafter", "drafter_place", "role", "config_file",
              "port")  # fmt: skip
CACHE_SIZES = ("cache_bytes", "cache_blocks", "cache_tokens")
SIZE_FACTS = ("longest", "chunk", "chunk_of_copies", "budget", "step_tokens", *CACHE_SIZES)
UNSET = ("", "-1", "auto", "null", "none")  # values that leave a size to the engine
THOUSANDS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
ZERO_ALLOWED = ("redundant", "drafts")  # numbers that may be zero
ROLES = {"prefill": "prefill", "decode": "decode", "null": ""}
SHARES = ("share_all", "share_free", "share_pool")  # of a chip's memory


def facts_of_launch(launch: WrittenLaunch) -> Facts:
    """Return the facts carried by the options: the release's rows read backwards.

    An option with two rows means that whose conditions hold; the others are read first.
    """
    sizes = table("planner.engines", "imports.toml")[launch.release.name]["sizes"].items()
    rows = [*launch.release.options, *launch.release.settings]
    rows += [OptionRow(name=name, fact=fact, because="") for name, fact in sizes]
    facts: Facts = {"copies": False, "shared_contexts": False}
    taken: dict[str, bool] = {}
    clear = [row for row in rows if sum(x.name == row.name for x in rows) == 1]
    for row in [*clear, *(row for row in rows if row not in clear)]:
        if row.name not in launch.options:
            continue
        taken.setdefault(row.name, False)
        if row not in clear and not (
            all(facts.get(x, True) for x in row.when) and not any(map(facts.get, row.unless))
        ):
            continue
        carried = _backwards(row, launch.options[row.name], launch)
        taken[row.name] |= carried is not None
        facts |= carried or {}
        for several, fact in (("copies", "dp_attention"), ("shared_contexts", "dcp")):
            facts[several] = facts[several] or facts.get(fact, 1) > 1
    facts["untaken"] = [name for name, took in taken.items() if not took]
    return facts


def _backwards(row: OptionRow, value: FactValue, launch: WrittenLaunch) -> Facts | None:
    """The facts that an option with this value carries; None for a value that the row has not."""
    differs = isinstance(row.value, str) and row.value.startswith("@")  # from node to node
    if differs or (row.fact in SIZE_FACTS and str(value).lower() in UNSET):
        return {}
    if row.fact is not None:
        return {row.fact: _number(row, value, launch)}
    says = dict.fromkeys(row.when if row.implies is None else row.implies, True)
    if row.value is None or value in (row.value, str(row.value)) or value is True:
        true = value is None or str(value).lower() not in ("false", "0")
        return says if true else {}
    captured = _captured(row, str(value))
    if captured is None:
        return {} if str(value).lower() in ("false", "0", "none") else None
    return {**says, **captured}


def _captured(row: OptionRow, text: str) -> Facts | None:
    """Return the facts inside a JSON value; None if it does not match the template of the row."""
    if not isinstance(row.value, str) or not row.value.startswith("{{"):
        return None
    try:
        read = json.loads(text)
    except ValueError:
        raise OptionError(row.name, f"{row.name} expects JSON, got {quote(text)}") from None
    # Placeholder of a fact in JSON: a word in braces; quotes are added if the row has none.
    marked = "".join(
        words + ("" if not name else f"{{{name}}}" if words.endswith('"') else f'"{{{name}}}"')
        for words, name, _, _ in Formatter().parse(row.value)
    )
    return _matched(json.loads(marked), read)


def _matched(row: object, value: object) -> Facts | None:
    """The facts where a value holds all that a row's does; None where it does not."""
    if isinstance(row, dict):
        facts: Facts = {}
        for key, part in row.items():
            inner = _matched(part, value.get(key)) if isinstance(value, dict) else None
            if inner is None:
                return None
            facts |= inner
        return facts
    name = row[1:-1] if isinstance(row, str) and row.startswith("{") else ""
    if name in TEXT_FACTS:
        return {name: value} if isinstance(value, str) else None
    if name:
        return {name: value} if type(value) is int and 0 <= value <= MAX_COUNT else None
    return {} if row == value else None


def _number(row: OptionRow, value: FactValue, launch: WrittenLaunch) -> object:
    """Parse the value of an option: a number, else the text; raises OptionError if invalid."""
    text = str(value)
    sized = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([kmgKMG])", text)
    if sized:
        text = f"{float(sized[1]) * THOUSANDS[sized[2]]:.0f}"
    if row.fact == "role" and text not in ROLES:
        roles = ", ".join(ROLES)
        words = f"{launch.release.title}: {row.name} expects one of {roles}, got {quote(text)}"
        raise OptionError(row.name, words)
    if row.fact in TEXT_FACTS:
        return ROLES.get(text, text)
    try:
        number = float(text) if "." in text else int(text)
    except ValueError:
        number = math.nan
    whole = row.fact not in SHARES
    least, most = int(row.fact not in ZERO_ALLOWED), MAX_COUNT if whole else 1
    most *= 10**6 if row.fact == "cache_bytes" else 1
    if not least * whole <= number <= most or (whole and number != int(number)):
        words = f"expects a whole number of at least {least}" if whole else "expects 0 to 1"
        raise OptionError(
            row.name, f"{launch.release.title}: {row.name} {words}, got {quote(value)}"
        )
    return number
