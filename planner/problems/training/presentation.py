"""A training plan in words: its head, one step and the memory of a chip as bars, what else."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from planner.catalogue.systems import System
from planner.problems.training import plan as records
from planner.problems.training.outputs import OUTPUTS
from planner.protocol.promise import chance_word
from planner.protocol.section import (
    BROKEN,
    LABEL_WIDTH,
    AnswerHead,
    Line,
    Section,
    marked,
    reasons,
    value_lines,
)
from planner.text import wording as say
from planner.text.quantities import show

# Labels of the terms of a step; a star marks time waiting for the network.
TERM_LABELS = {
    "matrix": "matrix products", "element_wise": "element-wise", "tp": "tensor parallel*",
    "cp": "context parallel*", "ep": "expert exchange*", "pp": "pipeline hops*",
    "launch": "kernel launches", "head": "embedding, head", "bubble": "pipeline idle",
    "dp_exposed": "data parallel*", "offload_exposed": "offload", "constant": "fixed cost",
}  # fmt: skip
MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "free")
BYTE = 1.0  # below which a part of the memory is rounding
MIN_SHOWN_SHARE, FOLDED = 1e-5, 0.03  # of a step: below it a term is no line, or one with others
BAR = 8  # columns of the longest bar
NUMBER_NAMES = {"usd": "cost", "usd_per_mtok": "price", "mfu": "MFU", "hfu": "HFU",
           "bubble": "pipeline idle", "goodput": "useful time"}  # fmt: skip
SCOPE_LEVELS = {"chip": "EXTRAPOLATED", "precision": "data sheets only"}
GOAL_WORDS = {"time": "take least time", "cost": "cost least", "energy": "take least energy"}
ROW_FORMATS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "step_time": ("Step", say.duration),
    "mfu": ("MFU", lambda share: f"{say.three_digits(100 * share)}%"),
    "tokens_per_s": ("Tokens/s", say.three_figures),
    "tokens_per_s_per_chip": ("  per chip", say.three_figures),
    "goodput": ("Useful time", lambda share: f"{say.three_digits(100 * share)}%"),
}  # fmt: skip
EQUATIONS = ("trained_rate", "model_utilisation", "training_run_time", "training_token_cost",
             "training_run_cost")  # fmt: skip


def head(plan: records.TrainingPlan) -> AnswerHead:
    """Head: layout, days and cost, limits, certainty; the nearest layout if infeasible."""
    whole, point, question = plan.answer, plan.answer.plan, plan.question
    if point is None:
        return _no_plan(plan)
    cost = f"{say.duration(point.step_time)} a step ({_ends(plan, 'step_time', say.duration)})"
    if point.days is not None and point.usd is not None:
        days = f"{say.three_digits(point.days)} days ({_ends(plan, 'days', say.three_digits)})"
        cost = f"{days} · {say.usd_text(point.usd)} ({_ends(plan, 'usd', say.usd_text)})"
    if question.objective == "energy" and point.joule_per_token is not None:
        cost += f" · {say.three_digits(point.joule_per_token)} J/token"
    bound = f"lower bound {say.gap_percent(whole.certificate.gap or 0.0)} below"
    proof = f"best of all {whole.certificate.layouts_fitting:,} layouts that fit; {bound}"
    least, most = min(question.chips), max(question.chips)
    smaller = f"not tried (one number): --set chips='[{most // 2}, {most}]'"
    if least < most:
        best = f"{point.chips:,} {GOAL_WORDS[question.objective]}"
        smaller = f"tried: of {len(question.chips)} numbers, {least:,}–{most:,} chips, {best}"
    several = isinstance(question.system, tuple)
    chips = [f"on {point.chips:,} {point.system if several else 'chips'}"]
    tried = f"planner sweep FILE --over chips={max(most // 4, 1)},{most} --out sweep.csv"
    bound_to = question.current is not None and question.current.dp  # current dp fixes the chips
    run = (f"{point.layout.text}×{point.micro_batches}", *chips * (several or least < most))
    return AnswerHead(
        question_text(plan), run=run, against=tuple(_current(plan)),
        cost=(f"{cost} · ${say.three_digits(point.usd_per_mtok)}/Mtok",),
        promises=tuple(_limits(plan)) or ("none asked (limits.days, limits.usd would be)",),
        smaller=(smaller if most > 1 else "no: it is one chip",), certainty=(_certainty(whole),),
        limit=(_binding(plan, point.memory_per_chip),),
        proof=say.label_row("Proof", proof, LABEL_WIDTH),
        next=("--more, --why" if bound_to else tried,),
    )  # fmt: skip


def question_text(plan: records.TrainingPlan) -> str:
    """Text of the training question in one line."""
    question, work = plan.question, plan.question.work
    tokens = f"{say.count(work.tokens)} tokens" if work.tokens is not None else "steps"
    lora = f", LoRA of rank {question.train.lora}" if question.train.lora else ""
    return (
        f"Train {say.reference_text(plan.scenario['model'], 'model')} on {_chips(plan)}: "
        f"{tokens} in "
        f"{question.precision}, batch of {work.sequences:,} × {work.sequence:,.0f} tokens{lora}; "
        f"least {question.objective}"
    )


def _chips(plan: records.TrainingPlan) -> str:
    systems = (each for each in plan.question.systems() if isinstance(each, System))
    return " or ".join(system.counted(plan.question.chips) for system in systems)


def _ends(plan: records.TrainingPlan, name: str, form: Callable[[float], str]) -> str:
    ends = getattr(plan.band, name, None)
    return say.joined_ends(*map(form, ends)) if ends else ""


def _current(plan: records.TrainingPlan) -> Iterator[str]:
    """Text that compares the layout in use with the plan."""
    if (current := plan.answer.current) is None:
        return
    step = f"{current.plan.layout.degrees}: {say.duration(current.plan.step_time)} a step"
    if current.short_by is not None:
        yield f"{BROKEN} {step}, {show(current.short_by, 'size')} of memory short"
    elif current.saving is not None:
        less = say.percent(current.saving)
        yield f"{step}; the plan takes {less} less {plan.question.objective}"


def _limits(plan: records.TrainingPlan) -> Iterator[str]:
    for name, limit in plan.question.limits:
        if limit is not None:
            value = getattr(plan.answer.plan, name)
            chance = plan.answer.chance(name, value, limit, rises=False)
            words = f"{name.replace('usd', 'USD')} {say.three_digits(value)} ≤ {limit:,g}"
            yield marked(words, chance_word(chance, within=value <= limit), chance)


def _certainty(whole: records.TrainingAnswer) -> str:
    if whole.outside:
        new = whole.outside[0]
        return f"{SCOPE_LEVELS[new.what]}: {new.words}"
    error = whole.band.median_error if whole.band else None
    median = "" if error is None else f"; median error {say.percent(error)}"
    return f"within measurements{median}"


def _binding(plan: records.TrainingPlan, memory: records.MemoryPerChip) -> str:
    names = [limit.name.removeprefix("limits.") for limit in plan.binding]
    if not names:
        return f"none reached; nearest is memory, {1 - memory.free / memory.total:.0%} used"
    free = f": {show(max(memory.free, 0.0), 'size')} of {show(memory.total, 'size')} free"
    return f"{' and '.join(names)} bind{'s' * (len(names) == 1)}{free * ('memory' in names)}"


def _no_plan(plan: records.TrainingPlan) -> AnswerHead:
    """Head of an infeasible answer: missed limits, nearest layout, cause, single-change repairs."""
    whole, why = plan.answer, "memory is not short, the limits of the run are"
    work = f"{say.reference_text(plan.scenario['model'], 'model')} in {plan.question.precision}"
    if whole.nearest is not None:
        memory, lacks = whole.nearest.plan.memory_per_chip, "does not fit"
        size, part = max((getattr(memory, name), name) for name in MEMORY_PARTS[:-1])
        why = f"{part} alone take{'s' * (part[-1] != 's')} {show(size, 'size')} of each chip"
    else:
        lacks = f"cannot keep {' and '.join(each.promise for each in plan.infeasible)} on"
    chosen = any(value is not None for _, value in plan.question.choose)
    fixes = [f"--set {each.change}: {say.duration(each.step_time)} a step, "
             f"${say.three_digits(each.usd_per_mtok)}/Mtok" for each in whole.repairs]  # fmt: skip
    first = [f"planner solve FILE --set {each.change}" for each in whole.repairs[:1]]
    return AnswerHead(
        f"{BROKEN} NO PLAN: {work} {lacks} {_chips(plan)}{' with these choices' * chosen}",
        run=tuple(each.expression for each in plan.infeasible), cost=(why,),
        against=tuple(_current(plan)), certainty=(_certainty(whole),),
        smaller=("one change at a time, each solved:", *fixes) if fixes else ("none was found",),
        next=tuple(first or ["--why"]), labels={"run": "Closest", "cost": "Why", "smaller": "Fix"},
    )  # fmt: skip


def sections(plan: records.TrainingPlan) -> tuple[Section, ...]:
    """The answer as sections; the first has the question for a title."""
    whole, point, title = plan.answer, plan.answer.plan, question_text(plan)
    if point is None:
        near = whole.nearest
        return (Section(title), *([_memory(near.plan)] if near else []))
    step = point.time_per_step
    ranked = sorted(step.terms.items(), key=lambda pair: -pair[1])
    terms = [Line(TERM_LABELS.get(name, name), value, "s") for name, value in ranked
             if value > MIN_SHOWN_SHARE * point.step_time]  # fmt: skip
    hidden = Line("hidden behind work", say.duration(step.hidden_communication))
    others = tuple(Line(x.choice, f"{say.duration(x.step_time)} a step", "",
                        f"{say.percent(x.loses)} more {plan.question.objective}")
                   for x in whole.alternatives)  # fmt: skip
    timed, memory = Section("One step", (*terms, hidden), adds_up=True), _memory(point)
    chosen = (Line(name.replace("_", " "), str(x)) for name, x in vars(point.layout).items())
    numbers = Section(title, (*value_lines(OUTPUTS, plan, **NUMBER_NAMES), *chosen))
    runners_up = [Section("Runners-up", others)] if others else []
    return (numbers, _expected(plan), _bars(point, timed, memory), timed, memory, *runners_up)


def _expected(plan: records.TrainingPlan) -> Section:
    """Table of the outputs with their error bands and the lower bound of the hardware."""
    least = {"step_time": plan.answer.bound.step_time} if plan.answer.bound else {}
    cells = tuple(
        (label, form(value), _ends(plan, name, form), form(least[name]) if name in least else "")
        for name, (label, form) in ROW_FORMATS.items()
        if (value := getattr(plan.answer.plan, name)) is not None
    )
    heads = ("", "expected", "80% range", "hardware limit")
    return Section("", heads=heads, cells=cells, shown=True)


def _bars(point: records.TrainingPoint, step: Section, memory: Section) -> Section:
    """Table with a step in one half and a chip's memory in the other; small parts are combined."""
    waits, room = point.time_per_step.exposed_communication, point.memory_per_chip
    stage = f"stage {room.worst_stage} of {room.stages}" if room.stages > 1 else "of a chip"
    waiting = f"*waits {say.duration(waits)}" if waits else "share"
    step_heads = ("One step", say.duration(point.step_time), waiting)
    heads = (*step_heads, "Memory", show(room.total, "size"), stage)
    rows = zip_longest(_parts(step.parts), _parts(memory.parts), fillvalue=("", "", ""))
    return Section("", heads=heads, cells=tuple((*a, *b) for a, b in rows), shown=True,
                   halves=True)  # fmt: skip


def _parts(parts: Sequence[tuple[Line, float]]) -> list[tuple[str, str, str]]:
    """Parts of a whole as name, value, and share with a bar."""
    whole = sum(value for _, value in parts)
    small = [x for x in parts if x[1] < FOLDED * whole and x[0].label != "free"]
    if len(small) > 1:
        rest = sum(value for _, value in small)
        folded = Line(f"other ({len(small)})", rest, small[0][0].unit)
        parts = [*(x for x in parts if x not in small), (folded, rest)]
    scale = BAR / max(value for _, value in parts)
    return [(line.label, line.words, f"{value / whole:4.0%} {'█' * max(1, round(scale * value))}")
            for line, value in parts]  # fmt: skip


def _memory(point: records.TrainingPoint) -> Section:
    memory = point.memory_per_chip
    ranked = sorted(MEMORY_PARTS[:-1], key=lambda part: -getattr(memory, part))
    lines = (Line(part, getattr(memory, part), "byte") for part in (*ranked, *MEMORY_PARTS[-1:])
             if getattr(memory, part) > BYTE)  # fmt: skip
    title = f"Memory of a chip, stage {memory.worst_stage} of {memory.stages}"
    return Section(title, tuple(lines), adds_up=True)


def explanation_text(plan: records.TrainingPlan) -> str:
    """Text of the binding limits, the elasticities and the equations of the answer."""
    if plan.answer.plan is None:
        return "\n".join(f"{each.promise}: {each.expression}" for each in plan.infeasible)
    from planner.problems.training.worth import equations

    lines = [reasons(plan.binding, plan.elasticities), "", "by these equations, the layout held"]
    for equation in equations(*EQUATIONS):
        lines += say.wrapped(str(equation))
    return "\n".join(lines)
