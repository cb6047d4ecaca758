"""Published deployments as questions to the planner: what a row states is fixed, the rest is free.

A row of a table of steady batches becomes a scenario with its chips, layout, batch and formats, and
with what `published_deployments.toml` knows of its source; nothing is filled in silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.measurements import published_names
from planner.measurements.measurement import layout_of
from planner.measurements.readers import sheets
from planner.measurements.readers.script_settings import meets
from planner.protocol.validation_result import DeploymentScore
from planner.text.tables import table

UNKNOWN = ("", "?")
MODE = {"decode": "decode", "prefill": "prefill"}
WAYS = ("tp", "pp", "dp_attention", "ep", "tp_expert")
DRAFTED = re.compile(r"MTP(\d)")


@dataclass(frozen=True)
class DeploymentQuestion:
    """A published deployment, `stated` as far as its row goes, and the `scenario` that asks for it.

    What neither the row nor its source says is free in the scenario.
    """

    stated: DeploymentScore
    scenario: Mapping[str, object]


def deployment_questions(source: sheets.Source, ids: Sequence[str]) -> list[DeploymentQuestion]:
    """The questions of rows by id, in the order of the ids; of every row where none is named.

    Raises Refused, with the id, if a row cannot be put into the catalogue's words or a number that
    no question can do without is missing.
    """
    rows = {row.get("id", ""): row for row in sheets.rows_of(source)}
    missing = [name for name in ids if name not in rows]
    if missing:
        raise published_names.Refused(f"{source}: no row has the id {missing[0]}")
    made = []
    for name in ids or rows:
        try:
            made.append(_question(rows[name]))
        except published_names.Refused as why:
            raise published_names.Refused(f"{name}: {why}") from None
    return made


def _facts_of(row: sheets.Row) -> dict[str, object]:
    facts: dict[str, object] = {}
    stated = {name: row.get(name, "") for name in ("source", "phase", "model", "chip", "notes")}
    for entry in table("planner.measurements", "published_deployments.toml")["facts"]:
        if meets(stated, entry["when"]):
            facts |= entry
    return facts


def _question(row: sheets.Row) -> DeploymentQuestion:
    facts, chip = _facts_of(row), published_names.chip_of(row["chip"])
    weights = published_names.format_of(row["weight_dtype"])
    model, left_over = published_names.checkpoint_of(row["model"], weights)
    experts = published_names.sizes_of(row["model"], weights, None).n_experts
    chips = sheets.number_or_none(row, "n_chips") or facts.get("chips")
    if not isinstance(chips, int | float):
        raise published_names.Refused("n_chips is not given")
    phase, chips = row["phase"], int(chips)
    choose = _choices(row, facts, chips, experts)
    if left_over is not None:
        choose["weights"] = left_over
    workload = _workload(row, facts)
    scenario: dict[str, object] = {
        "problem": "serving",
        "model": model,
        "system": published_names.machine_of(chip.name) or chip.name,
        "chips": chips,
        "price": "$1/hour",
        "workload": workload,
        "choose": choose,
    }
    promises: dict[str, object] = {
        name: f"{facts[name]} s" for name in ("ttft", "tpot") if name in facts
    }
    if "speed" in facts:
        promises["tokens_per_s_per_user"] = facts["speed"]
    if promises:
        scenario["promises"] = promises
    drafted = DRAFTED.search(row["notes"])
    drafts = int(drafted[1]) if drafted else facts.get("drafts", 0)
    assumed = [str(facts["assumed"])] if "assumed" in facts else []
    if drafts:
        scenario["speculation"] = {"drafts": drafts}
        assumed.append("drafted tokens are taken as by the catalogue's curve of the model")
    quantity, measured = _measured(row, chips, str(facts.get("counted", "")))
    wanted = {"layout": "tp", "batch": "batch", "cache format": "kv", "overlap": "overlap"}
    setting = f"{row['model']} {row['weight_dtype']} {chips} {chip.name} {phase} {row['layout']}"
    stated = DeploymentScore(
        row.get("id", ""), row.get("source", ""), setting.strip(), quantity, measured,
        free=tuple(name for name, key in wanted.items() if key not in choose),
        assumed="; ".join(assumed),
    )  # fmt: skip
    return DeploymentQuestion(stated, scenario)


def _choices(
    row: sheets.Row, facts: Mapping[str, object], chips: int, experts: int
) -> dict[str, object]:
    """What was chosen of a layout, a batch and formats, as far as it is told."""
    choose = {name: facts[name] for name in ("ep", "chunk", "redundant_experts") if name in facts}
    if row["phase"] in MODE:
        choose["mode"] = MODE[row["phase"]]
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
    if "TBO" in row["layout"] or "overlap" in facts:
        choose["overlap"] = "none" if "no TBO" in row["layout"] else "two-batch"
    return choose


def _workload(row: sheets.Row, facts: Mapping[str, object]) -> dict[str, object]:
    """Lengths of prompts and answers; a decode row gives the context that a step reads."""
    context = sheets.number_or_none(row, "context_or_isl") or facts.get("input_tokens")
    output = sheets.number_or_none(row, "osl") or facts.get("output_tokens")
    if not isinstance(context, int | float):
        raise published_names.Refused("context_or_isl is not given")
    if row["phase"] == "prefill":
        workload: dict[str, object] = {"input_tokens": float(context), "output_tokens": 2.0}
    elif row["phase"] == "decode":
        written = float(output) if isinstance(output, int | float) else 2.0
        workload = {
            "input_tokens": max(float(context) - written / 2, 1.0), "output_tokens": written
        }  # fmt: skip
    else:
        if not isinstance(output, int | float):
            raise published_names.Refused("osl is not given")
        workload = {"input_tokens": float(context), "output_tokens": float(output)}
    if "spread" in facts:
        workload["output_tokens"] = {"mean": workload["output_tokens"], "cv": facts["spread"]}
    if "cached" in facts:
        workload["cached_input"] = facts["cached"]
    return workload


def _measured(row: sheets.Row, chips: int, counted: str) -> tuple[str, float]:
    """Of what a value is, and it in base units over all chips."""
    value = sheets.positive(row, "value")
    if row["metric"] == "step_ms":
        return "token", value / 1e3
    tokens = counted or ("input" if row["phase"] == "prefill" else "output")
    if row["metric"] not in ("tok_s_total", "tok_s_per_gpu"):
        raise published_names.Refused(f"no rate of tokens: {row['metric']}")
    return tokens, value * (chips if row["metric"] == "tok_s_per_gpu" else 1)
