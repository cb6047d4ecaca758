"""What is wrong with a layout, or with the values that choices are limited to, each by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

from planner.catalogue.training.training_stacks import training_stack, training_stack_names
from planner.problems.training.layout_lattice import ModelDivisions, divisors, lattice
from planner.problems.training.question import TrainingChoose, TrainingQuestion

Fault = tuple[str, str]  # key and words
MANY = 8  # divisors that are listed


def layout_faults(of: ModelDivisions, layout: Mapping[str, int | str]) -> Iterator[Fault]:
    """What of one layout does not go together: the key at fault, and why.

    `layout` has the words of the scenario: tp, pp, dp, cp, ep, tp_expert, micro_batch,
    virtual_stages, schedule, recompute, zero.
    """
    whole = {key: int(value) for key, value in layout.items() if isinstance(value, int)}
    single = [words for key, value in whole.items() for words in _single(of, key, value)]
    yield from single
    if not single:
        yield from _joint(of, whole)
    yield from _staged(of, whole, str(layout["schedule"]))
    if layout["recompute"] == "reversible" and not of.reversible:
        yield "recompute", "the model is not declared so; give reversible: true"


def choose_faults(of: ModelDivisions, choose: TrainingChoose) -> Iterator[Fault]:
    """Choices all of whose values are wrong, each with what is wrong with the first of them."""
    values: dict[str, list[int]] = {
        key: [*chosen]
        for key, chosen in choose
        if chosen is not None and type(next(iter(chosen))) is int
    }
    wrong = set()
    for key, chosen in values.items():
        faults = [list(_single(of, key, value)) for value in chosen]
        if all(faults):
            wrong.add(key)
            yield faults[0][0]
    if {"dp", "micro_batch"} <= values.keys() and not wrong & {"dp", "micro_batch"}:
        pairs = [*product(values["dp"], values["micro_batch"])]
        if all(of.batch % (dp * micro) for dp, micro in pairs):
            yield "micro_batch", _undivided(of, *pairs[0])
    pp = values.get("pp", [1, of.layers])
    virtual, schedules = values.get("virtual_stages", [1]), choose.schedule or ("interleaved",)
    if min(virtual) > 1 and (max(pp) == 1 or "interleaved" not in schedules):
        yield "virtual_stages", _no_stages(min(virtual), max(pp))
    zero = values.get("zero", [0])
    if min(zero) > of.deepest_zero and min(pp) > 1:
        yield "zero", _sharded(of, min(zero), min(pp))
    if schedules == ("interleaved",) and choose.schedule and max(pp) == 1:
        yield "schedule", "interleaving needs a pipeline, but choose.pp is 1"


def _single(of: ModelDivisions, key: str, value: int) -> Iterator[Fault]:
    """What is wrong with one number by itself."""
    check = _CHECKS.get(key)
    words = check(of, value) if check else None
    if words:
        yield key, words


def _heads(of: ModelDivisions, tp: int) -> str | None:
    if of.heads % tp:
        return f"{of.heads} heads are not divisible by {tp}; tp may be {_listed(of.heads)}"
    return None


def _stages(of: ModelDivisions, pp: int) -> str | None:
    return f"{pp} stages, but the model has {of.layers} layers" if pp > of.layers else None


def _along(of: ModelDivisions, cp: int) -> str | None:
    if cp > of.sequence:
        return f"cp {cp} is longer than the sequence of {of.sequence:,} tokens"
    if of.sequence % cp:
        return f"{of.sequence:,} tokens of a sequence are not divisible by cp {cp}"
    return None


def _experts(of: ModelDivisions, ep: int) -> str | None:
    if ep > 1 and not of.experts:
        return f"the model is dense: it has no experts for ep {ep}; leave ep out"
    if of.experts % ep:
        return f"{of.experts} experts are not divisible by {ep}; ep may be {_listed(of.experts)}"
    return None


def _replicas(of: ModelDivisions, dp: int) -> str | None:
    if of.batch % dp:
        return (
            f"a batch of {of.batch:,} sequences is not divisible by dp {dp}; "
            f"dp may be {_listed(of.batch)}"
        )
    return None


def _micro(of: ModelDivisions, micro: int) -> str | None:
    return _undivided(of, 1, micro) if of.batch % micro else None


_CHECKS: Mapping[str, Callable[[ModelDivisions, int], str | None]] = {
    "tp": _heads, "pp": _stages, "cp": _along, "ep": _experts, "dp": _replicas,
    "micro_batch": _micro,
}  # fmt: skip


def _joint(of: ModelDivisions, layout: Mapping[str, int]) -> Iterator[Fault]:
    """What is wrong with numbers together."""
    dp, micro = layout["dp"], layout["micro_batch"]
    if of.batch % (dp * micro):
        yield "micro_batch", _undivided(of, dp, micro)
    ranks = layout["tp"] * layout["cp"] * dp
    experts = layout["ep"] * layout["tp_expert"]
    if of.experts and ranks % experts:
        yield (
            "ep",
            (
                f"ep {layout['ep']} * tp_expert {layout['tp_expert']} does not divide "
                f"tp * cp * dp = {ranks}"
            ),
        )
    if layout["zero"] > of.deepest_zero and layout["pp"] > 1:
        yield "zero", _sharded(of, layout["zero"], layout["pp"])


def _staged(of: ModelDivisions, layout: Mapping[str, int], schedule: str) -> Iterator[Fault]:
    """What is wrong with a schedule."""
    pp, v = layout["pp"], layout["virtual_stages"]
    if v > 1 and (pp == 1 or schedule != "interleaved"):
        yield "virtual_stages", _no_stages(v, pp)
    n_micro = of.batch // (layout["dp"] * layout["micro_batch"])
    if schedule == "zero-bubble" and 0 < n_micro < pp:
        yield "schedule", f"zero-bubble needs pp {pp} micro-batches at least, but has {n_micro}"
    if schedule != "interleaved":
        return
    if pp == 1:
        yield "schedule", "interleaving needs a pipeline, but pp is 1"
        return
    if not of.cuts(pp * v):
        yield "virtual_stages", f"{of.layers} layers are not divisible by pp {pp} * {v}"
    if n_micro % pp:
        yield (
            "micro_batch",
            (f"{n_micro} micro-batches are no multiple of pp {pp}, which interleaving needs"),
        )


def _undivided(of: ModelDivisions, dp: int, micro: int) -> str:
    return (
        f"a batch of {of.batch:,} sequences is not divisible by dp {dp} * micro_batch {micro} "
        f"= {dp * micro}"
    )


def _no_stages(virtual: int, pp: int) -> str:
    reason = "without a pipeline" if pp == 1 else "with another schedule than interleaved"
    return f"{virtual} virtual stages {reason}; give pp above 1 and schedule: interleaved, or 1"


def _sharded(of: ModelDivisions, zero: int, pp: int) -> str:
    stacks = [name for name in training_stack_names() if training_stack(name).zero_pipeline]
    return (
        f"the stack has no ZeRO-{zero} under a pipeline of {pp} stages; at most "
        f"{of.deepest_zero}, or pp: 1, or profile: {' or '.join(stacks)}"
    )


def _listed(number: int) -> str:
    """Divisors in words."""
    every = divisors(number)
    return ", ".join(map(str, every[:MANY])) + (", ..." if len(every) > MANY else "")


def why_empty(of: ModelDivisions, question: TrainingQuestion) -> Fault:
    """Why no layout uses these chips, or fewer, though each choice by itself could."""
    choose, chips = question.choose, max(question.chips)
    least = math.prod(min(getattr(choose, key) or (1,)) for key in ("tp", "cp", "pp", "dp"))
    if least > chips:
        return "chips", f"the choices need {least} chips at least, but chips is {chips}"
    fixed = [key for key, value in choose if value is not None]
    free = [key for key in fixed if lattice(of, choose.model_copy(update={key: None}), chips)]
    if "schedule" in free and choose.schedule == ("interleaved",):
        return "choose.schedule", (
            f"interleaving needs layers that pp * virtual_stages divides (of {of.layers}), and "
            f"micro-batches (of {of.batch:,} sequences / dp / micro_batch) that are a multiple "
            "of pp; no layout of these choices has both"
        )
    names = ", ".join(f"choose.{key}" for key in free or fixed)
    repair = f"; one of {names} left free would do" if free else f" and {names} as written"
    return "chips", (
        f"no layout uses {chips} chips, or fewer, with {of.heads} heads, {of.layers} layers and a "
        f"batch of {of.batch:,} sequences{repair}"
    )
