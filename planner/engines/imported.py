"""A launch as a scenario: the layout in use as `current:`, for a plan to stand beside it.

The rows that write an option say what it carries; read backwards they give the facts, and the facts
the layout. What a launch does not say (machines, lengths of requests) is asked for, never guessed.
"""

import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from planner.architecture.counts import sizes
from planner.catalogue import models
from planner.engines.launch import OptionRow, Value
from planner.engines.launch_words import MOST, OptionError, WrittenLaunch, launches, placed
from planner.scenario import checked
from planner.scenario.tree import Tree, changed
from planner.text.errors import InputError, Mistake, ModelError, quoted

Facts = dict[str, Any]
LARGEST = 1_000_000  # bytes of a launch
WORDS = ("cache", "conversion", "role", "config_file", "port")  # facts that are no numbers
SHARES = ("share_all", "share_free", "share_pool", "longest", "positions")  # read, and not used
NONE = ("redundant", "drafts")  # numbers that may be zero
ROLES = {"prefill": "prefill", "decode": "decode", "null": ""}
MISSING = (
    "a launch does not say everything; give the rest, such as --set system=hgx-h200 "
    "--set workload.input_tokens=3000 --set workload.output_tokens=600"
)


@dataclass(frozen=True)
class Imported:
    """A scenario that a launch was read as, and sentences on what it does not hold.

    `data` is the scenario as plain values; `str()` the file that `planner solve` takes.
    """

    data: Mapping[str, Any]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        from ruamel.yaml import YAML

        writer, stream = YAML(), io.StringIO()
        writer.indent(mapping=2, sequence=4, offset=2)
        writer.dump(json.loads(json.dumps(self.data)), stream)
        comments = [f"# {note}" for note in self.notes]
        return "\n".join([*comments, stream.getvalue()])


def imported(
    files: Sequence[Path], sets: Sequence[str] = (), replicas: int | None = None
) -> Imported:
    """The scenario of a launch: one file with a command or manifests, or one for each pool.

    Raises InputError for a launch that cannot be read, a layout that cannot be, and keys that the
    launch does not say.

    Parameters
    ----------
    sets : changes `PATH=VALUE`; what a launch does not say.
    replicas : how many of a script's replicas run; those of a manifest are written in it.
    """
    texts = {path: _text(path) for path in files}
    beside = {path.name: text for path, text in texts.items()}
    pools: list[_Pool] = []
    for path, text in texts.items():
        if path.suffix in (".yaml", ".yml") and "kind:" not in text and len(texts) > 1:
            continue  # a settings file beside its script
        try:
            written = launches(text, str(path), {**_neighbours(path), **beside})
            pools += [_pool(launch, replicas) for launch in written]
        except InputError as error:
            raise placed(error, str(path), text) from error
    data = _scenario(pools, [str(path) for path in files])
    tree = changed(Tree(str(files[0]), data), sets)
    try:
        checked(tree, Path())
    except InputError as error:
        lacking = any("missing required key" in each.message for each in error.mistakes)
        more = (Mistake(str(files[0]), None, None, "", MISSING),) if lacking else ()
        raise InputError([*error.mistakes, *more]) from error
    return Imported(tree.data, tuple(_notes(pools)))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except OSError as error:
        raise _refused(path, error.strerror or "cannot be read") from error
    if len(raw) > LARGEST:
        raise _refused(path, "is larger than 1 MB, expected a launch")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(path, "is not UTF-8 text") from None


def _refused(path: Path, message: str) -> InputError:
    return InputError(Mistake(str(path), None, None, "", message))


def _neighbours(path: Path) -> dict[str, str]:
    """Settings files that lie beside a script, by name."""
    folder = path.resolve().parent
    there = (x for x in folder.glob("*.y*ml") if x != path and x.is_file())
    small = (x for x in there if x.stat().st_size < LARGEST and os.access(x, os.R_OK))
    return {x.name: x.read_text("utf-8", errors="replace") for x in small}


@dataclass(frozen=True)
class _Pool:
    """One pool that was read: its role, its keys of a layout, and what it lacks."""

    launch: WrittenLaunch
    model: str
    role: str
    layout: Mapping[str, Any]
    chips: int
    replicas: int
    drafts: int


def _pool(launch: WrittenLaunch, replicas: int | None) -> _Pool:
    facts, name = _facts(launch), _model(launch.model)
    experts = _experts(name)
    copies = int(facts.get("dp_attention", 1))
    pp, cp = int(facts.get("pp", 1)), int(facts.get("cp", 1))
    stage = int(facts.get("stage") or facts.get("tp", 1) * copies)
    if "chips_of_stage" in facts:
        stage = _divided(facts["chips_of_stage"], cp, launch)
    if facts.get("copies") and copies == 1:
        copies = stage  # a copy of attention on every chip
    tp = _divided(stage, copies, launch)
    count = launch.replicas or replicas or 1
    layout: Facts = {"tp": tp, "pp": pp, "cp": cp, "dp_attention": copies, "replicas": count}
    if experts is not False:
        ep = int(facts.get("ep") or (stage if facts.get("expert_parallel") else 1))
        layout |= {"ep": ep, "tp_expert": _divided(stage, ep, launch)}
    layout["overlap"] = "two-batch" if facts.get("two_batches") else "none"
    layout["redundant_experts"] = int(facts.get("redundant", 0))
    layout |= _formats(facts, launch)
    running = facts.get("running") or (facts.get("sequences") or 0) * copies
    if running:
        layout["batch"] = int(running) * count
    role, drafts = _role(facts), int(facts.get("drafts", 0))
    chunk = _chunk(facts, role, copies, pp, drafts)
    if chunk:
        layout["chunk"] = chunk
    return _Pool(launch, name, role, layout, tp * copies * pp * cp, count, drafts)


def _divided(whole: int, ways: int, launch: WrittenLaunch) -> int:
    """Chips for each of so many ways; InputError where that is no whole number."""
    if ways < 1 or int(whole) % ways:
        raise InputError(
            f"{launch.release.title}: {whole} chips of a stage do not divide by {ways}; "
            "the sizes of this launch contradict each other"
        )
    return int(whole) // ways


def _facts(launch: WrittenLaunch) -> Facts:
    """What the options carry: the release's rows read backwards.

    An option with two rows means that whose conditions hold; the others are read first.
    """
    rows = (*launch.release.options, *launch.release.settings)
    facts: Facts = {"copies": False}
    clear = [row for row in rows if sum(x.name == row.name for x in rows) == 1]
    for row in [*clear, *(row for row in rows if row not in clear)]:
        if row.name not in launch.options:
            continue
        if row not in clear and not _possible(row, facts):
            continue
        facts |= _backwards(row, launch.options[row.name], launch)
        facts["copies"] = facts["copies"] or facts.get("dp_attention", 1) > 1
    return facts


def _possible(row: OptionRow, facts: Facts) -> bool:
    """Whether nothing that was read contradicts the conditions of a row that has a twin."""
    return all(facts.get(x, True) for x in row.when) and not any(map(facts.get, row.unless))


def _backwards(row: OptionRow, value: Value, launch: WrittenLaunch) -> Facts:
    """The facts that an option with this value carries."""
    if row.fact is not None:
        return {row.fact: _number(row, value, launch)}
    if row.value is None or value in (row.value, str(row.value)) or value is True:
        true = value is None or str(value).lower() not in ("false", "0")
        return dict.fromkeys(row.when, True) if true else {}
    captured = _captured(row, str(value))
    if captured is None:
        return {}
    return {**dict.fromkeys(row.when, True), **captured}


def _captured(row: OptionRow, text: str) -> Facts | None:
    """The facts inside a value such as JSON with one number; None where the value is another."""
    if not isinstance(row.value, str):
        return None
    pattern = "".join(
        re.escape(re.sub(r"\s", "", words)) + (rf"(?P<{name}>\d{{1,9}})" if name else "")
        for words, name, _, _ in Formatter().parse(row.value)
    )
    match = re.fullmatch(pattern, re.sub(r"\s", "", text))
    return None if match is None else {name: int(x) for name, x in match.groupdict().items()}


def _number(row: OptionRow, value: Value, launch: WrittenLaunch) -> object:
    """A value of an option as what it is: a number, else the word."""
    text = str(value)
    if row.fact == "role" and text not in ROLES:
        roles = ", ".join(ROLES)
        words = f"{launch.release.title}: {row.name} expects one of {roles}, got {quoted(text)}"
        raise OptionError(row.name, words)
    if row.fact in WORDS:
        return ROLES.get(text, text)
    try:
        number = float(text) if "." in text else int(text)
    except ValueError:
        number = math.nan
    whole = row.fact not in SHARES
    least = int(row.fact not in NONE) if whole else -MOST
    if not least <= number <= MOST or (whole and number != int(number)):
        words = f"expects a whole number of at least {least}" if whole else "expects a number"
        raise OptionError(
            row.name, f"{launch.release.title}: {row.name} {words}, got {quoted(value)}"
        )
    return number


def _role(facts: Facts) -> str:
    """Which of two pools this is, from what the rows say; empty where there is one."""
    if facts.get("role"):
        return str(facts["role"])
    if facts.get("prefills_alone"):
        return "prefill"
    return "decode" if facts.get("decodes_alone") or facts.get("two_pools") else ""


def _formats(facts: Facts, launch: WrittenLaunch) -> Facts:
    """The planner's names of the formats that are written."""
    release = launch.release
    formats = {}
    for key, fact, words in (
        ("kv", "cache", release.caches),
        ("weights", "conversion", release.online),
    ):
        names = [ours for ours, theirs in words.items() if theirs == facts.get(fact)]
        if names and facts[fact] != "auto":
            formats[key] = names[0]
    return formats


def _chunk(facts: Facts, role: str, copies: int, pp: int, drafts: int) -> int | None:
    """Tokens of prompt in a step of one copy; None where the launch does not say."""
    if "chunk" in facts:
        return int(facts["chunk"])
    if "chunk_of_copies" in facts:
        return int(facts["chunk_of_copies"]) // copies
    whole = facts.get("budget") or facts.get("step_tokens")
    if not whole or role == "decode":
        return None
    if int(whole) == facts.get("sequences"):
        return None  # room for every sequence, whatever the chunk
    answers = 0 if role else math.ceil(int(facts.get("sequences", 0)) / pp) * (1 + drafts)
    return int(whole) - answers if whole > answers else None


def _model(place: str) -> str:
    """The catalogue's name of a repository; a folder's config.json; else the repository itself."""
    name = models.of_repository(place)
    if name is not None:
        return name
    return f"{place.rstrip('/')}/config.json" if os.path.isdir(place) else place


def _experts(name: str) -> bool | None:
    """Whether a model has experts; None where its layers are not at hand."""
    if name not in models.names():
        return None
    try:
        return bool(sizes(models.load(name)).n_experts)
    except ModelError:
        return None


def _scenario(pools: Sequence[_Pool], files: Sequence[str]) -> dict[str, Any]:
    """The scenario of one pool as `current`, of two as the only layouts of `choose`."""
    first = pools[0]
    if len({(pool.model, pool.launch.release.name) for pool in pools}) > 1:
        raise InputError(f"{', '.join(files)}: start different models or engines")
    data: dict[str, Any] = {"problem": "serving", "model": first.model}
    data["chips"] = sum(pool.chips * pool.replicas for pool in pools)
    data["engine"] = first.launch.release.name
    roles = sorted(pool.role for pool in pools)
    if roles == ["decode", "prefill"]:
        axes = ("tp", "pp", "cp", "dp_attention", "ep", "tp_expert", "overlap", "replicas")
        data["choose"] = {"mode": "disaggregated"}
        for pool in pools:
            data["choose"][pool.role] = {x: pool.layout[x] for x in axes if x in pool.layout}
        return data
    if len(pools) > 1 or roles != [""]:
        words = f"pools {', '.join(x or 'that serve alone' for x in roles)}"
        raise InputError(f"{', '.join(files)}: {words}; give one, or the two that belong together")
    data["current"] = {"mode": "aggregated", **first.layout}
    return data


def _notes(pools: Sequence[_Pool]) -> Iterator[str]:
    """What a launch holds that a layout does not, and the other way round."""
    for pool in pools:
        release, launch = pool.launch.release, pool.launch
        yield f"read from a launch of {release.title}, by its options of {release.version}"
        if launch.replicas is None:
            yield f"{pool.replicas} x {pool.chips} chips: a script says nothing of its copies"
        if "batch" not in pool.layout:
            yield "how many sequences are in flight is not written; give --set current.batch"
        if pool.drafts:
            yield f"{pool.drafts} drafts a step: say by speculation: what is accepted of them"
        if launch.unread:
            yield f"options that say nothing of a layout here: {', '.join(launch.unread)}"
