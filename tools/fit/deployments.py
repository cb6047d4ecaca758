"""Published deployments answered as questions: what they state is fixed, what they do not is free.

Where the rest of a validation predicts the layout that ran, here the planner is asked as its users
ask it: the same search, bands and refusals.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, nan
from pathlib import Path
from statistics import median
from typing import Any

from planner.measurements import published_names
from planner.measurements.measurement import as_layout
from planner.measurements.readers import sheets
from planner.measurements.readers.script_settings import conditions_met
from planner.protocol.solve import solve
from planner.report.text.validation_text import reasons
from planner.text.errors import PlannerError
from planner.text.tables import table
from planner.text.wording import duration, printable, wrapped
from topologies import TopologyError

UNKNOWN = ("", "?")
PHASES = ("decode", "prefill")
WAYS = ("tp", "pp", "dp_attention", "ep", "tp_expert")
COLUMNS = (
    "id", "source", "model", "phase", "chip", "n_chips", "layout", "weight_dtype", "kv_dtype",
    "batch", "context_or_isl", "osl", "metric", "value", "notes",
)  # fmt: skip
DRAFTED = re.compile(r"MTP(\d)")


@dataclass(frozen=True)
class DeploymentScore:
    """A published deployment and the answer to the same question.

    Attributes
    ----------
    id, source, setting : of the row.
    measured, estimate, low, high : tokens per second of all chips, or seconds per token where
        `quantity` is `token`; None where nothing was found.
    quantity : `output`, `input` or `total` tokens per second, or `token`.
    layout : what runs, in words.
    free, assumed : what was chosen freely, and what was assumed where nothing is published.
    outside : what of the question the fit of the profile never saw.
    refused : why there is no answer to a deployment that ran; empty where there is one.
    """

    id: str
    source: str
    setting: str
    quantity: str
    measured: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    layout: str = ""
    free: tuple[str, ...] = ()
    assumed: str = ""
    outside: str = ""
    refused: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted over measured speed; a time per token is turned round. [1]"""
        if self.estimate is None:
            return None
        speed = self.measured / self.estimate
        return speed if self.quantity == "token" else 1 / speed

    @property
    def inside(self) -> bool:
        """Whether the published value lies in the band."""
        low, high = self.low, self.high
        return low is not None and high is not None and low <= self.measured <= high


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
    rows = {row.get("id", ""): row for row in sheets.table_rows(source)}
    missing = [name for name in ids if name not in rows]
    if missing:
        raise published_names.BadRow(f"{source}: no row has the id {missing[0]}")
    made = []
    for name in ids or rows:
        try:
            made.append(_question(rows[name]))
        except PlannerError as why:
            if ids or left_out is None:
                raise published_names.BadRow(f"{name}: {why}") from None
            left_out.setdefault(str(why), []).append(name)
    return made


def _facts_of(row: sheets.TableRow) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    stated = {name: row.get(name, "") for name in ("source", "phase", "model", "chip", "notes")}
    for entry in table("tools.fit", "published_deployments.toml")["facts"]:
        if conditions_met(stated, entry["when"]):
            for name, fact in entry.items():
                facts[name] = facts.get(name, {}) | fact if isinstance(fact, dict) else fact
    return facts


def _question(row: sheets.TableRow) -> DeploymentQuestion:
    facts, chip = _facts_of(row), published_names.resolve_chip(row["chip"])
    weights = published_names.number_format(row["weight_dtype"])
    model, left_over = published_names.resolve_checkpoint(row["model"], weights)
    experts = published_names.published_sizes(row["model"], weights, None).n_experts
    chips = int(sheets.number_or_none(row, "n_chips") or facts.get("chips", 0))
    if not chips:
        raise published_names.BadRow("n_chips is not given")
    choose = _choices(row, facts, chips, experts)
    if left_over is not None:
        choose["weights"] = left_over
    on: object = published_names.row_machine(chip.name) or chip.name
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
    row: sheets.TableRow, facts: Mapping[str, Any], chips: int, experts: int
) -> dict[str, object]:
    """What was chosen of a layout, a batch and formats, as far as it is stated."""
    choose = dict(facts.get("choose", {}))
    if row["phase"] in PHASES:
        choose["mode"] = row["phase"]
    elif "disaggregated" in row["layout"]:
        choose["mode"] = "disaggregated"
    layout = as_layout(row["layout"], chips, experts)
    if layout is not None:
        ways = {name: layout[name] for name in WAYS if experts or name not in ("ep", "tp_expert")}
        choose |= {**ways, "replicas": 1, "mode": choose.get("mode", "aggregated")}
    if row["batch"] not in UNKNOWN and not facts.get("sent"):
        choose["batch"] = int(sheets.positive(row, "batch"))
    if row["kv_dtype"] not in UNKNOWN:
        choose["kv"] = published_names.number_format(row["kv_dtype"])
    if "TBO" in row["layout"]:
        choose["overlap"] = "none" if "no TBO" in row["layout"] else "two-batch"
    return choose


def _workload(row: sheets.TableRow, facts: Mapping[str, Any]) -> dict[str, object]:
    """Lengths of prompts and answers; a decode row gives the context that a step reads."""
    lengths = facts.get("workload", {})
    prompt = sheets.number_or_none(row, "context_or_isl") or lengths.get("input_tokens")
    output = sheets.number_or_none(row, "osl") or lengths.get("output_tokens")
    if prompt is None:
        raise published_names.BadRow("context_or_isl is not given")
    if row["phase"] == "prefill":
        output = 2.0
    elif row["phase"] == "decode":
        output = output or 2.0
        prompt = max(prompt - output / 2, 1.0)
    elif output is None:
        raise published_names.BadRow("osl is not given")
    answers = {"mean": output, "cv": facts["spread"]} if "spread" in facts else output
    return {**lengths, "input_tokens": prompt, "output_tokens": answers}


def _measured(row: sheets.TableRow, chips: int, counted: str) -> tuple[str, float]:
    value = sheets.positive(row, "value")
    if row["metric"] == "step_ms":
        return "token", value / 1e3
    tokens = counted or ("input" if row["phase"] == "prefill" else "output")
    if row["metric"] not in ("tok_s_total", "tok_s_per_gpu"):
        raise published_names.BadRow(f"no rate of tokens: {row['metric']}")
    return tokens, value * (chips if row["metric"] == "tok_s_per_gpu" else 1)


RATES = {"output": "tokens_per_s", "input": "input_tokens_per_s"}


@dataclass(frozen=True)
class DeploymentScores:
    """The deployments of one table, in their order, and ids that could not be asked, by reason."""

    table: str
    rows: tuple[DeploymentScore, ...] = ()
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def inside(self) -> int:
        """How many lie in their bands."""
        return sum(row.inside for row in self.rows)

    @property
    def infeasible(self) -> int:
        """How many of them, all of which ran, have no answer."""
        return sum(row.estimate is None for row in self.rows)

    @property
    def median_error(self) -> float:
        """The median of the logarithm of predicted over measured, its sign left off. [1]"""
        errors = [abs(log(row.ratio)) for row in self.rows if row.ratio is not None]
        return median(errors) if errors else nan


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
    pools = {name: plan[name] for name in ("prefill", "decode") if plan.get(name)}
    parts = [_layout_text(plan["layout"])] if plan.get("layout") else []
    parts += [f"{name} {_layout_text(pool['layout'])}" for name, pool in pools.items()]
    return f"{', '.join(parts)}, batch {plan['batch']}, {plan['weights']}/{plan['kv']}"


def _layout_text(layout: Mapping[str, Any]) -> str:
    ways = (f"{name} {n}" for name, n in layout.items() if isinstance(n, int) and n > 1)
    return " ".join(ways) or "one chip"


DEPLOYMENTS = f"{'':<9}{'published':>11}{'answer':>11}{'ratio':>7}  {'80% band':<21}"


def deployments_text(scores: DeploymentScores) -> str:
    """One line of figures for each deployment, what ran and what was free below it."""
    lines = [f"{scores.table}: {len(scores.rows)} published deployments"]
    counts = {why: len(ids) for why, ids in scores.left_out.items()}
    lines += [*reasons(counts, "not asked", "not asked", scores.left_out), "", DEPLOYMENTS]
    for row in scores.rows:
        lines += _deployment(row)
    lines += [
        "",
        f"{scores.inside} of {len(scores.rows)} lie in their bands, {scores.infeasible} have no "
        f"answer though they ran; median |log ratio| {scores.median_error:.3f}",
    ]
    return printable("\n".join(lines))


def _deployment(row: DeploymentScore) -> list[str]:
    shown = [_value(row, each) for each in (row.measured, row.estimate)]
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    band = f"{_value(row, row.low)} to {_value(row, row.high)}"
    place = "in" if row.inside else "out"
    lines = [f"{row.id:<9}{shown[0]:>11}{shown[1]:>11}{ratio:>7}  {band:<21} {place}"]
    notes = {
        "": row.setting,
        "runs": row.layout,
        "no answer": row.refused,
        "free": ", ".join(row.free),
        "assumed": row.assumed,
        "outside the fit": row.outside,
    }
    for name, text in notes.items():
        if text:
            lines += wrapped(f"{name}: {text}" if name else text)
    return lines


def _value(row: DeploymentScore, value: float | None) -> str:
    if value is None:
        return "-"
    return duration(value) if row.quantity == "token" else f"{value:,.0f}"
