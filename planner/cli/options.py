"""What commands share: options (rows of options.toml), values that a shell completes, refusals.

A question in flags: `--model`, `--users`, `--speed`, each as the change that `--set` takes. A file
is read first, then flags and `--set` in the order in which they are typed. Times want their unit:
other tools mean milliseconds by a bare number, scenarios seconds.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from planner.text.console import note
from planner.text.errors import InputError, Mistake
from planner.text.tables import table

OPTION_ROWS = table("planner.cli", "options.toml")
HELP = table("planner.cli", "commands.toml")
QUESTION_FLAGS = table("planner.cli", "question_flags.toml")["flags"]
FLAGS = {f"--{x}": row for row in QUESTION_FLAGS for x in (row["name"], *row.get("aliases", ()))}


def with_option_help(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are options and arguments with the help of their rows."""
    rows = {**OPTION_ROWS["several"], **OPTION_ROWS.get(command.__name__, {})}
    for name, hint in get_type_hints(command).items():
        if name == "return":
            continue
        row = dict(rows[name])
        if completes := row.pop("completes", None):
            row["autocompletion"] = COMPLETIONS[completes]
        if row.pop("argument", False):
            described = typer.Argument(**row)
        else:
            flags = row.pop("flags", [f"--{name.replace('_', '-')}"])
            described = typer.Option(*flags, **row)
        command.__annotations__[name] = Annotated[hint, described]
    return command


def example_epilog(name: str) -> str:
    """What stands below a command's help: an example of it, as it is typed."""
    lines = ["Example:", *(f"  planner {each}" for each in HELP["examples"][name])]
    if name == "solve":
        lines += ["", "\b", "Without a file, or over one; other commands that take --set, too:"]
        lines += [f"  --{row['name']:<11} {row['help']}" for row in QUESTION_FLAGS]
    return "\b\n" + "\n".join(lines)


def warn(warnings: Iterable[str]) -> None:
    """Say warnings on standard error; `--quiet` keeps them back."""
    for warning in warnings:
        note(f"warning: {warning}", warning=True)


def with_sure(file: str, sets: Iterable[str] | None, *, sure: bool) -> list[str]:
    """The changes of `--set`, and what `--sure` adds to them.

    Raises InputError where the scenario's problem has no promises that hold with a chance.
    """
    changes = [*(sets or ())]
    if not sure:
        return changes
    if file != "-":
        from planner.scenario import load

        question = load(file, changes)
        if not hasattr(getattr(question, "promises", None), "chance"):
            words = f"problem: {question.problem} has no promises that hold with a chance"
            raise InputError(f"--sure: {words}; leave --sure")
    return [*changes, "promises.chance=90%"]


def require_folder(out: Path | None) -> None:
    """Raises InputError where `--out`, a folder of files, is a file or a number of tokens."""
    if out is not None and out.name.isdigit() and not out.exists():
        raise InputError(f"--out {out}: is the folder of the files; tokens are --output {out}")
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file, expected a folder")


def require_file(out: Path | None, example: str) -> None:
    """Raises InputError where `--out`, a file such as `example`, is a folder."""
    if out is not None and out.is_dir():
        raise InputError(f"--out {out}: is a folder, expected a file such as {example}")


def option_quantity(option: str, text: str, dimension: str) -> float:
    """The quantity that an option was given, in base units; InputError for text that is none."""
    from planner.text.quantities import QuantityError, parse

    try:
        return parse(text, dimension)
    except QuantityError as error:
        raise InputError(f"{option}: {error}") from error


def require_workers(workers: int) -> None:
    """Raises InputError for fewer than one process."""
    if workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}")


# Where the names that a shell completes are listed; engines are those of a table.
NAME_LISTS = {
    "models": "planner.catalogue.models:model_names",
    "systems": "planner.catalogue.systems:system_names",
    "laws": "planner.catalogue.scaling_laws:law_names",
    "profiles": "planner.catalogue.profile:profile_names",
    "kinds": "planner.scenario.kinds:PROBLEM_PACKAGES",
    "catalogues": "planner.report.text.catalog:KINDS",
}
SET = {
    "model": "models", "system": "systems", "engine": "engines", "law": "laws",
    "profile": "profiles", "problem": "kinds",
}  # fmt: skip


def _listed(kind: str) -> list[str]:
    """All names of a kind; what lists them is imported when a shell asks."""
    if kind in NAME_LISTS:
        module, _, name = NAME_LISTS[kind].partition(":")
        names = getattr(import_module(module), name)
    else:
        names = (*table("planner.problems.serving.step", "engine_rules.toml"), "kubernetes")
    return [*["auto"] * (kind == "profiles"), *(names() if callable(names) else names)]


def _beginning(kind: str) -> Callable[[str], list[str]]:
    """The names that begin as what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in _listed(kind) if name.startswith(incomplete)]

    return complete


def _entries(ctx: typer.Context, incomplete: str) -> list[str]:
    from planner.report.text.catalog import catalog

    kinds = catalog()["kinds"]
    listed = kinds.get(ctx.params.get("kind"), ()) if isinstance(kinds, dict) else ()
    return [name for name in listed if name.startswith(incomplete)]


def _changes(incomplete: str) -> list[str]:
    path, sign, value = incomplete.partition("=")
    if not sign:
        return [f"{name}=" for name in SET if name.startswith(path)]
    names = _listed(SET[path]) if path in SET else ()
    return [f"{path}={name}" for name in names if name.startswith(value)]


COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    **{kind: _beginning(kind) for kind in (*NAME_LISTS, "engines")},
    "entries": _entries,
    "changes": _changes,
}


def as_changes(args: Sequence[str], taken: Collection[str]) -> list[str]:
    """Arguments of a command with `--set PATH=VALUE` in place of every flag of a question.

    `taken` are flags of the command itself. Raises InputError for a flag without its value, a time
    without its unit, or nodes of a system that is not named.
    """
    words = iter(args)
    done: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if word == "--":
            return [*done, word, *words]
        if flag in taken or flag not in FLAGS:
            done.append(word)
            continue
        row = FLAGS[flag]
        if "value" not in row and not equals:
            value = next(words, "")
        done += ["--set", f"{row['path']}={_written(row, flag, value, args)}"]
    return done


def with_flag(mistake: Mistake) -> Mistake:
    """A mistake of a question in flags alone, with the flag that gives a missing key."""
    rows = [row for row in QUESTION_FLAGS if row["path"] == mistake.path]
    if mistake.file != "scenario" or not rows or "missing required" not in mistake.message:
        return mistake
    flags = " or ".join(f"--{row['name']} {row['example']}" for row in rows)
    return replace(mistake, message=f"{mistake.message}; such as {flags}")


def _written(row: dict[str, Any], flag: str, value: str, args: Sequence[str]) -> str:
    """The value of a flag as a scenario writes it."""
    if "value" in row:
        return str(row["value"])
    if not value:
        raise InputError(f"{flag}: expected a value, such as {flag} {row['example']}")
    if row.get("time") and value.replace(".", "", 1).isdigit():
        raise InputError(f"{flag} {value}: {value} ms or {value} s?")
    if row["name"] in ("nodes", "chips"):
        unit = _machine(flag, args) if row["name"] == "nodes" else 1
        ends = [_whole(flag, end) * unit for end in value.split("..", 1)]
        return str(ends[0]) if len(ends) == 1 else f"{{from: {ends[0]}, to: {ends[1]}}}"
    return f"{value} requests/s" if row["name"] == "rate" and value[-1].isdigit() else value


def _whole(flag: str, text: str) -> int:
    """A whole number; raises InputError."""
    if not text.isdigit():
        raise InputError(f"{flag}: expected a number or A..B, got {text!r}")
    return int(text)


def _machine(flag: str, args: Sequence[str]) -> int:
    from planner.catalogue.systems import machine_chips, system

    names = [*_values(args, "--system")]
    if not names:
        raise InputError(f"{flag} needs --system, or --chips")
    return machine_chips(system(names[-1]).chip.name)


def _values(args: Sequence[str], flag: str) -> Iterator[str]:
    for place, word in enumerate(args):
        if word == flag and place + 1 < len(args):
            yield args[place + 1]
        elif word.startswith(f"{flag}="):
            yield word.partition("=")[2]
