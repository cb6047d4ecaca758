"""Published deployments answered as questions: what they state is fixed, what they do not is free.

Where the rest of a validation predicts the layout that ran, here the planner is asked as its users
ask it: the same search, bands and refusals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.measurements.readers.deployment_questions import (
    DeploymentQuestion,
    deployment_questions,
)
from planner.protocol.solve import solve
from planner.protocol.validation_result import DeploymentScore, DeploymentScores
from planner.text.errors import PlannerError
from topologies import TopologyError

RATES = {"output": "tokens_per_s", "input": "input_tokens_per_s"}


def deployment_scores(path: Path, ids: Sequence[str] = ()) -> DeploymentScores:
    """The deployments of a table by id, each with its answer; all that can be asked without ids.

    Raises InputError if a row has no such id, or one that is named cannot be asked.
    """
    left_out: dict[str, list[str]] = {}
    questions = deployment_questions(path, ids, left_out)
    return DeploymentScores(path.name, tuple(map(deployment_score, questions)), left_out)


def deployment_score(question: DeploymentQuestion) -> DeploymentScore:
    """One published deployment with its answer, or the reason why there is none."""
    document: Mapping[str, Any] = {}
    try:
        document = solve(question.scenario).document
        refused = _why(document)
    except (PlannerError, TopologyError) as error:
        refused = " ".join(str(error).split())
    if refused:
        return replace(question.stated, refused=refused)
    return _answered(question.stated, document)


def _why(document: Mapping[str, Any]) -> str:
    """Why an answer has no plan, empty where it has one."""
    if document["plan"] is not None:
        return ""
    missed = (f"{each['promise']} by {each['short_by']:.3g}" for each in document["infeasible"])
    return f"infeasible: {'; '.join(missed)}"


def _answered(stated: DeploymentScore, document: Mapping[str, Any]) -> DeploymentScore:
    plan, band = document["plan"], document["band"]
    if stated.quantity == "token":
        estimate, (low, high) = plan["tpot"], band["tpot"]
    else:
        rates = {name: plan[key] or 0.0 for name, key in RATES.items()}
        estimate = rates.get(stated.quantity, sum(rates.values()))
        cheap, dear = band["usd_per_mtok"]
        price = plan["usd_per_mtok"]
        low, high = estimate * price / dear, estimate * price / cheap
    outside = (str(each.get("what", each)) for each in document.get("outside") or ())
    return replace(
        stated, estimate=estimate, low=low, high=high, layout=_words(plan),
        outside="; ".join(outside),
    )  # fmt: skip


def _words(plan: Mapping[str, Any]) -> str:
    """The layout and batch of a plan in short."""
    pools = {name: plan[name] for name in ("prefill", "decode") if plan.get(name)}
    parts = [_layout_text(plan["layout"])] if plan.get("layout") else []
    parts += [f"{name} {_layout_text(pool['layout'])}" for name, pool in pools.items()]
    return f"{', '.join(parts)}, batch {plan['batch']}, {plan['weights']}/{plan['kv']}"


def _layout_text(layout: Mapping[str, Any]) -> str:
    ways = (f"{name} {n}" for name, n in layout.items() if isinstance(n, int) and n > 1)
    return " ".join(ways) or "one chip"
