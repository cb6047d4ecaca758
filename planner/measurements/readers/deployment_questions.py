"""Published deployments as questions to the planner: what a row states is fixed, the rest is free.

A row of a table of steady batches becomes a scenario with its chips, layout, batch and formats, and
with what `published_deployments.toml` knows of its source; nothing is filled in silently.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.measurements import published_names
from planner.measurements.measurement import layout_of
from planner.measurements.readers import sheets
from planner.measurements.readers.script_settings import meets
from planner.protocol.validation_result import DeploymentScore
from planner.text.errors import PlannerError
from planner.text.tables import table

UNKNOWN = ("", "?")
PHASES = ("decode", "prefill")
WAYS = ("tp", "pp", "dp_attention", "ep", "tp_expert")
COLUMNS = (
    "id", "source", "model", "phase", "chip", "n_chips", "layout", "weight_dtype", "kv_dtype",
    "batch", "context_or_isl", "osl", "metric", "value", "notes",
)  # fmt: skip
DRAFTED = re.compile(r"MTP(\d)")


@dataclass(frozen=True)
class DeploymentQuestion:
    """A published deployment, `stated` as far as its row goes, and the `scenario` that asks for it.

    What neither the row nor its source says is free in the scenario.
    """

    stated: DeploymentScore
    scenario: Mapping[str, object]


def deployment_questions(
    source: sheets.Source, ids: Sequence[str], left_out: dict[str, list[str]] | None = None
) -> list[DeploymentQuestion]:
    """The questions of rows by id, in the order of the ids; of every row where none is named.

    A row cannot be asked that is not in the catalogue's words, lacks a number that no question can
    do without, or gives no rate: where none is named, its id goes to `left_out`, by reason.

    Raises InputError if a column is missing; Refused, with the id, if a named row cannot be asked.
    """
    sheets.needs(source, COLUMNS)
    rows = {row.get("id", ""): row for row in sheets.rows_of(source)}
    missing = [name for name in ids if name not in rows]
    if missing:
        raise published_names.Refused(f"{source}: no row has the id {missing[0]}")
    made = []
    for name in ids or rows:
        try:
            made.append(_question(rows[name]))
        except PlannerError as why:
            if ids or left_out is None:
                raise published_names.Refused(f"{name}: {why}") from None
            left_out.setdefault(str(why), []).append(name)
    return made


def _facts_of(row: sheets.Row) -> dict[str, Any]:
    """What is known of a row's source; sections of a scenario are joined."""
    facts: dict[str, Any] = {}
    stated = {name: row.get(name, "") for name in ("source", "phase", "model", "chip", "notes")}
    for entry in table("planner.measurements", "published_deployments.toml")["facts"]:
        if meets(stated, entry["when"]):
            for name, fact in entry.items():
                facts[name] = facts.get(name, {}) | fact if isinstance(fact, dict) else fact
    return facts


def _question(row: sheets.Row) -> DeploymentQuestion:
    facts, chip = _facts_of(row), published_names.chip_of(row["chip"])
    weights = published_names.format_of(row["weight_dtype"])
    model, left_over = published_names.checkpoint_of(row["model"], weights)
    experts = published_names.sizes_of(row["model"], weights, None).n_experts
    chips = int(sheets.number_or_none(row, "n_chips") or facts.get("chips", 0))
    if not chips:
        raise published_names.Refused("n_chips is not given")
    choose = _choices(row, facts, chips, experts)
    if left_over is not None:
        choose["weights"] = left_over
    on: object = published_names.machine_of(chip.name) or chip.name
    scenario: dict[str, object] = {
        "problem": "serving",
        "model": model,
        "system": {"like": on, **facts["system"]} if "system" in facts else on,
        "chips": chips,
        "price": "$1/hour",
        "workload": _workload(row, facts),
        "choose": choose,
        **{name: facts[name] for name in ("promises", "speculation") if name in facts},
    }
    assumed = [facts["assumed"]] if "assumed" in facts else []
    drafted = DRAFTED.search(row["notes"])
    if drafted:
        scenario["speculation"] = {"drafts": int(drafted[1])}
    if "speculation" in scenario:
        assumed.append("drafted tokens are taken as by the catalogue's curve of the model")
    quantity, measured = _measured(row, chips, facts.get("counted", ""))
    wanted = {"layout": "tp", "batch": "batch", "cache format": "kv", "overlap": "overlap"}
    words = (row["model"], row["weight_dtype"], chips, chip.name, row["phase"], row["layout"])
    stated = DeploymentScore(
        row.get("id", ""), row.get("source", ""), " ".join(map(str, words)).strip(), quantity,
        measured, free=tuple(name for name, key in wanted.items() if key not in choose),
        assumed="; ".join(assumed),
    )  # fmt: skip
    return DeploymentQuestion(stated, scenario)


def _choices(
    row: sheets.Row, facts: Mapping[str, Any], chips: int, experts: int
) -> dict[str, object]:
    """What was chosen of a layout, a batch and formats, as far as it is stated."""
    choose = dict(facts.get("choose", {}))
    if row["phase"] in PHASES:
        choose["mode"] = row["phase"]
    elif "disaggregated" in row["layout"]:
        choose["mode"] = "disaggregated"
    layout = layout_of(row["layout"], chips, experts)
    if layout is not None:
        ways = {name: layout[name] for name in WAYS if experts or name not in ("ep", "tp_expert")}
        choose |= {**ways, "replicas": 1, "mode": choose.get("mode", "aggregated")}
    if row["batch"] not in UNKNOWN and not facts.get("sent"):
        choose["batch"] = int(sheets.positive(row, "batch"))
    if row["kv_dtype"] not in UNKNOWN:
        choose["kv"] = published_names.format_of(row["kv_dtype"])
    if "TBO" in row["layout"]:
        choose["overlap"] = "none" if "no TBO" in row["layout"] else "two-batch"
    return choose


def _workload(row: sheets.Row, facts: Mapping[str, Any]) -> dict[str, object]:
    """Lengths of prompts and answers; a decode row gives the context that a step reads."""
    lengths = facts.get("workload", {})
    prompt = sheets.number_or_none(row, "context_or_isl") or lengths.get("input_tokens")
    output = sheets.number_or_none(row, "osl") or lengths.get("output_tokens")
    if prompt is None:
        raise published_names.Refused("context_or_isl is not given")
    if row["phase"] == "prefill":
        output = 2.0
    elif row["phase"] == "decode":
        output = output or 2.0
        prompt = max(prompt - output / 2, 1.0)
    elif output is None:
        raise published_names.Refused("osl is not given")
    answers = {"mean": output, "cv": facts["spread"]} if "spread" in facts else output
    return {**lengths, "input_tokens": prompt, "output_tokens": answers}


def _measured(row: sheets.Row, chips: int, counted: str) -> tuple[str, float]:
    """Of what a value is, and it in base units over all chips."""
    value = sheets.positive(row, "value")
    if row["metric"] == "step_ms":
        return "token", value / 1e3
    tokens = counted or ("input" if row["phase"] == "prefill" else "output")
    if row["metric"] not in ("tok_s_total", "tok_s_per_gpu"):
        raise published_names.Refused(f"no rate of tokens: {row['metric']}")
    return tokens, value * (chips if row["metric"] == "tok_s_per_gpu" else 1)
