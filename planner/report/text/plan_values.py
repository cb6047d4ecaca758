"""The symbols of a plan: what `planner derive --at plan.json` puts into the equations.

Numbers that the plan states are read by `plan_symbols.toml`; rates, memory and counts are those of
its chip and its model where the catalogues have them, in its formats, for one replica that decodes.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from formulas.claims.claim import figure_text
from formulas.export.formula_document import unit_of_left_side, value_in_case
from formulas.nomenclature.symbols import SYMBOLS, meaning, symbol_unit
from formulas.registry import by_name
from planner.architecture.quantization import dtype
from planner.claims.physical_column import chip_case, model_case, quantized_sizes
from planner.text.errors import CatalogueError, InputError
from planner.text.tables import table

Pool = Mapping[str, Any]
HOUR = 3600.0
MAX_CHIPS = 10**9  # chips; sanity limit, above all chips in existence


def plan_case(file: Path) -> dict[str, float]:
    """Values of symbols in base units, from a plan that `planner solve --json` wrote.

    Raises InputError if the file is no such plan.
    """
    answer, _ = _answer(file), by_name()  # which registers every symbol
    pool = _pool(answer["plan"], file)
    case = _looked_up(answer, pool) if pool else {"c_fwd": 2.0, "m_pos": 1.0, "one_param": 1.0}
    whole = {**answer, "POOL": pool or {}}
    for symbol, paths in table("planner.report.text", "plan_symbols.toml")["paths"].items():
        values = [value for path in paths if (value := _number_at(whole, path)) is not None]
        if values and symbol in SYMBOLS:
            case[symbol] = values[0]
    if "L_in" in case:
        # Mean context during decode: the prompt plus half of the output.
        case["L_ctx"] = case["L_in"] + case.get("L_out", 0.0) / 2
    return case


def _answer(file: Path) -> Mapping[str, Any]:
    try:
        answer = json.loads(file.read_text("utf-8"))
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise InputError(f"--at {file}: {reason}; name a plan.json of planner solve") from error
    except ValueError as error:
        raise InputError(f"--at {file}: no JSON; name a plan.json of planner solve") from error
    if not isinstance(answer, Mapping) or not {"plan", "scenario"} <= answer.keys():
        raise InputError(f"--at {file}: no plan is in it; planner solve --json writes one")
    if answer["plan"] is None:
        raise InputError(f"--at {file}: no plan kept its promises, so there are no values")
    for name in ("plan", "scenario"):
        if not isinstance(answer[name], Mapping):
            raise InputError(f"--at {file}: {name}: a record was expected, as planner solve writes")
    return answer


def _pool(plan: Mapping[str, Any], file: Path) -> Pool | None:
    """The pool that decodes, of a plan with chips; raises InputError for another document."""
    pool = plan
    for name in ("serving", "decode"):
        pool = pool[name] if isinstance(pool.get(name), Mapping) else pool
    if not {"chip", "weights", "kv", "chips_used"} <= pool.keys():
        return None
    layout = pool.get("layout") if isinstance(pool.get("layout"), Mapping) else {}
    pool = {"usd_per_hour": None, **pool, "replicas": (layout or {}).get("replicas", 1)}
    wrong = [name for name in ("chip", "weights", "kv") if not isinstance(pool[name], str)]
    wrong += [name for name in ("chips_used", "replicas")
              if type(pool[name]) is not int or not 1 <= pool[name] <= MAX_CHIPS]  # fmt: skip
    if wrong:
        words = "a name, or a whole number from 1 for chips and replicas, was expected"
        raise InputError(f"--at {file}: {', '.join(wrong)} of its plan: {words}")
    return pool


def _looked_up(answer: Mapping[str, Any], pool: Pool) -> dict[str, float]:
    """One replica's chips and model; those that the scenario describes itself are left out."""
    chips = pool["chips_used"] // pool["replicas"]
    case = {"c_fwd": 2.0, "m_pos": 1.0, "g": 1.0}
    for fmt in (pool["weights"], "bf16"):  # weights without arithmetic of their own go through bf16
        with suppress(CatalogueError):
            case |= chip_case(pool["chip"], fmt, chips)
            break
    case |= {"n_chips": float(chips), "n_domain": float(chips)}
    model = answer["scenario"].get("model")
    if isinstance(model, str):
        with suppress(CatalogueError):
            case |= model_case(model, pool["weights"])
            case["b_kv"] = quantized_sizes(model, pool["kv"]).kv_bytes_per_token
            case["n_layers"] = float(quantized_sizes(model, pool["weights"]).n_attention_layers)
    case["b_w"] = float(dtype(pool["weights"]).bytes)
    if paid := _number_at(pool, "usd_per_hour"):
        case["p_chip"] = paid / (HOUR * pool["chips_used"])
    return case


def _number_at(answer: Mapping[str, Any], path: str) -> float | None:
    value: Any = answer
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and abs(value) <= sys.float_info.max else None


def plan_text(file: Path) -> str:
    """The symbols of a plan, and every equation that they give a value."""
    case = plan_case(file)
    lines = [f"{len(case)} symbols of {file}"]
    for name, value in sorted(case.items()):
        unit = str(symbol_unit(SYMBOLS[name]))
        number = figure_text(value, "" if unit == "1" else unit)
        lines.append(f"  {name:<12} {number:<26} {meaning(SYMBOLS[name])}")
    worked = list(_worked(case))
    lines += ["", f"{len(worked)} equations and derivations have a value there"]
    return "\n".join([*lines, *worked])


def _worked(case: Mapping[str, float]) -> Iterator[str]:
    for name, item in by_name().items():
        value = value_in_case(item, case)
        if value is not None:
            unit = unit_of_left_side(item)
            number = "none"  # nor where it is undefined
            if value >= 0:
                number = figure_text(value, "" if unit == "1" else unit)
            yield f"  {name:<26} {number:<26} {item.name}"
