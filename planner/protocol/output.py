"""What an answer says, by the names that are asked for, in base units."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from planner.text.errors import InputError, did_you_mean, quoted

__all__ = ["NAMED", "UNITS", "chosen", "output_named", "values_of"]

SERVING = (
    "usd_per_mtok", "usd_per_mtok_input", "usd_per_mtok_output", "usd_per_hour", "ttft", "tpot",
    "e2e", "tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user", "requests_per_s",
    "joule_per_token", "batch",
)  # fmt: skip
LIFE = (
    "cost.total.usd", "cost.total.flop", "cost.pretrain.usd", "cost.inference.usd", "n_active",
    "n_total", "tokens.pretrain", "tokens.rl", "over_training", "tokens_per_parameter", "loss",
    "usd_per_mtok",
)  # fmt: skip
# What people call an output, by problem.
NAMED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "serving": {
            "cost": "usd_per_mtok", "price": "usd_per_mtok", "throughput": "tokens_per_s",
            "latency": "e2e", "speed": "tokens_per_s_per_user", "energy": "joule_per_token",
        },
        "budget": {
            "cost": "cost.total", "tokens": "tokens.pretrain", "size": "n_active",
            "parameters": "n_active",
        },
        "lifecycle": {
            "cost": "cost.total.usd", "tokens": "tokens.pretrain", "size": "n_active",
            "parameters": "n_active", "price": "usd_per_mtok",
        },
    }
)  # fmt: skip
UNITS: Mapping[str, str] = MappingProxyType(
    {
        "usd_per_mtok": "USD per million tokens",
        "usd_per_mtok_input": "USD per million input tokens",
        "usd_per_mtok_output": "USD per million output tokens",
        "usd_per_hour": "USD/hour",
        "ttft": "s", "tpot": "s", "e2e": "s",
        "tokens_per_s": "token/s", "tokens_per_s_per_chip": "token/(s*chip)",
        "tokens_per_s_per_user": "token/s", "requests_per_s": "seq/s", "batch": "seq",
        "joule_per_token": "J/token",
        "cost.total.usd": "USD", "cost.total.flop": "flop", "cost.pretrain.usd": "USD",
        "cost.inference.usd": "USD", "n_active": "param", "n_total": "param",
        "tokens.pretrain": "token", "tokens.rl": "token", "over_training": "1",
        "tokens_per_parameter": "token/param", "loss": "nat",
    }
)  # fmt: skip


def output_named(problem: str, name: str, *, in_usd: bool = True) -> str:
    """The output that a name means in a problem; `in_usd` says which cost of a budget it is.

    Raises
    ------
    InputError
        If there is none, with the nearest.
    """
    found = NAMED[problem].get(name, name)
    if found == "cost.total":
        found = "cost.total.usd" if in_usd else "cost.total.flop"
    known = SERVING if problem == "serving" else LIFE
    if found not in known:
        names = [*NAMED[problem], *known]
        hint = did_you_mean(name, names) or f" (known: {', '.join(names)})"
        raise InputError(f"--of: a {problem} answer has no {quoted(name)}{hint}")
    return found


def values_of(problem: str, plan: Mapping[str, Any]) -> dict[str, float]:
    """The outputs that a plan has, those without a value left out."""
    names = SERVING if problem == "serving" else LIFE
    found = {}
    for name in names:
        value: Any = plan
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None and name == "usd_per_mtok" and isinstance(plan.get("serving"), Mapping):
            value = plan["serving"].get("usd_per_mtok")
        if value is not None:
            found[name] = float(value)
    return found


def chosen(problem: str, plan: Mapping[str, Any]) -> str:
    """The discrete choices of a plan in short words: what changes when another is best."""
    from planner.text.words import laid_out

    if problem != "serving":
        parts = [f"sparsity {plan['sparsity']:g}"]
        if isinstance(plan.get("serving"), Mapping):
            parts.append(chosen("serving", plan["serving"]))
        return ", ".join(parts)
    where = plan["chip"] or f"{plan['prefill']['chip']} and {plan['decode']['chip']}"
    if plan["mode"] == "disaggregated" and not plan["demand"]:
        # How many replicas either pool has only keeps them in balance.
        ways = [{**plan[pool], "layout": {**plan[pool]["layout"], "replicas": 1}}
                for pool in ("prefill", "decode")]  # fmt: skip
        layout = f"prefill {laid_out(ways[0])}, decode {laid_out(ways[1])}"
    else:
        layout = laid_out(plan)
    mode = "" if plan["mode"] in ("aggregated", "disaggregated") else f"{plan['mode']} "
    return f"{mode}{layout} on {plan['chips']} {where}, weights {plan['weights']}, KV {plan['kv']}"
