"""Input of `planner fit`, read from a scenario, a launch, or options.

No price and no promise is needed. A launch says its share, its longest request and its limits of a
step; options say what a file leaves open, and what a launch says they must say alike.
"""

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from planner.architecture.counts import model_sizes
from planner.architecture.huggingface import read_config
from planner.architecture.layers import Model
from planner.catalogue import models
from planner.catalogue.hub import hub_config, is_hub_name
from planner.catalogue.systems import System, system
from planner.engines.carried_facts import CACHE_SIZES
from planner.engines.deployment import chip_called, longest_request, pool_share
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
from planner.problems.serving.advice.current_layout import current_layout
from planner.problems.serving.question import Scenario
from planner.problems.serving.step.engine_rules import EnginePool, engine_tables
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.runnable import refusals
from planner.problems.serving.task.resolve import resolve
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.keys.workload import Current
from planner.scenario.loading import load
from planner.text.errors import InputError

T = TypeVar("T")
SHARES = {"vllm": "share_all", "sglang": "share_pool", "trtllm": "share_free"}
EAGER = ("--enforce-eager", "--disable-cuda-graph")
SCENARIOS = (".yaml", ".yml", ".toml", ".json")
MANIFEST = re.compile(r"^\s*(kind|services):", re.MULTILINE)  # manifests, and a compose file
VISION = ("vision", "image")
# Rules of engines that are asked: of models and chips, and of ranks that share contexts.
CHECKED_RULES = (
    "architecture", "maker", "generation",
    "ranks of a context", "ranks of latent caches", "ranks beside windows",
)  # fmt: skip
SAME_TOKENS = 0.005  # of what a log prints, which our rules of blocks give from its room
CONTEXT = 8192  # tokens of a request if no length is given
# Options that a launch may contradict, of layouts with the facts by which a launch says them.
LAYOUT_FACTS = {"tp": ("tp", "stage", "cut_heads", "chips_of_stage"), "pp": ("pp",),
                "dp": ("dp_attention",), "ep": ("ep", "expert_parallel")}  # fmt: skip
OPTIONS = ("engine", "version", "weights", "kv", "share", "seats", "tokens")
OPTION_NAMES = {
    "version": "engine-version",
    "seats": "max-num-seqs",
    "tokens": "max-num-batched-tokens",
}


@dataclass(frozen=True)
class FitOptions:
    """Options of `planner fit` that change a file or replace it; None or empty if not given.

    `context` tokens of a request, `requests` at once of a replica; `room` in GiB as a log prints
    it, or the log: a file, or its line; `seats` and `tokens` are the limits of a step, `cache`
    sizes of the cache in a launch by their facts, `written` options that stand in it.
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
    drafts: int | None = None
    drafter: str = ""
    cache: tuple[tuple[str, float], ...] = ()
    written: tuple[str, ...] = ()
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
    machine = next((x for x in machines if current and x.chip.name == current.chip), machines[0])
    loop, written = question.workload.concurrency, question.model_fields_set
    loaded = _model(_name(question.model))
    read = FitOptions(
        _name(question.model), machine, named, question.engine_version,
        weights=_single(choose.weights) or (described.weights if described else None),
        kv=_single(choose.kv) or (described.kv if described else None),
        context=longest_request(question, 0, model_sizes(loaded))[0],
        seats=question.max_num_seqs, tokens=question.max_num_batched_tokens,
        requests=None if loop is None else math.ceil(loop),
        share=question.memory_utilisation if "memory_utilisation" in written else None,
        tp=_single(choose.tp), pp=_single(choose.pp), dp=_single(choose.dp_attention),
        ep=_single(choose.ep), chips=question.chips[-1], written=("share",),
    )  # fmt: skip
    return read if current is None else _in_use(question, current, read)


def _in_use(question: Scenario, current: Current, read: FitOptions) -> FitOptions:
    """Options of the layout in use: its ways, formats, sequences, tokens of a step, share."""
    if current.prefill is not None:
        raise InputError("current: has two pools; fit asks about one: --set 'current={tp: 8}'")
    _refuse_cut_prompts(current.cp)
    copies = current.dp_attention
    ways, cut = current.tp * copies, current.tp_expert
    replicas = current.replicas or max(question.chips[-1] // (ways * current.pp), 1)
    batch = current.batch_per_replica or math.ceil((current.batch or 0) / replicas)
    seats = read.seats or math.ceil(batch / copies) or None
    answers = 0 if read.engine == "sglang" else math.ceil((seats or 0) / current.pp)
    share, notes = read.share, ["not counted: redundant experts"] * bool(current.redundant_experts)
    if read.engine == "sglang" and share is not None:
        # Its share is of the pool alone, worked out of what the layout leaves it.
        try:
            if point := current_layout(question, resolve(question).tasks):
                share = pool_share(point.memory_per_chip, chip_called(str(point.chip)))
        except InputError as error:
            notes.append(f"memory_utilisation is taken for the share of the pool: {error}")
    # Where as many are in flight as the engine lets in, they wait for a cache that is full.
    in_flight = batch if read.seats is None or batch < read.seats * copies else 0
    return replace(
        read, tp=current.tp, pp=current.pp, dp=copies, dcp=current.dcp, seats=seats, share=share,
        ep=current.ep or (ways // cut if cut else copies),
        weights=current.weights or read.weights, kv=current.kv or read.kv,
        tokens=read.tokens or (current.chunk and max(current.chunk + answers, seats or 0)),
        requests=in_flight or read.requests,
        notes=tuple(notes),
    )  # fmt: skip


def _merged(read: FitOptions, options: FitOptions) -> FitOptions:
    """Override the options of a file by those given; InputError where a launch says otherwise."""
    launched = "engine" in read.written
    pairs = {x: (getattr(options, x), getattr(read, x)) for x in read.written}
    if launched:
        pairs["model"] = _catalogued(options.model), _catalogued(read.model)
    for name, (ours, theirs) in pairs.items():
        if None not in (ours, theirs) and ours != theirs:
            words = f"the {'launch' if launched else 'scenario'} says {theirs}"
            raise InputError(
                f"--{OPTION_NAMES.get(name, name)} {ours}: {words}; leave one of them out"
            )
    if launched and (options.context or 0) > (read.context or math.inf):
        words = f"the launch lets in requests of {read.context} tokens at most"
        raise InputError(f"--context {options.context}: {words}; leave it out, or raise that")
    empty = (None, (), False, "")
    return replace(read, **{name: x for name, x in vars(options).items() if x not in empty})


def _of_launch(pool: LaunchPool) -> FitOptions:
    facts, layout = pool.facts, pool.layout
    _refuse_cut_prompts(layout.get("cp", 1))
    name = pool.launch.release.name
    notes = [f"read from a launch of {pool.launch.release.title}"]
    dropped = (*pool.launch.uncounted, *pool.launch.unknown, *facts["untaken"])
    sized = [x for x in pool.launch.options if x in pool.launch.uncounted]
    unread = [x for x in dropped if x not in (*EAGER, *sized)]
    unread += ["redundant experts"] * bool(facts.get("redundant"))
    if sized:
        notes.append(f"the cache is as large as {', '.join(sized)} says")
    if unread:
        notes.append(f"not counted: {', '.join(unread)}")
    if pool.facts.get("drafts"):
        notes.append("drafts are counted by the memory that logs show for their blocks")
    read = FitOptions(
        pool.model, engine=name, version=pool.launch.version or None, tp=layout["tp"],
        pp=layout["pp"], dp=layout["dp_attention"], ep=layout.get("ep"), dcp=layout.get("dcp"),
        weights=layout.get("weights"), kv=layout.get("kv"), share=facts.get(SHARES[name]),
        context=pool.limits.get("max_model_len"), seats=pool.limits.get("max_num_seqs"),
        tokens=pool.limits.get("max_num_batched_tokens") or layout.get("chunk"),
        eager=any(x in pool.launch.uncounted for x in EAGER), drafts=facts.get("drafts"),
        drafter="mtp" if facts.get("own_blocks") else "draft",
        cache=tuple((x, facts[x]) for x in CACHE_SIZES if x in facts), notes=tuple(notes),
    )  # fmt: skip
    ways = [name for name, words in LAYOUT_FACTS.items() if any(map(facts.get, words))]
    return replace(read, written=(*OPTIONS, *ways))


def _refuse_cut_prompts(cp: int) -> None:
    if cp > 1:
        raise InputError(f"cp {cp}: prompts that are cut over chips are read by import alone")


def _question(wanted: FitOptions) -> FitQuestion:
    """The question with everything looked up."""
    missing = [key for key in ("model", "system") if getattr(wanted, key) is None]
    if missing:
        words = " and ".join(f"--{key}" for key in missing)
        raise InputError(
            f"{words} missing: give them, such as --model llama-3.1-8b --system hgx-h100"
        )
    if wanted.share is not None and not 0 < wanted.share <= 1:
        words = "expected a share of the memory, above 0 and at most 1"
        raise InputError(f"--share {wanted.share:g}: {words}")
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
    pool = EnginePool(counted, chip, "", wanted.weights or counted.stored)
    notes += _refused(pool, Layouts.of(tp=wanted.tp or 1, dcp=wanted.dcp or 1), engine)
    if context is None:
        longest = counted.max_context or CONTEXT  # which a launch lets in, if it says nothing
        context = longest if "engine" in wanted.written else min(CONTEXT, longest)
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
        layout.tp, layout.pp, layout.dp, wanted.share, wanted.seats, wanted.tokens,
        graphs=not wanted.eager, images=bool(wanted.images), dcp=wanted.dcp or 1,
        drafts=wanted.drafter if wanted.drafts else "", drafted=wanted.drafts or 0,
    )  # fmt: skip
    question = FitQuestion(
        counted, chip_memory(chip), chip.name, engine, layout, limits, context,
        requests=math.ceil((wanted.requests or 1) / layout.dp), room=room, cache=wanted.cache,
        notes=tuple(notes),
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
        words = f"expected GiB above 0 and below {visible / GIB:.2f}, which the chip has"
        raise InputError(f"--room {size / GIB:g}: {words}")
    return size, printed


def _refused(pool: EnginePool, layout: Layouts, engine: EngineMemory) -> Iterator[str]:
    """Note what the engine lacks of a model, chip or layout; InputError at the version asked."""
    table = engine_tables()[engine.name]
    chip_rules = {name: table.rules[name] for name in CHECKED_RULES if name in table.rules}
    for what, remedy in refusals(pool, layout, replace(table, rules=chip_rules)):
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
    if catalogued := _catalogued(name):
        return models.load(catalogued)
    if Path(name).exists():
        return read_config(Path(name))
    if is_hub_name(name):
        return read_config(hub_config(name).path)
    return models.load(name)


def _catalogued(name: str | None) -> str | None:
    return name if name in models.model_names() else name and models.model_of_repository(name)


def _name(model: str | File | ModelDescription) -> str:
    """The name or the path of a scenario's model; raises InputError for one of bare numbers."""
    named = model.like if isinstance(model, ModelDescription) else model
    if named is None:
        raise InputError("model: described by numbers alone; memory needs its layers: name a model")
    return str(named.path) if isinstance(named, File) else named


def _single(values: Sequence[T] | None) -> T | None:
    return values[0] if values and len(values) == 1 else None
