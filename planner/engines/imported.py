"""Import of a launch as a scenario: its layout is `current:`, for comparison with a plan.

The rows that write an option say what it carries; read backwards they give the facts, and the facts
the layout. What a launch does not say (machines, lengths of requests) is asked for, never guessed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.architecture.counts import model_sizes
from planner.catalogue import models
from planner.engines.carried_facts import SHARES, Facts, facts_of_launch
from planner.engines.deployment import chip_called, pool_utilisation
from planner.engines.launch_words import WrittenLaunch, launches, with_source_location
from planner.memory.engine_table import version_faults
from planner.problems.serving.point import MemoryUse
from planner.problems.serving.question import Scenario
from planner.problems.serving.task.resolve import resolve
from planner.scenario import check_tree
from planner.scenario.keys.engine_keys import SETTINGS
from planner.scenario.tree import Tree, apply_sets, yaml_text
from planner.text.errors import InputError, Mistake, ModelError

MAX_FILE_BYTES = 1_000_000  # bytes of a launch
SHARE_KEY = "memory_utilisation="
MISSING = (
    "a launch does not say everything; give the rest, such as --set system=hgx-h200 "
    "--set workload.input_tokens=3000 --set workload.output_tokens=600"
)


@dataclass(frozen=True)
class ImportedScenario:
    """Scenario imported from a launch, with notes on facts that are missing in either.

    `data` is the scenario as plain values; `str()` the file that `planner solve` takes.
    """

    data: Mapping[str, Any]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*(f"# {note}" for note in self.notes), yaml_text(self.data)])


def scenario_from_launch(
    files: Sequence[str | Path], sets: Sequence[str] = (), replicas: int | None = None
) -> ImportedScenario:
    """The scenario of a launch: a file with a command or manifests, or one for each pool.

    A command of several words stands for itself, `-` for what comes by standard input.

    Raises InputError for a launch that cannot be read, a layout that cannot be, and keys that the
    launch does not say.

    Args:
        sets: changes `PATH=VALUE`; what a launch does not say.
        replicas: how many of a script's replicas run; those of a manifest are written in it.
    """
    texts = {Path(str(file)): _text(str(file)) for file in files}
    beside = {path.name: text for path, text in texts.items()}
    model = next((x.removeprefix("model=") for x in reversed(sets) if x.startswith("model=")), "")
    pools: list[LaunchPool] = []
    for path, text in texts.items():
        if path.suffix in (".yaml", ".yml") and "kind:" not in text and len(texts) > 1:
            continue  # settings file of a script, not a launch
        try:
            written = launches(text, str(path), {**_neighbours(path), **beside})
            pools += [_pool(launch, replicas, model) for launch in written]
        except InputError as error:
            raise with_source_location(error, str(path), text) from error
    data = _scenario(pools, [str(path) for path in texts])
    tree = apply_sets(Tree(str(files[0]), data), sets)
    try:
        scenario = check_tree(tree, Path())
    except InputError as error:
        lacking = any("missing required key" in each.message for each in error.mistakes)
        more = (Mistake(str(files[0]), None, None, "", MISSING),) if lacking else ()
        raise InputError([*error.mistakes, *more]) from error
    if isinstance(scenario, Scenario) and not any(x.startswith(SHARE_KEY) for x in sets):
        shares = [_utilisation(pool, scenario) for pool in pools]
        least = min((share for share in shares if share is not None), default=None)
        tree = apply_sets(tree, [] if least is None else [f"{SHARE_KEY}{least:g}"])
    return ImportedScenario(tree.data, tuple(_notes(pools, data)))


def _utilisation(pool: LaunchPool, scenario: Scenario) -> float | None:
    """The share of the memory that a pool's engine fills; None where the launch does not say.

    What engines are told of weights and caches alone is worked out from the pool's own memory.
    """
    shares = {x.removeprefix("share_"): pool.facts[x] for x in SHARES if x in pool.facts}
    if "pool" not in shares:
        return next(iter(shares.values()), None)
    from planner.problems.serving.advice.current_layout import current_layout
    from planner.problems.serving.answer import answer

    current = scenario.current
    if current is not None and not (current.batch or scenario.workload.concurrency):
        # Activations of a chunk beside a sequence stand for those of sequences that are not said.
        batch = current.dp_attention * pool.replicas
        current = current.model_copy(update={"batch": batch})
        scenario = scenario.model_copy(update={"current": current})
    with suppress(InputError):
        if point := current_layout(scenario, resolve(scenario).tasks):
            memory, chip = point.memory_per_chip, str(point.chip)
        elif pinned := answer(scenario).chosen:
            part = pinned[pool.role]
            memory, chip = MemoryUse(**part["memory_per_chip"]), part["chip"]
        else:
            return shares["pool"]
        share, used = scenario.memory_utilisation, chip_called(chip)
        return pool_utilisation(shares["pool"], memory, share, used)
    return shares["pool"]


def _text(file: str) -> str:
    """Return the text of a file or standard input; a command that is no file is the text."""
    path = Path(file)
    if len(file.split()) > 1 and not path.exists():
        return file
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _refused(path, error.strerror or "cannot be read") from error
    if len(raw) > MAX_FILE_BYTES:
        raise _refused(path, "is larger than 1 MB, expected a launch")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(path, "is not UTF-8 text") from None


def _refused(path: Path, message: str) -> InputError:
    return InputError(Mistake(str(path), None, None, "", message))


def _neighbours(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    folder = path.resolve().parent
    there = (x for x in folder.glob("*.y*ml") if x != path and x.is_file())
    small = (x for x in there if x.stat().st_size < MAX_FILE_BYTES and os.access(x, os.R_OK))
    return {x.name: x.read_text("utf-8", errors="replace") for x in small}


@dataclass(frozen=True)
class LaunchPool:
    """One pool that was read: its role, layout and limits by a scenario's keys, all its facts."""

    launch: WrittenLaunch
    model: str
    role: str
    layout: Mapping[str, Any]
    chips: int
    replicas: int
    limits: Mapping[str, int]
    facts: Facts


def launch_pools(source: str) -> list[LaunchPool]:
    """The pools of a launch: a file, the command itself, or `-` for standard input.

    Raises InputError for a launch that cannot be read.
    """
    text, path = _text(source), Path(source)
    try:
        written = launches(text, source, _neighbours(path))
        return [_pool(launch, None, "") for launch in written]
    except InputError as error:
        raise with_source_location(error, source, text) from error


def _pool(launch: WrittenLaunch, replicas: int | None, model: str) -> LaunchPool:
    facts, name = facts_of_launch(launch), model or _model(launch.model)
    experts = _experts(name)
    copies = int(facts.get("dp_attention", 1))
    pp, cp, dcp = (int(facts.get(way, 1)) for way in ("pp", "cp", "dcp"))
    stage = int(facts.get("stage") or facts.get("tp", 1) * copies)
    if "cut_heads" in facts:
        stage = int(facts["cut_heads"]) * dcp
    if "chips_of_stage" in facts:
        stage = _divided(facts["chips_of_stage"], cp, launch)
    if facts.get("copies") and copies == 1:
        copies = stage  # a copy of attention on every chip
    tp = _divided(stage, copies, launch)
    count = launch.replicas or replicas or 1
    _divided(tp, dcp, launch)
    layout: Facts = {"tp": tp, "pp": pp, "cp": cp, "dp_attention": copies, "replicas": count}
    layout |= {"dcp": dcp} if dcp > 1 else {}
    if experts is not False:
        ep = int(facts.get("ep") or (stage if facts.get("expert_parallel") else 1))
        layout |= {"ep": ep, "tp_expert": _divided(stage, ep, launch)}
    layout["overlap"] = "two-batch" if facts.get("two_batches") else "none"
    layout["redundant_experts"] = int(facts.get("redundant", 0))
    release = launch.release
    named = [pair for each in release.named_caches.values() for pair in each.items()]
    for key, fact, words in (
        ("kv", "cache", [*release.caches.items(), *named]),
        ("weights", "conversion", [*release.online.items()]),
    ):
        value = str(facts.get(fact, "auto"))
        alike = (value, "fp8", "fp8_e4m3") if value.startswith("fp8_") else (value,)
        names = [ours for ours, theirs in words if theirs in alike]
        if names and value != "auto":
            layout[key] = names[0]
        elif value != "auto":
            facts["untaken"] += [row.name for row in release.options if row.fact == fact]
    seats = facts.get("sequences") or facts.get("running", 0) // copies
    if seats:
        layout["batch"] = seats * copies * count
    role, drafts = _role(facts), int(facts.get("drafts", 0))
    if chunk := _chunk(facts, role, copies, pp, drafts):
        layout["chunk"] = chunk
    numbers = (seats, facts.get("budget") or facts.get("step_tokens"), facts.get("longest"))
    limits = {key: int(limit) for key, limit in zip(SETTINGS, numbers, strict=True) if limit}
    return LaunchPool(launch, name, role, layout, tp * copies * pp * cp, count, limits, facts)


def _divided(whole: int, ways: int, launch: WrittenLaunch) -> int:
    """Chips per way, `whole / ways`; raises InputError if that is not an integer."""
    if ways < 1 or int(whole) % ways:
        raise InputError(
            f"{launch.release.title}: {whole} chips of a stage do not divide by {ways}; "
            "the sizes of this launch contradict each other"
        )
    return int(whole) // ways


def _role(facts: Facts) -> str:
    if facts.get("role"):
        return str(facts["role"])
    if facts.get("prefills_alone"):
        return "prefill"
    return "decode" if facts.get("decodes_alone") or facts.get("two_pools") else ""


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
        return None  # a budget of one token per sequence leaves the chunk unknown
    answers = 0 if role else math.ceil(int(facts.get("sequences", 0)) / pp) * (1 + drafts)
    return int(whole) - answers if whole > answers else None


def _model(place: str) -> str:
    if (name := models.model_of_repository(place)) is not None:
        return name
    if os.path.isdir(place):
        return f"{place.rstrip('/')}/config.json"
    folder = place.rstrip("/").rpartition("/")[2].lower()
    return folder if place.startswith("/") and folder in models.model_names() else place


def _experts(name: str) -> bool | None:
    with suppress(ModelError):
        if name in models.model_names():
            return bool(model_sizes(models.load(name)).n_experts)
    return None


def _scenario(pools: Sequence[LaunchPool], files: Sequence[str]) -> dict[str, Any]:
    """The scenario of one pool as `current`, of two as the only layouts of `choose`."""
    first = pools[0]
    if len({(pool.model, pool.launch.release.name) for pool in pools}) > 1:
        raise InputError(f"{', '.join(files)}: start different models or engines")
    data: dict[str, Any] = {"problem": "serving", "model": first.model}
    data["chips"] = sum(pool.chips * pool.replicas for pool in pools)
    data["engine"], version = first.launch.release.name, first.launch.version
    alike = version and all(pool.launch.version == version for pool in pools)
    if alike and not version_faults(data["engine"], version):
        data["engine"] = {"name": data["engine"], "version": version}
    for key in SETTINGS:
        limits = [pool.limits[key] for pool in pools if key in pool.limits]
        # A request passes every pool; other limits are written where all pools have the same.
        if limits and (key == "max_model_len" or limits == limits[:1] * len(pools)):
            data[key] = min(limits)
    roles = sorted(pool.role for pool in pools)
    if roles == ["decode", "prefill"]:
        axes = ("tp", "pp", "cp", "dcp", "dp_attention", "ep", "tp_expert", "overlap", "replicas")
        data["choose"] = {"mode": "disaggregated"}
        for pool in pools:
            data["choose"][pool.role] = {x: pool.layout[x] for x in axes if x in pool.layout}
            shared = ("weights", "kv", "chunk")
            data["choose"] |= {x: pool.layout[x] for x in shared if x in pool.layout}
        return data
    if len(pools) > 1 or roles != [""]:
        words = f"pools {', '.join(x or 'that serve alone' for x in roles)}"
        raise InputError(f"{', '.join(files)}: {words}; give one, or the two that belong together")
    data["current"] = {"mode": "aggregated", **first.layout}
    return data


def _notes(pools: Sequence[LaunchPool], data: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes on options that the scenario lacks and on facts that the launch does not give."""
    for pool in pools:
        release, launch = pool.launch.release, pool.launch
        version = f" {launch.version}" if launch.version else ""
        yield f"read from a launch of {release.title}{version}, by its options of {release.version}"
        if launch.version and isinstance(data["engine"], str):
            faults = version_faults(release.name, launch.version) or "the pools differ"
            yield f"version {launch.version} is not written: {faults}"
        for key in (x for x in pool.limits if x not in data):
            yield f"{key} {pool.limits[key]} of one pool is not written: the pools differ"
        if launch.replicas is None:
            yield f"{pool.replicas} x {pool.chips} chips: a script says nothing of its copies"
        if "batch" not in pool.layout:
            yield "how many sequences are in flight is not written; give --set current.batch"
        for row in (x for x in release.options if x.fact == "share_pool" and x.fact in pool.facts):
            share = f"{row.name} {pool.facts['share_pool']:g}"
            yield f"{share} is of weights and caches; {SHARE_KEY[:-1]} counts activations too"
        if drafts := pool.facts.get("drafts"):
            yield f"{drafts} drafts a step: say by speculation: what is accepted of them"
        for what in dict.fromkeys(launch.uncounted.values()):
            names = [x for x, its in launch.uncounted.items() if its == what]
            yield f"{', '.join(names)}: may change {what}, which the plan does not count"
        if names := pool.facts["untaken"]:
            yield f"{', '.join(names)}: of a kind that the planner does not write, not read"
        if launch.unknown:
            yield f"no options of {release.stamp}, not read: {', '.join(launch.unknown)}"
