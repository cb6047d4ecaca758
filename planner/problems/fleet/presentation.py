"""A fleet for the reader: what to buy, the bill, hours, models, and what else it could cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planner.protocol.plan import OPTIMALITY_GAP
from planner.protocol.section import KEPT, LIKELY, AnswerHead, Line, Section, no_plan, table
from planner.text import wording as say

if TYPE_CHECKING:
    from planner.problems.fleet.plan import FleetAnswer, FleetPlan, FleetPoint
    from planner.report.pictures.section_bars import StackedHours

BARS = "\u00a0▁▂▃▄▅▆▇█"  # a page would take common spaces together
MAX_WIDTH, TITLE = (42, 27)  # columns: maximum width of the hours, and width of their labels
DAY, HOURS_MARKED = 24, 48  # hours per day; longest plan with single hours marked [hours]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MAX_NAMES = 3  # names that are spelled out
SAVES = -0.01  # relative change of the bill; a larger saving is reported
LOOSE_GAP = 0.1  # gap to a bound that says little
RULES = {"without headroom": "headroom", "without N+": "spare", "without spare": "both"}


def head(plan: FleetPlan) -> AnswerHead:
    """Summary of an answer: machines to buy, bill, demand served, and cost of the rules."""
    whole, point, title = plan.answer, plan.answer.plan, _question(plan)
    if point is None:
        return no_plan(title, plan.infeasible, "Fix")
    planned = any(each.certificate for each in whole.columns)
    repeats, gap = plan.question.hours in (DAY, 7 * DAY), whole.gap or 0.0
    rates = "demand, prices; rates by the serving planner" if planned else "rates, demand, prices"
    return AnswerHead(
        title,
        run=tuple(_bought(plan, point)),
        cost=(f"{say.usd_text(point.usd_per_hour)}/hour · ${point.usd_per_day:,.0f}/day · "
              f"${point.usd_per_month:,.0f}/month",),
        promises=tuple(_promises(whole, point)),
        smaller=(_cheaper(whole, point),),
        certainty=(f"given: {rates}",),
        limit=(_limit(whole, point),),
        next=(f"planner {'export FILE --engine kubernetes' if repeats else 'sensitivity FILE'}",),
        labels={"run": "Buy", "smaller": "Cheaper"},
        proof="Proven: no plan that keeps every rule costs less" if gap <= OPTIMALITY_GAP else
              f"Within {say.gap_percent(gap)} of the best possible (proven)" if gap < LOOSE_GAP else
              f"Lower bound {say.gap_percent(gap)} below (loose)",
    )  # fmt: skip


def explanation_text(plan: FleetPlan) -> str:
    """Return the binding contracts, and the dearest and cheapest hours of each model."""
    binds = [f"  {x.name}: {x.elasticity:+.3f}" for x in plan.binding]
    worth, none = _worth(plan), ["  no contract is at its limit"]
    priced = ["", worth.title, *(f"  {line.text()}" for line in worth.lines)] if worth.lines else []
    return "\n".join(["binds", *(binds or none), *priced])


def _worth(plan: FleetPlan) -> Section:
    """Marginal prices of a request/s, a spare replica, headroom and a reserved machine."""
    prices, lines = plan.answer.prices, list[Line]()
    if prices is None:
        return Section("")
    for name, row in prices.request.items():
        least, most = (f"{say.usd_text(x)} in hour {row.index(x)}" for x in (min(row), max(row)))
        lines.append(Line(name, f"a request/s {least} to {most}"))
    lines += [Line(name, f"one more spare replica {say.usd_text(usd)}/hour")
              for name, usd in prices.spare.items()]  # fmt: skip
    if plan.question.spare.headroom:
        lines.append(Line("headroom", f"1 point more {say.usd_text(prices.headroom)}/hour"))
    lines += [Line(name, f"one more reserved machine saves {say.usd_text(saved)}/hour")
              for name, saved in prices.reserved.items() if saved > 0]  # fmt: skip
    return Section(f"what more of it costs ({prices.source})", tuple(lines))


def sections(plan: FleetPlan) -> tuple[Section, ...]:
    """The bill, hours and models as tables, then what else it could cost and how that is known."""
    whole, point, title = plan.answer, plan.answer.plan, _question(plan)
    if point is None:
        return (Section(title, tuple(Line(x.promise, x.expression) for x in plan.infeasible)),)
    bills = (("bill", point.usd_per_hour, "USD/hour"), ("a day", point.usd_per_day, "USD"),
             ("a month", point.usd_per_month, "USD"))  # fmt: skip
    costs = [x.usd_per_hour for x in whole.beside]
    restricted = {
        "One freedom or rule less": [x.restriction for x in whole.beside],
        "$/hour": ["no plan" if x is None else say.usd_text(x) for x in costs],
        "change": ["" if x.more is None else say.increase(x.more) for x in whole.beside],
    }
    rest = (
        _hours(plan, point), _models(point), table(restricted, shown=False), _worth(plan),
        Section("requests served elsewhere, or by two pools", tuple(_moved(point))),
        Section("as sure as asked", tuple(_sure(whole))), *_measured_next(whole),
        Section("proof", tuple(_method(whole))),
    )  # fmt: skip
    first = Section(title, (*(Line(*each) for each in bills), *_contracts(plan, point)))
    return (first, *(each for each in rest if each.lines or each.cells))


def picture(plan: FleetPlan) -> StackedHours:
    """Machines by pool and contract over the hours, with every model's demand above."""
    from planner.problems.fleet.resolve import demands
    from planner.report.pictures.section_bars import StackedHours

    question, point = plan.question, plan.answer.plan
    assert point is not None
    hours = question.hours
    return StackedHours(
        f"{plan.summary()} (mean of {hours} hours)",
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


def _question(plan: FleetPlan) -> str:
    question = plan.question
    spare, pools, models = question.spare, [*question.pools], [*question.models]
    several = f"{spare.replicas} spare replica{'s' * (spare.replicas > 1)} each"
    notes = [several if spare.replicas else "no spare replica"]
    notes.append(f"{say.percent(spare.headroom)} headroom" if spare.headroom else "no headroom")
    notes += ["layouts free"] if question.layouts == "free" else []
    if question.regions:
        notes.insert(0, f"demand from {', '.join(question.regions)}")
    named = f" ({', '.join(models)})" if len(models) <= MAX_NAMES else ""
    kinds = " and ".join(pools) if len(pools) <= MAX_NAMES else f"{len(pools)} kinds of machine"
    return (
        f"Fleet for {len(models)} model{'s' * (len(models) > 1)}{named} over {question.hours} "
        f"hours on {kinds}; {', '.join(notes)}; least cost"
    )


def _bought(plan: FleetPlan, point: FleetPoint) -> Iterator[str]:
    parts = {line.label: line.words for line in _contracts(plan, point)}
    owned = f"{parts['have']} in hand; " if "have" in parts else ""
    yield f"{owned}{parts['reserved']} reserved"
    rest = [f"{name}: {parts[name]}" for name in ("on demand", "spot") if parts[name] != "none"]
    if rest:
        yield f"+ {'; '.join(rest)}"


def _contracts(plan: FleetPlan, point: FleetPoint) -> Iterator[Line]:
    """Yield machines owned, reserved, on demand and on spot, and the utilisation of chips."""
    if added := plan.question.have:
        yield Line("have", ", ".join(f"{count} {name}" for name, count in added.items()))
    bought = [f"{count} {name}" for name, count in point.reserved.items() if count]
    yield Line("reserved", ", ".join(bought) or "none")
    for label, rows in (("on demand", point.on_demand), ("spot", point.spot)):
        words = [f"{min(row)}–{max(row)} {name}" for name, row in rows.items() if any(row)]
        yield Line(label, ", ".join(words) or "none")
    used = [f"{name} {say.percent(share, 3)}" for name, share in point.utilisation.items()]
    yield Line("chips busy", ", ".join(used))


def _promises(whole: FleetAnswer, point: FleetPoint) -> Iterator[str]:
    lost = ""
    if point.served is not None:
        lost = f"   {LIKELY} {say.percent(point.served, 3)} of hours if every spot machine is lost"
    yield f"{KEPT} all demand served{lost}"
    if sure := whole.robust:
        wanted = f"{say.percent(sure.chance, 3)} asked"
        yield f"{KEPT} kept in {say.percent(sure.keeps, 3)} of fresh simulations ({wanted})"


def _cheaper(whole: FleetAnswer, point: FleetPoint) -> str:
    for row in whole.beside:
        if row.restriction == "layouts free" and row.more is not None and row.more < SAVES:
            bill = f"{say.usd_text(row.usd_per_hour or 0.0)}/hour"
            return f"--set layouts=free: {bill} ({say.increase(row.more)})"
    saves = round(point.usd_per_hour - (whole.certificate.relaxation or 0.0), 9) + 0.0
    less = f"{say.usd_text(saves)}/hour ({say.percent(whole.gap or 0.0)})"
    return f"no: what keeps every rule saves at most {less}"


def _limit(whole: FleetAnswer, point: FleetPoint) -> str:
    """Cost of the rules, all of them and one point more, and the contracts at their limit."""
    costs = list[str]()
    for name, words in RULES.items():
        bills = [x.usd_per_hour for x in whole.beside if x.restriction.startswith(name)]
        if bills and bills[0] is not None:
            usd = round(point.usd_per_hour - bills[0], 9) + 0.0  # one bill may differ by rounding
            hour, share = "" if costs else "/hour", say.percent(usd / (point.usd_per_hour or 1.0))
            costs.append(f"{words} {say.usd_text(usd)}{hour} ({share})")
    more = whole.prices.headroom if whole.prices else 0.0
    if more and any(x.restriction == "without headroom" for x in whole.beside):
        costs.append(f"1 point of headroom {say.usd_text(more)}")
    full = [f"{each.name} used up" for each in whole.binding]
    return ", ".join([*costs, *full]) or "none: no spare, no headroom, no full contract"


def _models(point: FleetPoint) -> Section:
    """The bill of each model, and its replicas at most."""
    bills = point.per_model
    columns = {
        "Model": [*bills],
        "$/hour": [say.three_digits(x.usd_per_hour) for x in bills.values()],
        "share": [f"{x.share_of_bill:.0%}" for x in bills.values()],
        "$/Mtok": [say.three_digits(x.usd_per_mtok or 0.0) * bool(x.usd_per_mtok)
                   for x in bills.values()],
        "most replicas at once": [
            say.trim(", ".join(f"{x}: {max(y)}" for x, y in replicas.items()), MAX_WIDTH)
            for replicas in map(point.replicas.__getitem__, bills)
        ],
    }  # fmt: skip
    lines = [Line(name, bill.usd_per_hour, "USD/hour") for name, bill in bills.items()]
    return table(columns, lines=lines, adds_up=True)


def _hours(plan: FleetPlan, point: FleetPoint) -> Section:
    """Machines of each pool over the hours: ends, mean, and a sign for the most of some hours."""
    hours = plan.question.hours
    room = min(MAX_WIDTH, say.COLUMNS.get() - TITLE)
    step = next((x for x in (1, 2, 3, 4, 6, 8, 12, 24) if hours / x <= room), -(-hours // room))
    used = {name: row for name, row in _lines(plan, point) if any(row)}
    names = sorted(used, key=lambda name: -max(used[name]))
    rows = [used[name] for name in names]
    return table({
        "Machines": names, "min": [f"{min(row)}" for row in rows],
        "max": [f"{max(row)}" for row in rows],
        "mean": [say.three_digits(sum(row) / hours) for row in rows],
        _axis(hours, step): [
            _sparks([max(row[t : t + step]) for t in range(0, hours, step)]) for row in rows
        ],
    })  # fmt: skip


def _axis(hours: int, step: int) -> str:
    line, every = "", 6 if hours <= HOURS_MARKED else DAY
    for hour in range(0, hours + (every == 6), every):
        if len(line) <= hour // step:
            mark = f"{hour}h" if every == 6 else DAYS[hour // DAY % 7]
            line = f"{line:<{hour // step}}{mark} "
    return line.rstrip()


def _lines(plan: FleetPlan, point: FleetPoint) -> Iterator[tuple[str, Sequence[int]]]:
    placed = plan.question.placed_pools
    for pool, row in point.on_demand.items():
        firm = point.reserved[pool] + plan.question.have.get(placed[pool][0], 0)
        yield f"{pool} firm", [firm + each for each in row]
    for pool, row in point.spot.items():
        yield f"{pool} spot", row


def _sparks(values: Sequence[int]) -> str:
    most = max(values) or 1
    return "".join(BARS[round(each / most * (len(BARS) - 1))] for each in values)


def _moved(point: FleetPoint) -> Iterator[Line]:
    for origin, sites in point.served_in.items():
        total = sum(sum(row) for row in sites.values())
        for site, row in sites.items():
            if site != origin:
                most = f"at most {max(row):.3g} requests/s in hour {row.index(max(row))}"
                yield Line(origin, f"{say.percent(sum(row) / total, 3)} as {site}, {most}")


def _sure(whole: FleetAnswer) -> Iterator[Line]:
    """Yield each model's margin, the cost of chances, and the savings by benchmark runs."""
    sure = whole.robust
    if sure is None:
        return
    for name, margin in sure.margins.items():
        saving = f"knowing its speed would save {say.usd_text(sure.measured[name])}/hour"
        yield Line(name, f"{say.increase(margin - 1)} capacity; {saving}")
    levels = [f"{say.percent(x.chance)} {say.usd_text(x.usd_per_hour)}" for x in sure.curve]
    yield Line("chances cost at least, per hour", ", ".join(levels))
    for run in sure.runs:
        speed = f"its speed known to {say.percent(run.after)} instead of {say.percent(run.before)}"
        saved = f"worth measuring: saves about {say.usd_text(run.usd_per_hour)}/hour, {speed}"
        yield Line(f"{run.model} on {run.pool}", saved)


def _measured_next(whole: FleetAnswer) -> Iterator[Section]:
    runs = whole.robust.runs if whole.robust else ()
    for run in [run for run in runs if run.commands][:1]:
        title = f"the run to measure first, of one replica {run.column}"
        typed = tuple(Line("", each) for each in run.commands)
        after = f"models.{run.model}.profiles: {{{run.pool}: own.toml}}"
        yield Section(title, (*typed, Line("", f"# then {after}")), commands=True)


def _method(whole: FleetAnswer) -> Iterator[Line]:
    proof = whole.certificate
    yield Line("no plan is below", proof.relaxation, "USD/hour")
    yield Line("search", f"{proof.columns} columns, {proof.nodes:,} nodes; {proof.method}")
    if priced := proof.priced:
        rounds = f"rounds {priced.rounds}, columns added {priced.added}"
        words = f"duals ask for none of {priced.layouts:,} layouts more ({rounds})"
        yield Line("relaxation", words)
