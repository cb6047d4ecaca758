"""What commands share: the help of their options, a row of options.toml each, and refusals."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from planner.cli.completions import COMPLETIONS
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
