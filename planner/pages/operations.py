"""Operations of the server and agent, each the document of a command: its text, byte for byte.

Everything here runs in a process of its own, which is killed when it takes too long; scenarios
come as mappings, and what they name is read only where the process may.

The body of a request as values: JSON that is neither large, nor deep, nor ambiguous.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from planner.report.files import dumps
from planner.text.errors import InputError, PlannerError, did_you_mean, quote

if TYPE_CHECKING:
    from planner.protocol.plan import Plan

MAX_BYTES = 1_000_000  # bytes
MAX_DEPTH = 50
READING = 20.0  # seconds in which the head of a request, and its body, must have come
OPENING, CLOSING = b"[{", b"]}"
QUOTE, BACKSLASH = b'"\\'


def parse_body(raw: bytes) -> dict[str, Any]:
    """The object of a body.

    Raises InputError for what is no JSON object, for a key that stands twice, for NaN and Infinity,
    and for more than 50 levels, which are counted before anything is read.
    """
    # Count the levels of brackets outside strings in one pass; the bytes may be anything.
    deepest = level = 0
    inside = escaped = False
    for byte in raw:
        if inside:
            inside = escaped or byte != QUOTE
            escaped = not escaped and byte == BACKSLASH
        elif byte == QUOTE:
            inside = True
        elif byte in OPENING:
            level += 1
            deepest = max(deepest, level)
        elif byte in CLOSING:
            level -= 1
    if deepest > MAX_DEPTH:
        raise InputError(f"more than {MAX_DEPTH} levels deep")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text") from None
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_not_finite)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} (line {error.lineno})") from None
    except (ValueError, RecursionError):
        raise InputError("not JSON that can be read") from None
    if not isinstance(value, dict):
        raise InputError("expected one JSON object, a scenario's keys")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise InputError(f"duplicate key {twice[:60]!r}")
    return values


def _not_finite(word: str) -> NoReturn:
    raise InputError(f"{word} is no number of JSON")


MAX_POINTS = 10_000  # of a sweep
FORMS = ("text", "markdown", "latex", "html")
Arguments = Mapping[str, Any]
MISTAKE, STATUS_FAILED, FAULT = 2, 3, 4


@dataclass(frozen=True)
class Reply:
    """Reply of an operation: the command's exit status and its text.

    With status 2 or more the text is the command's message; `mistakes` are its parts with paths.
    Status 4 is a fault of ours.
    """

    status: int
    text: str
    mistakes: tuple[dict[str, Any], ...] = ()


def run_operation(name: str, arguments: Arguments) -> Reply:
    """Run an operation by name and return its reply; never raises."""
    try:
        status, text = OPERATIONS[name](arguments)
        return Reply(status, text)
    except InputError as error:
        mistakes = tuple({**asdict(each), "file": None} for each in error.mistakes)
        whole = {"file": None, "line": None, "column": None, "path": "", "message": str(error)}
        return Reply(MISTAKE, str(error), mistakes or (whole,))
    except PlannerError as error:
        return Reply(max(error.exit_status, 1), str(error))
    except MemoryError:
        return Reply(STATUS_FAILED, "it needs more memory than one question may take; ask for less")
    except RecursionError:
        return Reply(MISTAKE, "the values are too deep", ())
    except Exception as error:
        fault = " ".join(str(error).split())[:300]
        return Reply(FAULT, f"a fault of ours: {type(error).__name__}: {fault}")


def _scenario(arguments: Arguments, key: str = "scenario") -> Mapping[str, Any]:
    value = arguments.get(key)
    if not isinstance(value, Mapping):
        raise InputError(f"{key}: expected a scenario's keys, got {quote(value)}")
    return value


def _texts(arguments: Arguments, key: str) -> list[str]:
    value = arguments.get(key)
    value = [] if value is None else value
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"{key}: expected a list of texts, got {quote(value)}")
    return value


def _name(arguments: Arguments, key: str) -> str | None:
    value = arguments.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{key}: expected a text, got {quote(value)}")
    return value


def _solve(arguments: Arguments, *, why: bool = False) -> tuple[int, str]:
    from planner.protocol.solve import solve

    plan = solve(_scenario(arguments), _texts(arguments, "set"))
    plan = plan.explained() if why else plan
    status = 0 if plan.feasible else 1
    if _name(arguments, "detail") == "head":
        return status, dumps(_head(plan))
    if _name(arguments, "form") == "text":
        return status, str(plan) + (f"\n\n{plan.why()}" if why else "")
    return status, dumps(plan.document)


def _head(plan: Plan[Any]) -> dict[str, Any]:
    """The head that every face shows first, its rows by label, and the gravest notes."""
    from planner.protocol.document import to_document
    from planner.protocol.note import MAX_NOTES
    from planner.protocol.problem import get_problem

    head, notes = get_problem(plan.kind).head(plan), plan.answer.notes
    return {
        "problem": plan.kind,
        "status": plan.status,
        "question": head.question if head else "",
        "head": {label: list(lines) for label, lines in head.rows()} if head else {},
        "notes": to_document(notes[:MAX_NOTES]),
        "notes_left_out": max(len(notes) - MAX_NOTES, 0),
    }


def _check(arguments: Arguments) -> tuple[int, str]:
    from planner.protocol.solve import check
    from planner.scenario import resolve_keys

    question = check(_scenario(arguments), _texts(arguments, "set"))
    return 0, dumps({"status": "ok", "scenario": resolve_keys(question)})


def _sweep(arguments: Arguments) -> tuple[int, str]:
    """Rows of a grid: the table of `planner sweep`, with its metadata."""
    from planner.scenario.grid import parse_grid
    from planner.sweep import sweep

    over: Any = arguments.get("over")
    if not isinstance(over, Mapping):
        over = _texts(arguments, "over")
    points = parse_grid(over).count
    if points > MAX_POINTS:
        raise InputError(f"over: {points:,} points, expected at most {MAX_POINTS:,}")
    table = sweep(_scenario(arguments), over, _texts(arguments, "set"))
    return 0, dumps({**table.meta, "rows": [_finite(row) for row in table.rows()]})


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def _compare(arguments: Arguments) -> tuple[int, str]:
    from planner.comparison.price_difference import difference

    sides = [_scenario(arguments, key) for key in ("before", "after")]
    result = difference(*sides)
    status = 0 if result.status != "infeasible" else 1
    text = _name(arguments, "form") == "text"
    return status, str(result) if text else dumps(result.document)


def _report(arguments: Arguments) -> tuple[int, str]:
    from planner.protocol.solve import solve_with_question
    from planner.report.pages.report_page import report_page

    sets = _texts(arguments, "set")
    question, plan = solve_with_question(_scenario(arguments), sets)
    page = report_page(plan, question, "scenario.json", sets)
    return 0 if plan.feasible else 1, page


def _gate(arguments: Arguments) -> tuple[int, str]:
    from planner.comparison.gate import gate

    limits = arguments.get("limits") or {}
    if not isinstance(limits, Mapping) or not all(
        isinstance(x, int | float) and not isinstance(x, bool) for x in limits.values()
    ):
        raise InputError(f"limits: expected numbers by output, got {quote(limits)}")
    verdict = gate(_scenario(arguments), _texts(arguments, "set"), limits,
                   sure=arguments.get("sure") is True)  # fmt: skip
    return 0 if verdict.status == "kept" else 1, dumps(verdict.document)


def _export(arguments: Arguments) -> tuple[int, str]:
    from planner.engines import export
    from planner.protocol.solve import solve

    engine = _name(arguments, "engine")
    if engine is None:
        raise InputError("engine: expected the name of an engine, such as vllm")
    plan = solve(_scenario(arguments), _texts(arguments, "set"))
    return 0, dumps(export(plan, engine, _name(arguments, "pods")).document)


def _init(arguments: Arguments) -> tuple[int, str]:
    from planner.protocol.solve import starter_text

    return 0, starter_text(_name(arguments, "kind") or "serving", _texts(arguments, "set"))


def _catalog(arguments: Arguments) -> tuple[int, str]:
    from planner.report.text.catalog import catalog

    kind, name, find = (_name(arguments, key) for key in ("kind", "name", "find"))
    return 0, dumps(catalog(kind, name, find, _texts(arguments, "where")))


def _schema(arguments: Arguments) -> tuple[int, str]:
    from planner.comparison.gate import document_schema
    from planner.scenario import json_schema

    kind = _name(arguments, "answer")
    return 0, dumps(json_schema() if kind is None else document_schema(kind))


def _formula(arguments: Arguments) -> tuple[int, str]:
    from planner.protocol.document import to_document
    from planner.report.text.formula import formula_card, formula_rows

    name = _name(arguments, "name")
    if name is None:
        rows = formula_rows(_name(arguments, "find"), _texts(arguments, "where"))
        return 0, dumps(to_document(rows))
    card = formula_card(name, _name(arguments, "solve_for"), _texts(arguments, "set"))
    return 0, dumps(to_document(card))


def _derive(arguments: Arguments) -> tuple[int, str]:
    from planner.report.text.derivations import derive_output

    form, names = _name(arguments, "format"), _texts(arguments, "names")
    if form is not None and form not in FORMS:
        raise InputError(f"format: {form}{did_you_mean(form, FORMS)} (known: {', '.join(FORMS)})")
    text = derive_output(names, every=False, form=form, out=None, json=form is None)
    assert isinstance(text, str)  # PDF is not in FORMS
    return 0, text.rstrip("\n")


OPERATIONS: Mapping[str, Callable[[Arguments], tuple[int, str]]] = {
    "solve": _solve, "why": partial(_solve, why=True), "check": _check, "sweep": _sweep,
    "compare": _compare, "diff": _compare, "report": _report, "gate": _gate, "export": _export,
    "init": _init, "catalog": _catalog, "schema": _schema, "formula": _formula, "derive": _derive,
}  # fmt: skip
SOLVES: Sequence[str] = ("solve", "why", "sweep", "compare", "report")
