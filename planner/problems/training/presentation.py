"""A training plan as lines under titles: layout, step, memory, how sure, what else."""

from collections.abc import Callable, Iterator

from planner.problems.training import plan as records
from planner.protocol.section import Line, Section, why_of
from planner.text import wording as say
from planner.text.quantities import show

CALLED = {
    "matrix": "matrix products", "attention": "attention", "element_wise": "element-wise",
    "quantisation": "quantisation", "tp": "tensor parallel, exposed",
    "cp": "context parallel, exposed", "ep": "experts' exchange, exposed",
    "pp": "pipeline hops", "launch": "launches", "head": "embedding and head",
    "bubble": "pipeline bubble", "dp_exposed": "data parallel, exposed",
    "optimizer": "optimizer", "offload_exposed": "offload, exposed", "constant": "constant",
    "dp_hidden": "data parallel, hidden",
}  # fmt: skip
PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "free")
BYTE = 1.0  # below which a part of the memory is rounding
SEEN = 1e-5  # share of a step below which a term is no line
EQUATIONS = (
    "trained_rate",
    "model_utilisation",
    "training_run_time",
    "training_token_cost",
    "training_run_cost",
)


def sections(plan: records.TrainingPlan) -> tuple[Section, ...]:
    """The answer as sections; the first has the question for a title."""
    whole, point = plan.answer, plan.answer.plan
    title = question_text(plan)
    if point is None:
        blocks = [Section(title, tuple(_missed(plan)))]
        if whole.nearest is not None:
            blocks.append(_memory(whole.nearest.plan, "memory of the nearest layout"))
        if whole.repairs:
            repairs = (Line(x.change, f"{x.choice}: {say.duration(x.step_time)} a step")
                       for x in whole.repairs)  # fmt: skip
            blocks.append(Section("single changes with which something fits", tuple(repairs)))
    else:
        # Communication that the step waits for, and that behind arithmetic, no part of the sum.
        step = point.time_per_step
        lines = [Line("exposed", step.exposed_communication, "s")]
        lines += (Line(CALLED.get(x, x), value, "s") for x, value in step.hidden.items())
        ranked = sorted(point.time_per_step.terms.items(), key=lambda pair: -pair[1])
        timed = (
            Line(CALLED.get(name, name), value, "s", say.percent(value / point.step_time, 2))
            for name, value in ranked
            if value > SEEN * point.step_time
        )
        heading = f"time of a step: {say.duration(point.step_time)}"
        blocks = [
            Section(title, tuple(_chosen(point, whole))),
            _memory(point, "memory of a chip"),
            Section(heading, tuple(timed), adds_up=True),
            Section("communication", tuple(lines)),
            Section("how sure", tuple(_sure(whole))),
        ]
        if whole.alternatives:
            others = (
                Line(
                    x.choice, f"{say.duration(x.step_time)} a step, loses {say.percent(x.loses, 3)}"
                )
                for x in whole.alternatives
            )
        blocks.append(Section("other layouts", tuple(others)))
    if whole.current is not None:
        blocks.append(Section("the layout in use", tuple(_current(whole.current))))
    return tuple(blocks)


def question_text(plan: records.TrainingPlan) -> str:
    """What was asked, in a line."""
    question, scenario = plan.question, plan.scenario
    work = question.work
    parts = [
        f"train {say.named(scenario['model'], 'model')} on "
        f"{say.chip_numbers(scenario['chips'])} of {say.named(scenario['system'], 'system')}",
        f"batch {work.sequences:,} sequences of {work.sequence:,.0f} tokens",
        question.precision,
    ]
    if work.tokens is not None:
        parts.append(f"{say.count(work.tokens)} tokens in all")
    if question.train.lora:
        parts.append(f"LoRA of rank {question.train.lora}")
    return f"{', '.join(parts)}; least {question.objective}"


def layout_text(layout: records.TrainingLayout) -> str:
    """A layout in words."""
    words = [f"{axis} {getattr(layout, axis)}" for axis in ("tp", "pp", "dp", "cp", "ep")]
    return ", ".join(words)


def _chosen(point: records.TrainingPoint, whole: records.TrainingAnswer) -> Iterator[Line]:
    """The layout, its rate, what the run takes."""
    layout, band, bound = point.layout, whole.band, whole.bound
    idle = point.chips - point.chips_used
    yield Line(
        "system",
        f"{say.chip_numbers(point.chips)} of {point.system}",
        note=f"{idle} idle" if idle else "",
    )
    yield Line("layout", layout_text(layout))
    stages = f", {layout.virtual_stages} virtual stages" if layout.virtual_stages > 1 else ""
    yield Line(
        "micro-batch", f"{say.quantity(layout.micro_batch, 'seq')}, {point.micro_batches} a replica"
    )
    yield Line("schedule", f"{layout.schedule}{stages}" if layout.pp > 1 else "no pipeline")
    sharding = f"recompute {layout.recompute}, ZeRO-{layout.zero}, offload {layout.offload}"
    flags = [
        name.replace("_", " ") for name in ("sequence_parallel", "overlap") if getattr(layout, name)
    ]
    yield Line("choices", ", ".join([sharding, *flags]))
    step_bound = bound.with_traffic if bound else None
    yield Line("step", point.step_time, "s", _ends(band.step_time if band else None, say.duration),
               band.step_time if band else None, step_bound)  # fmt: skip
    yield Line("rate", point.tokens_per_s, "token/s")
    yield Line("rate of a chip", point.tokens_per_s_per_chip, "token/(s*chip)")
    yield Line("MFU", say.percent(point.mfu, 3), note="causal half of attention")
    yield Line("HFU", say.percent(point.hfu, 3))
    yield Line("bubble", f"{say.percent(point.bubble, 2)} of the step")
    yield from _run(point, band)


def _run(point: records.TrainingPoint, band: records.RunBand | None) -> Iterator[Line]:
    """Goodput, days, money and energy."""
    if point.goodput is not None and point.checkpoint_interval is not None:
        assert point.time_between_failures is not None
        interval = show(point.checkpoint_interval, "time")
        failures = show(point.time_between_failures, "time")
        yield Line("goodput", say.percent(point.goodput, 3),
                   note=f"a failure every {failures}, a checkpoint every {interval}")  # fmt: skip
    if point.days is not None and point.usd is not None:
        ends = _ends(band.days if band else None, lambda x: f"{x:.3g}")
        yield Line("days", f"{point.days:.4g}", note=ends)
        yield Line("cost", point.usd, "USD", _ends(band.usd if band else None, say.money))
    yield Line("price", point.usd_per_mtok, "USD per million tokens")
    if point.joule_per_token is not None:
        energy, unit = point.energy or 0.0, (3.6e9, "MWh")
        unit = unit if energy >= unit[0] else (3.6e6, "kWh")
        run = f"{energy / unit[0]:.4g} {unit[1]}" if point.energy is not None else ""
        yield Line("energy", point.joule_per_token, "J/token", run)


def _ends(ends: records.Ends | None, form: Callable[[float], str]) -> str:
    """Ends of a band in words."""
    return "" if ends is None else f"{form(ends[0])} to {form(ends[1])}"


def _memory(point: records.TrainingPoint, title: str) -> Section:
    """Memory of the worst stage, by part; what is short is said in words."""
    memory = point.memory_per_chip
    stage = f"{title}, stage {memory.worst_stage} of {memory.stages}"
    lines = [
        Line(part, getattr(memory, part), "byte") for part in PARTS if getattr(memory, part) > BYTE
    ]
    if memory.free < 0:
        lines.append(Line("short", f"{show(-memory.free, 'size')} of what they need"))
    return Section(f"{stage}: {show(memory.total, 'size')}", tuple(lines), adds_up=True)


def _sure(whole: records.TrainingAnswer) -> Iterator[Line]:
    """Band, bound and certificate."""
    proof, band, bound = whole.certificate, whole.band, whole.bound
    if band is not None:
        ends = _ends(band.step_time, say.duration)
        words = f"{band.coverage:.0%} of runs so far from the fit lie within {ends}"
        yield Line("band", words, note=f"stack {band.stack}, {band.rows} rows")
    if bound is not None:
        peak, traffic = say.duration(bound.step_time), say.duration(bound.with_traffic)
        yield Line("bound", f"{peak} at peak, {traffic} with the least of every other term")
    seen, fitting = f"{proof.layouts_seen:,}", f"{proof.layouts_fitting:,}"
    yield Line("certificate", f"best of {seen} layouts, of which {fitting} fit")
    if proof.gap is not None:
        yield Line("gap to the relaxation", say.percent(proof.gap, 3))
    for limit in whole.binding:
        yield Line("binds", limit.name)


def _current(current: records.CurrentLayout) -> Iterator[Line]:
    """The layout in use beside the plan."""
    point = current.plan
    yield Line("layout", layout_text(point.layout))
    if current.short_by is not None:
        yield Line("memory", f"{show(current.short_by, 'size')} a chip are short")
    yield Line("step", point.step_time, "s", f"MFU {say.percent(point.mfu, 3)}")
    if current.saving is not None:
        yield Line("the plan saves", say.percent(current.saving, 3))


def _missed(plan: records.TrainingPlan) -> Iterator[Line]:
    """What no layout keeps."""
    for missed in plan.infeasible:
        assert missed.short_by is not None
        by = f"misses it by {say.excess(missed.short_by)}"
        yield Line(f"no layout keeps {missed.promise}", by, note=missed.expression)
    seen = plan.answer.certificate
    yield Line(
        "certificate", f"{seen.layouts_seen:,} layouts, of which {seen.layouts_fitting:,} fit"
    )


def why_text(plan: records.TrainingPlan) -> str:
    """What binds, what one percent of each quantity is worth, and the equations of the answer."""
    if plan.answer.plan is None:
        return "\n".join(line.text() for line in _missed(plan))
    from planner.problems.training.worth import equations

    lines = [why_of(plan.binding, plan.elasticities), "", "by these equations, the layout held"]
    for equation in equations(*EQUATIONS):
        lines += say.wrapped(str(equation))
    return "\n".join(lines)
