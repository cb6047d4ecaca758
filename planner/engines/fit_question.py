"""Input of `planner fit`, read from a scenario, a launch, or options.

No price and no promise is needed. A launch says its share, its longest request and its limits of a
step; options say what a file leaves open, and where both say a share they must agree.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from planner.architecture.counts import model_sizes
from planner.architecture.huggingface import read_config
from planner.architecture.layers import Model
from planner.catalogue import models
from planner.catalogue.hub import hub_config, is_hub_name
from planner.catalogue.systems import System, system
from planner.engines.deployment import longest_request
from planner.engines.imported import LaunchPool, launch_pools
from planner.memory.engine_fit import Fit, FitQuestion, held_requests, memory_fit
from planner.memory.engine_room import EngineLimits, ReplicaLayout, conversion_note
from planner.memory.engine_table import (
    GIB,
    EngineMemory,
    chip_memory,
    engine_memory,
    engine_names,
    logged_room,
    release,
)
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.engine_rules import EnginePool, engine_tables
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.runnable import refusals
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.loading import load
from planner.text.errors import InputError

SHARES = {"vllm": "share_all", "sglang": "share_pool", "trtllm": "share_free"}
EAGER = ("--enforce-eager", "--disable-cuda-graph")
SCENARIOS = (".yaml", ".yml", ".toml", ".json")
MANIFEST = re.compile(r"^\s*(kind|services):", re.MULTILINE)  # manifests, and a compose file
VISION = ("vision", "image")
OF_THE_CHIP = ("architecture", "maker", "generation")  # rules of engines that no layout changes
SAME_TOKENS = 0.005  # of what a log prints, which our rules of blocks give from its room
CONTEXT = 8192  # tokens of a request if no length is given


@dataclass(frozen=True)
class FitOptions:
    """Options of `planner fit` that change a file or replace it; None or empty if not given.

    `context` tokens of a request, `requests` at once of a replica; `room` in GiB as a log prints
    it, or the log: a file, or its line; `seats` and `tokens` are the limits of a step.
    """

    model: str | None = None
    system: str | System | None = None
    engine: str | None = None
    version: str | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    weights: str | None = None
    kv: str | None = None
    context: int | None = None
    requests: int | None = None
    share: float | None = None
    seats: int | None = None
    tokens: int | None = None
    room: float | str | None = None
    dcp: int | None = None
    eager: bool = False
    images: bool | None = None
    chips: int | None = None
    launched: bool = False
    notes: tuple[str, ...] = ()


def fit(source: str | None, options: FitOptions, sets: Sequence[str] = ()) -> Fit:
    """Return the memory fit of a model, by a scenario, a launch, or options alone.

    Raises InputError for what is missing, contradicts itself, or is not known.
    """
    wanted = options if source is None else _merged(_read(source, options, sets), options)
    return memory_fit(_question(wanted))


def _read(source: str, options: FitOptions, sets: Sequence[str]) -> FitOptions:
    """Read the fit options from a scenario or a launch."""
    path = Path(source)
    script = path.suffix not in SCENARIOS and source != "-"
    if script or (path.is_file() and MANIFEST.search(path.read_text("utf-8", errors="replace"))):
        if sets:
            raise InputError("--set: changes a scenario, and this is a launch; use the options")
        pools = launch_pools(source)
        if len(pools) > 1:
            raise InputError(f"{source}: starts {len(pools)} servers; give one of them")
        return _of_launch(pools[0])
    question = load(source, sets)
    if not isinstance(question, Scenario):
        raise InputError(f"{source}: problem: {question.problem} has no engine; expected serving")
    # A scenario gives the layout in use (`current`) or the layouts to choose from (`choose`).
    named = question.engine if question.engine != "any" else None
    if named == "none":
        raise InputError("engine: none has no memory rules; name one, such as engine=vllm")
    choose, current = question.choose, question.current
    described = question.model if isinstance(question.model, ModelDescription) else None
    machines = [each for each in question.systems() if isinstance(each, System)]
    if not machines:
        raise InputError("system: a topology file alone names no chip; name a system")
    layout: dict[str, Any] = {"chips": question.chips[-1]}
    for key, name in (("tp", "tp"), ("pp", "pp"), ("dp_attention", "dp"), ("ep", "ep")):
        tried = getattr(choose, key, None)
        if current is not None:
            layout[name] = getattr(current, key)
        elif tried:
            layout[name] = tried[0] if len(tried) == 1 else None
    weights = current.weights if current is not None else None
    loop, written = question.workload.concurrency, question.model_fields_set
    loaded = _model(_name(question.model))
    return FitOptions(
        model=_name(question.model),
        system=machines[0],
        engine=named,
        version=question.engine_version,
        weights=weights or _single(choose.weights) or (described.weights if described else None),
        kv=_single(choose.kv) or (described.kv if described else None),
        context=longest_request(question, 0, model_sizes(loaded))[0],
        seats=question.max_num_seqs,
        tokens=question.max_num_batched_tokens,
        requests=None if loop is None else math.ceil(loop),
        share=question.memory_utilisation if "memory_utilisation" in written else None,
        **layout,
    )  # fmt: skip


def _merged(read: FitOptions, options: FitOptions) -> FitOptions:
    """Override the options of a file by those given; raises InputError for two different shares."""
    if None not in (read.share, options.share) and read.share != options.share:
        raise InputError(
            f"--share {options.share:g}: the launch says {read.share:g}; leave one of them out"
        )
    changes = {x.name: getattr(options, x.name) for x in fields(options)}
    empty = (None, (), False)
    return replace(read, **{name: x for name, x in changes.items() if x not in empty})


def _of_launch(pool: LaunchPool) -> FitOptions:
    facts, layout = pool.facts, pool.layout
    name = pool.launch.release.name
    step = facts.get("budget") or facts.get("step_tokens") or facts.get("chunk")
    notes = [f"read from a launch of {pool.launch.release.title}"]
    dropped = (*pool.launch.uncounted, *pool.launch.unknown, *facts["untaken"])
    unread = [x for x in dropped if x not in EAGER]
    if unread:
        notes.append(f"not counted: {', '.join(unread)}")
    if pool.facts.get("drafts"):
        notes.append("drafts are counted by the memory that logs show for their blocks")
    return FitOptions(
        model=pool.model,
        engine=name,
        tp=layout["tp"],
        pp=layout["pp"],
        dp=layout["dp_attention"],
        ep=layout.get("ep"),
        dcp=layout.get("dcp"),
        weights=layout.get("weights"),
        kv=layout.get("kv"),
        context=_whole(facts, "longest"),
        requests=None,
        share=_share(facts.get(SHARES[name])),
        seats=_whole(facts, "sequences") or _whole(facts, "running"),
        tokens=None if step is None else int(step),
        eager=any(x in pool.launch.uncounted for x in EAGER),
        launched=True,
        notes=tuple(notes),
    )


def _question(wanted: FitOptions) -> FitQuestion:
    """The question with everything looked up."""
    missing = [key for key in ("model", "system") if getattr(wanted, key) is None]
    if missing:
        words = " and ".join(f"--{key}" for key in missing)
        raise InputError(
            f"{words} missing: give them, such as --model llama-3.1-8b --system hgx-h100"
        )
    share = _share(wanted.share)
    model = _model(wanted.model or "")
    notes = [*wanted.notes, *model.warnings]
    if wanted.engine is None:
        notes.append("no engine was named: vLLM's rules")
    engine = engine_memory(wanted.engine or engine_names()[0], wanted.version or "")
    counted = model_sizes(model, wanted.weights, wanted.kv)
    notes += filter(None, [conversion_note(model_sizes(model), counted)])
    machine = wanted.system if isinstance(wanted.system, System) else system(wanted.system or "")
    chip, context = machine.chip, wanted.context
    room, printed = _logged(wanted.room, engine, chip_memory(chip).visible)
    notes += _refused(EnginePool(counted, chip, "", wanted.weights or counted.stored), engine)
    if context is None:
        longest = counted.max_context or CONTEXT  # which a launch lets in, if it says nothing
        context = longest if wanted.launched else min(CONTEXT, longest)
        notes.append(f"no request length is given: {context:,} tokens are assumed")
    tower = any(word in part for part in counted.excluded for word in VISION)
    if tower and wanted.images is None:
        notes.append("images are not counted: their profile takes 1.2 to 2.9 GiB; --images adds it")
    layout = ReplicaLayout(
        wanted.tp or 1, wanted.pp or 1, wanted.dp or 1,
        wanted.ep if wanted.ep and counted.n_experts else 1,
    )  # fmt: skip
    if counted.n_q_heads % layout.tp:
        raise InputError(f"tp {layout.tp}: {counted.n_q_heads} attention heads do not divide by it")
    if wanted.dcp and wanted.dcp > 1 and "index" in {x.kind for x in counted.caches}:
        raise InputError(f"dcp {wanted.dcp}: no rule was read of blocks beside an index")
    if layout.ep not in (1, layout.tp * layout.dp):
        layout = replace(layout, tp_expert=layout.tp * layout.dp // layout.ep)
    limits = EngineLimits(
        layout.tp, layout.pp, layout.dp, share, wanted.seats, wanted.tokens,
        graphs=not wanted.eager, images=bool(wanted.images), dcp=wanted.dcp or 1,
    )  # fmt: skip
    question = FitQuestion(
        counted, chip_memory(chip), chip.name, engine, layout, limits, context,
        requests=math.ceil((wanted.requests or 1) / layout.dp), room=room, notes=tuple(notes),
    )  # fmt: skip
    if printed and abs(held_requests(question).tokens[0] / printed / layout.dp - 1) > SAME_TOKENS:
        words = f"the log has {printed:,} tokens of cache, other than this room gives by our rules"
        question = replace(question, notes=(*notes, words))
    return question if wanted.tp else _fewest(question, wanted.chips or math.inf)


def _logged(
    room: float | str | None, engine: EngineMemory, visible: float
) -> tuple[float | None, int | None]:
    """Room [byte] and tokens of the cache as a log prints them, where one is given."""
    if room is None:
        return None, None
    printed = None
    try:
        size = float(room) * GIB
    except ValueError:
        log = str(room)
        log = Path(log).read_text("utf-8", errors="replace") if os.path.isfile(log) else log
        size, printed = logged_room(engine, log)
    if not 0 < size < visible:
        words = f"expected above 0 and below {visible / GIB:.2f} GiB, which the chip has"
        raise InputError(f"--room {size / GIB:g}: {words}")
    return size, printed


def _refused(pool: EnginePool, engine: EngineMemory) -> Iterator[str]:
    """Note models and chips that the engine lacks; InputError if that is of the version asked."""
    table = engine_tables()[engine.name]
    chip_rules = {name: table.rules[name] for name in OF_THE_CHIP if name in table.rules}
    for what, remedy in refusals(pool, Layouts.of(), replace(table, rules=chip_rules)):
        if engine.version[:2] >= (release(table.version) or ())[:2]:
            raise InputError(f"{table.stamp}: {what}; what would work: {remedy}")
        yield f"of {table.stamp}: {what}"


def _fewest(question: FitQuestion, chips: float) -> FitQuestion:
    copies = question.layout.pp * question.layout.dp
    least = min(memory_fit(question).least_chips or chips, chips)
    if math.isinf(least):
        return question
    return question.on(2 ** int(math.log2(max(1, least // copies))))


def _model(name: str) -> Model:
    """A model by its catalogue name, the path of its config.json, or its name on the Hub."""
    catalogued = name if name in models.model_names() else models.model_of_repository(name)
    if catalogued is not None:
        return models.load(catalogued)
    if Path(name).exists():
        return read_config(Path(name))
    if is_hub_name(name):
        return read_config(hub_config(name).path)
    return models.load(name)


def _name(model: str | File | ModelDescription) -> str:
    """The name or the path of a scenario's model; raises InputError for one of bare numbers."""
    named = model.like if isinstance(model, ModelDescription) else model
    if named is None:
        raise InputError("model: described by numbers alone; memory needs its layers: name a model")
    return str(named.path) if isinstance(named, File) else named


def _single(values: Sequence[str] | None) -> str | None:
    return values[0] if values and len(values) == 1 else None


def _whole(facts: Mapping[str, Any], key: str) -> int | None:
    return None if facts.get(key) is None else int(facts[key])


def _share(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise InputError(
            f"--share {value:g}: expected a share of the memory, above 0 and at most 1"
        )
    return value
