"""A plan on a terminal: the answer first, then what it rests on; never wider than 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from planner.quantities import show

if TYPE_CHECKING:
    from planner.plan import Plan

__all__ = ["answer", "why"]

WIDTH = 78
LABEL = 14
BAR = 24


def answer(plan: Plan) -> str:
    """The whole answer as lines of at most 80 columns."""
    document = plan.document
    blocks = [
        _question(document),
        _chosen(document) if plan.chosen else _shortfall(document),
        _current(document),
        _alternatives(document),
        _grounds(document),
    ]
    return "\n\n".join(block for block in blocks if block)


def why(plan: Plan) -> str:
    """What binds, what a percent of each quantity is worth, and the closed form it comes from."""
    if not plan.chosen:
        return _shortfall(plan.document)
    if not plan.elasticities:
        return "Why this plan\n" + "\n".join(_wrapped("; ".join(plan.warnings)))
    lines = ["Why this plan"]
    for each in plan.binding:
        lines += _wrapped(
            f"binds: {each['name']}; one percent more room changes the objective by "
            f"{each['elasticity']:+.2f} %"
        )
    if not plan.binding:
        lines += _wrapped("no promise binds: the price has its minimum inside the limits")
    lines += ["", "One percent more of     changes the objective by"]
    ranked = sorted(plan.elasticities.items(), key=lambda pair: -abs(pair[1]))
    lines += [f"  {name:<28} {value:+.3f} %" for name, value in ranked]
    lines += ["", "Closed form on the active constraints", *_closed_form(plan)]
    return "\n".join(lines)


def _question(document: Mapping[str, Any]) -> str:
    asked = document["scenario"]
    load = asked["workload"]
    model, system = _named(asked["model"], "model"), _named(asked["system"], "system")
    promises = [
        f"{name} {show(v, 'time')}"
        for name, v in asked["promises"].items()
        if v and name != "tokens_per_s_per_user"
    ]
    if asked["promises"].get("tokens_per_s_per_user"):
        promises.append(f"{asked['promises']['tokens_per_s_per_user']:g} tokens/s per user")
    best = "most" if asked["objective"] == "throughput" else "least"
    kept = "keeping " + ", ".join(promises) if promises else "with no promise"
    return textwrap.fill(
        f"{model} on {_numbers(asked['chips'])} chips of {system}: "
        f"{_length(load['input_tokens'])} tokens in, {_length(load['output_tokens'])} out, {kept}; "
        f"{best} {asked['objective']}",
        WIDTH,
    )


def _chosen(document: Mapping[str, Any]) -> str:
    plan, band, bound = document["plan"], document["band"], document["bound"]
    lines = _pools(plan) if plan["mode"] == "disaggregated" else _pool(plan)
    rows = [
        ("price", "usd_per_mtok", lambda v: f"${v:.3g}/Mtok", "input and output together"),
        ("  output", "usd_per_mtok_output", lambda v: f"${v:.3g}/Mtok", ""),
        ("  input", "usd_per_mtok_input", lambda v: f"${v:.3g}/Mtok", ""),
        ("TPOT", "tpot", _time, ""),
        ("TTFT", "ttft", _time, "waiting included" if plan["demand"] else "without queueing"),
        ("throughput", "tokens_per_s", lambda v: f"{v:,.0f} tokens/s", ""),
        ("per chip", "tokens_per_s_per_chip", lambda v: f"{v:,.0f} tokens/s", ""),
        ("bill", "usd_per_hour", lambda v: f"${v:,.2f}/hour", ""),
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
            _row(
                "", f"ranges hold {band['coverage']:.0%} of measured runs (profile {band['from']})"
            )
        )
    elif document["estimate"]:
        lines.append(_expected(document["estimate"]))
    if plan["demand"]:
        lines += ["", *_demand(plan["demand"])]
    return "\n".join(lines) + "\n\n" + _shares(plan)


def _pool(plan: Mapping[str, Any]) -> list[str]:
    return [
        _row("run", _layout(plan)),
        _row("on", f"{plan['chips']} {plan['chip']}{_idle(plan)}, {_formats(plan)}"),
        _row("batch", f"{plan['batch']} in flight, {plan['batch_per_replica']} per replica"),
    ]


def _pools(plan: Mapping[str, Any]) -> list[str]:
    """Two pools and the way of the caches between them."""
    lines = []
    for name in ("prefill", "decode"):
        pool, layout = plan[name], _layout(plan[name])
        lines.append(_row(name, f"{layout} on {pool['chips']} {pool['chip']}{_idle(pool)}, "
                          f"{pool['utilisation']:.0%} busy"))  # fmt: skip
    each, moved = plan["decode"]["batch_per_replica"], plan["transfer"]
    way = (
        f"{_size(moved['bytes'])} of cache per prompt in {_time(moved['seconds'])}, "
        f"{show(moved['bytes_per_s'], 'bandwidth')} in all"
    )
    return [
        *lines,
        _row("formats", _formats(plan)),
        _row("batch", f"{plan['batch']} decoding, up to {each} per replica"),
        _row("transfer", way),
    ]


def _demand(load: Mapping[str, Any]) -> list[str]:
    """How the plan bears its arrivals."""
    lines = [
        _row("demand", f"{load['requests_per_s']:.3g} requests/s; {load['in_flight']:.0f} requests "
             f"in flight, {load['slots']} slots")
    ]  # fmt: skip
    if load["spare_replicas"]:
        lines.append(_row("", f"times hold with {load['spare_replicas']} spare down"))
    if load["wait"] is not None:
        lines.append(
            _row("queue", f"prompts wait {_time(load['wait'])}, readers are busy "
                 f"{load['readers_busy']:.0%} of the time; TTFT of 95 % is below "
                 f"{_time(load['ttft_p95'])}, of 99 % below {_time(load['ttft_p99'])}")
        )  # fmt: skip
    return lines


def _expected(estimate: Mapping[str, Any]) -> str:
    """What the profile expects of a plan that was chosen on the bound."""
    times = [f"{k.upper()} {_time(estimate[k])}" for k in ("tpot", "ttft") if estimate[k]]
    return _row("to expect", f"${estimate['usd_per_mtok']:.3g}/Mtok, {', '.join(times)}")


def _shares(plan: Mapping[str, Any]) -> str:
    blocks = []
    parts = plan["time_per_step"]
    if parts:
        whole = sum(parts.values())
        blocks.append(_bars(f"one step {_time(whole)}", parts, whole, _time))
    for name in ("prefill", "decode") if plan["mode"] == "disaggregated" else ("",):
        memory = dict((plan[name] if name else plan)["memory_per_chip"])
        capacity = memory.pop("capacity")
        title = f"memory per chip{f' that {name}s' if name else ''} {show(capacity, 'size')}"
        blocks.append(_bars(title, memory, capacity, _size))
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


def _shortfall(document: Mapping[str, Any]) -> str:
    lines = ["No plan keeps every promise. The nearest one would need"]
    for each in document["infeasible"]:
        lines += _wrapped(
            f"{each['promise']}: short by a factor of {each['short_by']:.3g}   "
            f"({each['expression']})"
        )
    return "\n".join(lines)


def _current(document: Mapping[str, Any]) -> str:
    mine = document["current"]
    if not mine:
        return ""
    lines = ["your layout", _row("  run", _layout(mine)), _row("  batch", str(mine["batch"]))]
    lines.append(_row("  price", f"${mine['usd_per_mtok']:.3g}/Mtok"))
    times = [f"{k.upper()} {_time(mine[k])}" for k in ("ttft", "tpot") if mine[k] is not None]
    lines.append(_row("  times", ", ".join(times)))
    for broken in mine["breaks"]:
        text = f"{broken['promise']} by a factor of {broken['short_by']:.3g}"
        lines.append(_row("  breaks", text))
    return "\n".join(lines)


def _alternatives(document: Mapping[str, Any]) -> str:
    others = document["alternatives"]
    if not others:
        return ""
    lines = ["next best, of other layouts"]
    for plan in others:
        tpot = f", TPOT {_time(plan['tpot'])}" if plan["tpot"] is not None else ""
        price = f"${plan['usd_per_mtok']:.4g}/Mtok"
        lines.append(f"  {price:<16}{_layout(plan)}, batch {plan['batch']}{tpot}")
    return "\n".join(lines)


def _grounds(document: Mapping[str, Any]) -> str:
    proof, ground = document["certificate"], document["provenance"]
    lines = [
        f"decided over {proof['layouts_considered']:,} layouts and "
        f"{proof['points_considered']:,} points"
    ]
    if proof["gap"] is not None:
        lines[0] += f"; no plan of the model is more than {100 * proof['gap']:.2g} % better"
    lines.append(
        f"assumptions {ground['assumptions']}, estimate {ground['estimate']}, "
        f"token-planner {ground['version']}"
    )
    for each in ground["data"]:
        date = f" ({each['as_of']})" if each["as_of"] else ""
        lines.append(f"{each['what']}: {each['source']}{date}")
    wrapped = (textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines)
    return "\n".join(wrapped)


def _closed_form(plan: Plan) -> Iterable[str]:
    """The equations behind the objective and the promise that binds, as they stand."""
    from formulas.decode import decode_time
    from formulas.serving import mixed_price, slot_time, time_per_output_token

    equations = [mixed_price, slot_time, decode_time]
    if any("tpot" in each["name"] for each in plan.binding):
        equations.insert(0, time_per_output_token)
    for equation in equations:
        yield from _wrapped(str(equation))


def _idle(plan: Mapping[str, Any]) -> str:
    idle = plan["chips"] - plan["chips_used"]
    return f" ({idle} of them idle)" if idle else ""


def _formats(plan: Mapping[str, Any]) -> str:
    return f"weights {plan['weights']}, KV cache {plan['kv']}"


def _layout(plan: Mapping[str, Any]) -> str:
    layout = plan["layout"]
    if layout is None:
        return f"prefill {_layout(plan['prefill'])}, decode {_layout(plan['decode'])}"
    words = [f"tp {layout['tp']}"]
    words += [
        f"{label} {layout[key]}"
        for key, label in (
            ("pp", "pp"),
            ("dp_attention", "dp attention"),
            ("ep", "ep"),
            ("tp_expert", "expert tp"),
        )
        if layout[key] > 1
    ]
    times = f"{layout['replicas']} x " if layout["replicas"] > 1 else ""
    return f"{times}({', '.join(words)})"


def _named(value: Any, kind: str) -> str:
    """A model or system as it was named; a list by its names, a description by what it varies."""
    if isinstance(value, list):
        return " or ".join(_named(each, kind) for each in value)
    if isinstance(value, Mapping):
        return f"{value['like']} (varied)" if value.get("like") else f"a described {kind}"
    return str(value)


def _numbers(chips: Any) -> str:
    if isinstance(chips, Mapping):
        return f"{chips['from']} to {chips['to']}"
    return ", ".join(map(str, chips)) if isinstance(chips, list) else str(chips)


def _length(value: Any) -> str:
    return f"{value['mean']:g} (mean)" if isinstance(value, Mapping) else f"{value:g}"


def _row(label: str, text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=f"{label:<{LABEL}}", subsequent_indent=" " * LABEL
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _time(value: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.2g} s" if math.isfinite(value) else "never"


def _size(value: float) -> str:
    return show(value, "size")
