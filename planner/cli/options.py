"""Options that several commands take, and what they share: one sentence of help for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from planner.text.console import note
from planner.text.errors import InputError

File = Annotated[str, typer.Argument(metavar="FILE", help="scenario: YAML, TOML, JSON, or -")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="change one value")
]
Out = Annotated[Path | None, typer.Option("--out", help="write here instead of printing")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="processes that solve")]
Facts = Annotated[
    list[str] | None,
    typer.Option("--fact", metavar="NAME=VALUE", help="what a file does not say: system=hgx-h200"),
]
Models = Annotated[
    list[Path] | None,
    typer.Option(
        "--models",
        metavar="FOLDER",
        help="config.json of models that the catalogue lacks; default hf_configs beside the file",
    ),
]


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
