"""A plan on a terminal: the answer first, then what it rests on; never wider than 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from planner.problems.serving.alternatives_text import (
    PROMISED,
    alternatives,
    other_kinds,
    relaxed,
    switch_points,
    systems,
)
from planner.text.quantities import show
from planner.text.wording import (
    LABEL,
    WIDTH,
    duration,
    excess,
    formats,
    laid_out,
    length,
    named,
    numbers,
    row,
    size,
    unused,
    wrapped,
)

if TYPE_CHECKING:
    from planner.problems.serving.plan import ServingPlan

BAR = 24


def answer(plan: ServingPlan) -> str:
    """The whole answer as lines of at most 80 columns."""
    document = plan.document
    blocks = [
        question(document),
        _chosen(document) if plan.chosen else shortfall(document),
        _current(document),
        alternatives(document),
        other_kinds(document),
        _grounds(document),
    ]
    return "\n\n".join(block for block in blocks if block)


def why(plan: ServingPlan) -> str:
    """What binds, what a percent of each quantity is worth, and the closed form it comes from."""
    if not plan.chosen:
        return shortfall(plan.document)
    if not plan.elasticities:
        return "Why this plan\n" + "\n".join(wrapped("; ".join(plan.warnings)))
    lines = ["Why this plan"]
    for limit in plan.binding:
        lines += wrapped(
            f"binds: {limit.name}; one percent more room changes the objective by "
            f"{limit.elasticity:+.2f} %"
        )
    if not plan.binding:
        lines += wrapped("no promise binds: the price has its minimum inside the limits")
    sides = getattr(plan, "layout_held", {})
    title = "One percent more of     changes the objective by"
    lines += ["", title, *_resized(plan.document, both=bool(sides))]
    ranked = sorted(plan.elasticities.items(), key=lambda pair: -abs(pair[1]))
    lines += [f"  {name:<28} {value:+.3f} %{_beside(sides.get(name))}" for name, value in ranked]
    lines += ["", *switch_points(plan)]
    lines += ["", "Closed form on the active constraints", *_closed_form(plan)]
    return "\n".join(lines)


def _beside(sides: tuple[float, float] | None) -> str:
    """An elasticity with the layout held, beside one where everything follows; both at a kink."""
    if sides is None:
        return ""
    left, right = (f"{side + 0.0:+.3f} %" for side in sides)
    return f"  ({right})" if left == right else f"  ({left} | {right})"


def question(document: Mapping[str, Any], aim: str | None = None) -> str:
    """What was asked, in a sentence; `aim` instead of the scenario's objective."""
    scenario = document["scenario"]
    load = scenario["workload"]
    model, system = named(scenario["model"], "model"), named(scenario["system"], "system")
    promises = [
        f"{name} {show(v, 'time')}"
        for name, v in scenario["promises"].items()
        if v and name != "tokens_per_s_per_user"
    ]
    if scenario["promises"].get("tokens_per_s_per_user"):
        promises.append(f"{scenario['promises']['tokens_per_s_per_user']:g} tokens/s per user")
    best = "most" if scenario["objective"] == "throughput" else "least"
    aim = aim or f"{best} {scenario['objective']}"
    keeps = "keeping " + ", ".join(promises) if promises else "with no promise"
    tokens = f"{length(load['input_tokens'])} tokens in, {length(load['output_tokens'])} out"
    arriving = f", {_arriving(load['demand'])}" if load["demand"] else ""
    return textwrap.fill(
        f"{model} on {numbers(scenario['chips'])} chips of {system}: {tokens}{arriving}, {keeps}; "
        f"{aim}",
        WIDTH,
    )


def _arriving(demand: float | str) -> str:
    """A demand in words: requests per second unless it says what else."""
    if demand == "max":
        return "as many as can be served"
    rate = demand if isinstance(demand, str) else f"{demand:g} requests/s"
    return f"arriving at {rate}"


def _chosen(document: Mapping[str, Any]) -> str:
    plan, band, bound = document["plan"], document["band"], document["bound"]
    lines = _pools(plan) if plan["mode"] == "disaggregated" else _pool(plan)
    lines += systems(document)
    rows = [
        ("price", "usd_per_mtok", lambda v: f"${v:.3g}/Mtok", "input and output together"),
        ("  output", "usd_per_mtok_output", lambda v: f"${v:.3g}/Mtok", ""),
        ("  input", "usd_per_mtok_input", lambda v: f"${v:.3g}/Mtok", ""),
        ("TPOT", "tpot", duration, ""),
        ("TTFT", "ttft", duration, "waiting included" if plan["demand"] else "without queueing"),
        ("throughput", "tokens_per_s", lambda v: f"{v:,.0f} tok/s", ""),
        ("per chip", "tokens_per_s_per_chip", lambda v: f"{v:,.0f} tok/s", ""),
        ("bill", "usd_per_hour", lambda v: f"${v:,.2f}/hour", _power(plan)),
    ]
    for label, key, form, note in rows:
        if plan.get(key) is None:
            continue
        span = band.get(key) if band else None
        ends = f"{form(span[0])} to {form(span[1])}" if span else note
        floor = bound.get(key)
        least = f"bound {form(floor)}" if floor is not None else ""
        lines.append(f"{label:<{LABEL}}{form(plan[key]):<16} {ends:<28} {least}".rstrip())
    if band:
        lines.append(
            row("", f"ranges hold {band['coverage']:.0%} of measured runs (profile {band['from']})")
        )
    elif document["estimate"]:
        lines.append(_expected(document["estimate"]))
    if plan["demand"]:
        lines += ["", *_demand(plan["demand"])]
    return "\n".join(lines) + "\n\n" + _shares(plan)


def _pool(plan: Mapping[str, Any]) -> list[str]:
    return [
        row("run", laid_out(plan)),
        row("on", f"{plan['chips']} {plan['chip']}{unused(plan)}, {formats(plan)}"),
        row("batch", f"{plan['batch']} in flight, {plan['batch_per_replica']} per replica"),
    ]


def _pools(plan: Mapping[str, Any]) -> list[str]:
    """Two pools and the way of the caches between them."""
    lines = []
    for name in ("prefill", "decode"):
        pool, layout = plan[name], laid_out(plan[name])
        lines.append(row(name, f"{layout} on {pool['chips']} {pool['chip']}{unused(pool)}, "
                          f"{pool['utilisation']:.0%} busy"))  # fmt: skip
    batch, moved = plan["decode"]["batch_per_replica"], plan["transfer"]
    transfer = (
        f"{size(moved['bytes'])} of cache per prompt in {duration(moved['seconds'])}, "
        f"{show(moved['bytes_per_s'], 'bandwidth')} in all"
    )
    return [
        *lines,
        row("formats", formats(plan)),
        row("batch", f"{plan['batch']} decoding, up to {batch} per replica"),
        row("transfer", transfer),
    ]


def _demand(load: Mapping[str, Any]) -> list[str]:
    """How the plan bears its arrivals."""
    lines = [
        row("demand", f"{load['requests_per_s']:.3g} requests/s; {load['in_flight']:.0f} in flight "
             "on average, those that wait included")
    ]  # fmt: skip
    if load["decoding_per_replica"]:
        lines.append(
            row("room", f"a replica decodes {load['decoding_per_replica']:.0f} on average; memory "
                 f"holds {load['room_per_replica']:,}, too few {load['crowded']:.1%} of the time")
        )  # fmt: skip
    if load["spare_replicas"]:
        lines.append(row("spare", f"times hold with {load['spare_replicas']} of the replicas down"))
    if load["wait"] is not None:
        lines.append(
            row("queue", f"{duration(load['wait'])} on average before prefill, which "
                 f"is busy {load['readers_busy']:.0%} of the time; TTFT is below "
                 f"{duration(load['ttft_p95'])} for 95% of the requests, below "
                 f"{duration(load['ttft_p99'])} for 99%")
        )  # fmt: skip
    return lines


def _power(plan: Mapping[str, Any]) -> str:
    power = plan["power_usd_per_hour"]
    return f"${power:,.2f} of it for power" if power else ""


def _expected(estimate: Mapping[str, Any]) -> str:
    """What the profile expects of a plan that was chosen on the bound."""
    times = [f"{k.upper()} {duration(estimate[k])}" for k in ("tpot", "ttft") if estimate[k]]
    return row("to expect", f"${estimate['usd_per_mtok']:.3g}/Mtok, {', '.join(times)}")


def _shares(plan: Mapping[str, Any]) -> str:
    blocks = []
    parts = plan["time_per_step"]
    if parts:
        whole = sum(parts.values())
        blocks.append(_bars(f"one step {duration(whole)}", parts, whole, duration))
    for name in ("prefill", "decode") if plan["mode"] == "disaggregated" else ("",):
        memory = dict((plan[name] if name else plan)["memory_per_chip"])
        capacity = memory.pop("capacity")
        title = f"memory per chip{f' that {name}s' if name else ''} {show(capacity, 'size')}"
        blocks.append(_bars(title, memory, capacity, size))
    if not plan["fits_at_full_context"]:
        blocks[-1] += "\n  at mean context; with every sequence at its full one it would not fit"
    return "\n\n".join(blocks)


def _bars(title: str, parts: Mapping[str, float], whole: float, form: Any) -> str:
    lines = [title]
    for name, value in parts.items():
        if value <= 0:
            continue
        bar = "█" * max(1, round(BAR * value / whole))
        lines.append(f"  {name:<12}{form(value):>10}  {value / whole:4.0%}  {bar}")
    return "\n".join(lines)


def shortfall(document: Mapping[str, Any]) -> str:
    """Which promises fall short, and by how much."""
    lines = ["No plan keeps every promise. The nearest one"]
    for missed in document["infeasible"]:
        if missed["promise"] == "demand":
            lines = ["These chips do not carry the load within the promises."]
            lines += wrapped(
                f"misses demand by {excess(missed['short_by'])}: "
                f"{100 / missed['short_by']:.3g} % of it can be served"
            )
            continue
        lines += wrapped(
            f"misses {PROMISED.get(missed['promise'], missed['promise'])} by "
            f"{excess(missed['short_by'])}   ({missed['expression']})"
        )
    return "\n".join([*lines, *relaxed(document)])


def _current(document: Mapping[str, Any]) -> str:
    mine = document["current"]
    if not mine:
        return ""
    lines = ["your layout", row("  run", laid_out(mine)), row("  batch", str(mine["batch"]))]
    lines.append(row("  price", f"${mine['usd_per_mtok']:.3g}/Mtok"))
    times = [f"{k.upper()} {duration(mine[k])}" for k in ("ttft", "tpot") if mine[k] is not None]
    lines.append(row("  times", ", ".join(times)))
    for broken in mine["breaks"]:
        name = PROMISED.get(broken["promise"], broken["promise"])
        lines.append(row("  misses", f"{name} by {excess(broken['short_by'])}"))
    return "\n".join(lines)


def _grounds(document: Mapping[str, Any]) -> str:
    proof, ground = document["certificate"], document["provenance"]
    lines = [
        f"decided over {proof['layouts_considered']:,} layouts and "
        f"{proof['points_considered']:,} points"
    ]
    if proof["gap"] is not None:
        lines[0] += (
            f", none of them better; a bound found by other means lies "
            f"{100 * proof['gap']:.2g} % below"
        )
    lines.append(
        f"assumptions {ground['assumptions']}, estimate {ground['estimate']}, "
        f"token-planner {ground['version']}"
    )
    for source in ground["data"]:
        date = f" ({source['as_of']})" if source["as_of"] else ""
        lines.append(f"{source['what']}: {source['source']}{date}")
    wrapped = (textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines)
    return "\n".join(wrapped)


def _resized(document: Mapping[str, Any], *, both: bool) -> list[str]:
    """What follows a change, where more does than the batch of a pool."""
    if document["plan"]["mode"] == "disaggregated":
        follows = "both pools resized to stay in balance"
    elif document["scenario"]["workload"]["demand"] not in (None, "max"):
        follows = "as many chips as then carry the load"
    else:
        return []
    return wrapped(f"(everything follows: {follows}{'; in brackets: layout held' if both else ''})")


def _closed_form(plan: ServingPlan) -> Iterable[str]:
    """The equations behind the objective and the promise that binds, as they stand."""
    from planner.problems.serving.closed_form import closed_form

    document = plan.document
    chosen, demand = document["plan"], document["scenario"]["workload"]["demand"]
    equations = closed_form(
        chosen["mode"],
        bound=document["provenance"]["estimate"] == "bound",
        load="none" if demand is None else "most" if demand == "max" else "given",
        tpot=any("tpot" in each.name for each in plan.binding),
    )
    for equation in equations:
        yield from wrapped(str(equation))
