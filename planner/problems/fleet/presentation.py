"""A fleet on a terminal: the bill, machines by contract, models, hours, what else it could cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from planner.text import wording as say

if TYPE_CHECKING:
    from planner.problems.fleet.plan import FleetAnswer, FleetPlan, FleetPoint
    from planner.protocol.section import Section
    from planner.report.pictures.section_bars import StackedHours

BARS = " ▁▂▃▄▅▆▇█"
WIDEST = 56  # signs of a line of hours
NAMES = 20
BESIDE = "what one freedom less, or one rule less, would cost"
WORTH = "what more of it costs"


def answer(plan: FleetPlan) -> str:
    """The whole answer as lines of at most 80 columns."""
    whole, point = plan.answer, plan.answer.plan
    if point is None:
        return "\n\n".join(["\n".join(_question(plan)), "\n".join(_missed(whole))])
    blocks = (
        _question(plan), [say.row(*pair) for pair in _bill(plan, point)], _models(point),
        _moved(point), _hours(plan, point), _beside(whole), _sure(whole),
        _measured_next(whole), _proof(whole),
    )  # fmt: skip
    return "\n\n".join(text for block in blocks if (text := "\n".join(block)))


def summary(plan: FleetPlan) -> str:
    """Machines and the bill."""
    point = plan.answer.plan
    assert point is not None
    reserved = sum(point.reserved.values())
    return f"{reserved} machines reserved, {say.money(point.usd_per_hour)}/hour"


def why(plan: FleetPlan) -> str:
    """What binds, and the dearest and cheapest hours of each model."""
    whole = plan.answer
    lines = ["binds"]
    lines += [f"  {limit.name} ({limit.elasticity:+.3f})" for limit in whole.binding] or [
        "  no contract is at its limit"
    ]
    if whole.prices is None:
        return "\n".join(lines)
    lines += ["", f"{WORTH} ({whole.prices.source})"]
    lines += [f"  {name:<{NAMES}} {words}" for name, words in _worth(plan)]
    return "\n".join(lines)


def _worth(plan: FleetPlan) -> Iterator[tuple[str, str]]:
    """What a request/s, spare, headroom and one more reserved machine are worth: name and words."""
    prices = plan.answer.prices
    assert prices is not None
    for name, row in prices.request.items():
        low, high = min(row), max(row)
        least, most = (f"{say.money(x)} in hour {row.index(x)}" for x in (low, high))
        yield name, f"a request/s {least} to {most}"
        if name in prices.spare:
            yield "", f"one more spare replica {say.money(prices.spare[name])}/hour"
    if plan.question.spare.headroom:
        yield "headroom", f"a hundredth more {say.money(prices.headroom)}/hour"
    for name, saved in prices.reserved.items():
        if saved > 0:
            yield name, f"one more reserved machine saves {say.money(saved)}/hour"


def sections(plan: FleetPlan) -> tuple[Section, ...]:
    """The answer as sections under what was asked."""
    from planner.protocol.section import Line, Section

    def lines(pairs: Iterable[tuple[str, str]]) -> tuple[Line, ...]:
        return tuple(Line(name.strip(), words) for name, words in pairs)

    whole, point, title = plan.answer, plan.answer.plan, " ".join(_question(plan))
    if point is None:
        return (Section(title, lines((m.promise, m.expression) for m in whole.infeasible or ())),)
    bills = tuple(
        Line(
            name, bill.usd_per_hour, "USD/hour",
            ", ".join(f"{c} {max(row)}" for c, row in point.replicas[name].items()),
        )
        for name, bill in point.per_model.items()
    )  # fmt: skip
    hours = ((name, f"{min(row)} to {max(row)} machines")
             for name, row in sorted(_lines(plan, point)) if any(row))  # fmt: skip
    sure = list(_sure(whole))
    rest = (
        Section("bill of each model, with its replicas at most", bills, adds_up=True),
        Section("machines by hour", lines(hours)),
        Section(BESIDE, lines(_restricted(whole))),
        Section(f"{WORTH}, {whole.prices.source}" if whole.prices else "", lines(_worth(plan))),
        Section(sure[0] if sure else "", lines(("", each.strip()) for each in sure[1:])),
    )
    return (Section(title, lines(_bill(plan, point))), *(each for each in rest if each.lines))


def picture(plan: FleetPlan) -> StackedHours:
    """Machines by pool and contract over the hours, with every model's demand above."""
    from planner.problems.fleet.resolve import demands
    from planner.report.pictures.section_bars import StackedHours

    question, point = plan.question, plan.answer.plan
    assert point is not None
    hours = question.hours
    return StackedHours(
        f"{summary(plan)} (mean of {hours} hours)",
        "demand [requests/s]",
        demands(question),
        "machines",
        {
            pool: {
                "owned": [question.have.get(name, 0)] * hours,
                "reserved": [point.reserved[pool]] * hours,
                "on demand": point.on_demand[pool],
                "spot": point.spot[pool],
            }
            for pool, (name, _) in question.placed_pools.items()
        },
    )


def _question(plan: FleetPlan) -> list[str]:
    question = plan.question
    spare = question.spare
    notes = [f"N+{spare.replicas}"] if spare.replicas else ["no spare replica"]
    notes.append(f"{say.percent(spare.headroom)} headroom" if spare.headroom else "no headroom")
    notes += ["layouts free"] if question.layouts == "free" else []
    models, pools = len(question.models), len(question.pools)
    if question.regions:
        notes.insert(0, f"demand from {', '.join(question.regions)}")
    return say.filled(
        f"{models} model{'s' * (models > 1)} on {pools} kind{'s' * (pools > 1)} of machine over "
        f"{question.hours} hours; {', '.join(notes)}; least cost"
    )


def _bill(plan: FleetPlan, point: FleetPoint) -> Iterator[tuple[str, str]]:
    """What is paid and under which contracts: labels and words."""
    yield ("bill", f"{say.money(point.usd_per_hour)}/hour, "
                  f"{say.money(point.usd_per_day)}/day (mean), "
                  f"{say.money(point.usd_per_month)}/month")  # fmt: skip
    added = plan.question.have
    if added:
        owned = ", ".join(f"{count} {name}" for name, count in added.items())
        yield ("  have", f"{owned}; below is what to add")
    bought = [
        f"{count} machine{'s' * (count > 1)} of {name}"
        for name, count in point.reserved.items()
        if count
    ]
    yield ("  reserved", ", ".join(bought) or "none")
    for label, table in (("  on demand", point.on_demand), ("  spot", point.spot)):
        parts = [
            f"{name} up to {max(row)} (mean {sum(row) / len(row):.3g})"
            for name, row in table.items()
            if any(row)
        ]
        yield (label, ", ".join(parts) or "none")
    used = [f"{name} {say.percent(share, 3)}" for name, share in point.utilisation.items()]
    yield ("chips in use", ", ".join(used))
    if point.served is not None:
        share = say.percent(point.served, 3)
        yield ("served", f"{share} of hours and models, with the spot machines that are lost")


def _models(point: FleetPoint) -> Iterator[str]:
    yield f"{'model':<{NAMES}} {'share':>6} {'$/hour':>9} {'$/Mtok':>8}  replicas, at most"
    for name, bill in point.per_model.items():
        price = "-" if bill.usd_per_mtok is None else f"{bill.usd_per_mtok:.3g}"
        columns = ", ".join(f"{c} {max(row)}" for c, row in point.replicas[name].items())
        head = (
            f"{name:<{NAMES}} {say.percent(bill.share_of_bill):>6} {bill.usd_per_hour:>9.4g} "
            f"{price:>8}  "
        )
        yield from (
            say.filled(head + columns) if len(head + columns) > say.WIDTH else [head + columns]
        )


def _moved(point: FleetPoint) -> Iterator[str]:
    """Requests that move, or whose cache does: their share, and the hour in which they are most."""
    if point.served_in:
        yield "requests that are served in another region, or by two pools"
    for origin, sites in point.served_in.items():
        total = sum(sum(row) for row in sites.values())
        for site, row in sites.items():
            if site != origin:
                yield from say.filled(
                    f"  {origin:<{NAMES}} {say.percent(sum(row) / total, 3)} as {site}, at most "
                    f"{max(row):.3g} requests/s in hour {row.index(max(row))}"
                )


def _hours(plan: FleetPlan, point: FleetPoint) -> Iterator[str]:
    hours = plan.question.hours
    step = -(-hours // WIDEST)
    yield f"by hour{f', {step} hours a sign' if step > 1 else ''} (least to most)"
    for name, row in sorted(_lines(plan, point)):
        if any(row):
            shown = [max(row[t : t + step]) for t in range(0, hours, step)]
            yield f"  {name:<{NAMES}} {_sparks(shown)} {min(row)} to {max(row)}"


def _lines(plan: FleetPlan, point: FleetPoint) -> Iterator[tuple[str, Sequence[int]]]:
    """Machines of each pool and contract over the hours."""
    placed = plan.question.placed_pools
    for pool, row in point.on_demand.items():
        firm = point.reserved[pool] + plan.question.have.get(placed[pool][0], 0)
        yield f"{pool} firm", [firm + each for each in row]
    for pool, row in point.spot.items():
        yield f"{pool} spot", row


def _sparks(values: Sequence[int]) -> str:
    most = max(values) or 1
    return "".join(BARS[round(each / most * (len(BARS) - 1))] for each in values)


def _beside(whole: FleetAnswer) -> Iterator[str]:
    if whole.beside:
        yield BESIDE
    yield from (f"  {name:<{NAMES}} {words}" for name, words in _restricted(whole))


def _restricted(whole: FleetAnswer) -> Iterator[tuple[str, str]]:
    """What each freedom or rule less would cost: its name and words."""
    for row in whole.beside:
        words = "no plan"
        if row.usd_per_hour is not None and row.more is not None:
            words = f"{say.money(row.usd_per_hour)}/hour, {say.increase(row.more)}"
        yield row.restriction, words


def _sure(whole: FleetAnswer) -> Iterator[str]:
    if whole.robust is None:
        return
    sure = whole.robust
    yield (
        f"keeps all promises in {say.percent(sure.keeps, 3)} of draws it did not see "
        f"({say.percent(sure.chance, 3)} asked)"
    )
    for name, margin in sure.margins.items():
        yield (
            f"  {name:<{NAMES}} {say.increase(margin - 1)} capacity; knowing its speed would save "
            f"{say.money(sure.measured[name])}/hour"
        )
    levels = [f"{say.percent(x.chance)} {say.money(x.usd_per_hour)}" for x in sure.curve]
    yield from say.filled(f"  what chances cost at least, per hour: {', '.join(levels)}")
    if sure.runs:
        yield f"  one benchmark run would save ({sure.outcomes} outcomes; standard deviations)"
    for run in sure.runs:
        yield from say.filled(
            f"    {run.model} on {run.pool} {say.money(run.usd_per_hour)}/hour, its speed known to "
            f"{say.percent(run.after)} instead of {say.percent(run.before)}"
        )


def _measured_next(whole: FleetAnswer) -> Iterator[str]:
    """The run that saves most as it is typed, and where a scenario names the profile."""
    runs = whole.robust.runs if whole.robust else ()
    for run in [run for run in runs if run.commands][:1]:
        yield f"the run to measure first, of one replica {run.column}:"
        yield from map(say.typed, run.commands)
        yield f"  then models.{run.model}.profiles: {{{run.pool}: own.toml}}"


def _proof(whole: FleetAnswer) -> Iterator[str]:
    proof = whole.certificate
    assert proof.relaxation is not None
    assert proof.gap is not None
    priced = ""
    if proof.priced is not None:
        priced = (
            f"; the relaxation's duals ask for none of {proof.priced.layouts:,} layouts more "
            f"(rounds {proof.priced.rounds}, columns added {proof.priced.added})"
        )
    yield from say.filled(
        f"{whole.status}: no plan is below {say.money(proof.relaxation)}/hour, "
        f"{say.below(proof.gap)} under this one; {proof.columns} columns, {proof.nodes:,} nodes; "
        f"{proof.method}{priced}"
    )


def _missed(whole: FleetAnswer) -> Iterator[str]:
    yield "No fleet does that."
    for missed in whole.infeasible or ():
        yield from say.filled(f"  {missed.promise}: {missed.expression}")
