"""What commands share: options (rows of options.toml), values that a shell completes, refusals."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from planner.text.console import note
from planner.text.errors import InputError
from planner.text.tables import table

ROWS = table("planner.cli", "options.toml")
HELP = table("planner.cli", "commands.toml")


def documented(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are options and arguments with the help of their rows."""
    rows = {**ROWS["several"], **ROWS.get(command.__name__, {})}
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


def epilog_of(name: str) -> str:
    """What stands below a command's help: an example of it, as it is typed."""
    examples = HELP["examples"][name]
    return "\b\n" + "\n".join(["Example:", *(f"  planner {each}" for each in examples)])


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
    """Raises InputError where `--out`, a folder of files, is a file."""
    if out is not None and out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file, expected a folder")


def require_file(out: Path | None, example: str) -> None:
    """Raises InputError where `--out`, a file such as `example`, is a folder."""
    if out is not None and out.is_dir():
        raise InputError(f"--out {out}: is a folder, expected a file such as {example}")


def require_workers(workers: int) -> None:
    """Raises InputError for fewer than one process."""
    if workers < 1:
        raise InputError(f"--workers: expected at least 1, got {workers}")


Names = Callable[[], Iterable[str]]


def _models() -> Iterable[str]:
    from planner.catalogue.models import names

    return names()


def _systems() -> Iterable[str]:
    from planner.catalogue.systems import system_names

    return system_names()


def _laws() -> Iterable[str]:
    from planner.catalogue.scaling_laws import law_names

    return law_names()


def _profiles() -> Iterable[str]:
    from planner.catalogue.profile import profile_names

    return ("auto", *profile_names())


def _kinds() -> Iterable[str]:
    from planner.scenario.kinds import ROOMS

    return ROOMS


def _engines() -> Iterable[str]:
    from planner.text.tables import table

    return (*table("planner.problems.serving.step", "engine_rules.toml"), "kubernetes")


def _catalogues() -> Iterable[str]:
    from planner.report.text.catalog import catalog

    listed = catalog()["kinds"]
    return listed if isinstance(listed, dict) else ()


SET: dict[str, Names] = {
    "model": _models,
    "system": _systems,
    "engine": _engines,
    "law": _laws,
    "profile": _profiles,
    "problem": _kinds,
}


def _beginning(names: Names) -> Callable[[str], list[str]]:
    """The names that begin as what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _entries(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the catalogue that the words before name."""
    from planner.report.text.catalog import catalog

    kinds = catalog()["kinds"]
    listed = kinds.get(ctx.params.get("kind"), ()) if isinstance(kinds, dict) else ()
    return [name for name in listed if name.startswith(incomplete)]


def _changes(incomplete: str) -> list[str]:
    """`PATH=VALUE` for the paths whose values have names; before the sign the paths."""
    path, sign, value = incomplete.partition("=")
    if not sign:
        return [f"{name}=" for name in SET if name.startswith(path)]
    names = SET.get(path, tuple)
    return [f"{path}={name}" for name in names() if name.startswith(value)]


COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "models": _beginning(_models),
    "systems": _beginning(_systems),
    "kinds": _beginning(_kinds),
    "engines": _beginning(_engines),
    "catalogues": _beginning(_catalogues),
    "entries": _entries,
    "changes": _changes,
}
