"""Answers as JSON and PDF, and files of them, written whole or not at all."""

import errno
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from planner.text.console import note, show
from planner.text.errors import InputError, MissingExtra, PlannerError, SolverError

DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # full, over quota, too much, broken


def dumps(document: object) -> str:
    """The document as indented JSON text.

    Raises ValueError if a number in it is not finite: NaN and Infinity are no JSON.
    """
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)


def pdf(markup: str) -> bytes:
    """The document as PDF.

    Raises MissingExtra if `typst` is not installed; SolverError if the markup does not compile: a
    fault of ours.
    """
    try:
        import typst
    except ImportError as error:
        raise MissingExtra("typst", "pdf", "a PDF") from error
    try:
        made = typst.compile(markup.encode(), ignore_system_fonts=True, format="pdf")
    except RuntimeError as error:
        raise SolverError(f"typst: {error}") from error
    if not isinstance(made, bytes):
        raise SolverError("typst made something else than one PDF")
    return made


def deliver(content: str | bytes, out: Path | None) -> None:
    """To a file, else to standard output.

    Raises InputError if the file cannot be written, or what is no text would go to a terminal.
    """
    if out is not None:
        write(out, content)
        note(f"wrote {out}", warning=True)
    elif isinstance(content, str):
        show(content.rstrip("\n"), exact=True)
    elif sys.stdout is not None and sys.stdout.isatty():
        raise InputError("a PDF is not for a terminal; name a file, such as --out derivations.pdf")
    else:
        show(content)


def file_format(out: Path) -> str:
    """The form that a file's ending names, such as "svg"."""
    return out.suffix.lower().removeprefix(".")


def check_file(out: Path, option: str, forms: Sequence[str], verb: str = "written") -> str:
    """The form of a file; InputError, before anything is computed, if it cannot be written."""
    if file_format(out) not in forms:
        endings = ", ".join(f".{form}" for form in forms)
        raise InputError(f"{option} {out}: a file that ends in one of {endings} is {verb}")
    if out.is_dir():
        raise InputError(f"{option} {out}: is a folder, expected a file")
    return file_format(out)


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically by a rename, folders included; text ends with a newline.

    A device or a pipe is written to as it stands. Raises InputError if it cannot be written,
    SolverError if the disk is at fault, not the name; what was there is then as it was.
    """
    if isinstance(content, str):
        content = (content if content.endswith("\n") else content + "\n").encode()
    try:
        _write(path, content)
    except OSError as error:
        raise unwritten(path, error) from error


def unwritten(path: Path, error: OSError) -> PlannerError:
    """The error for a file that was not written: SolverError if the disk is full or broken."""
    message = f"{path} cannot be written: {error.strerror or error}; name another file"
    return (SolverError if error.errno in DISK else InputError)(message)


def resolve_links(path: Path) -> Path:
    """The file that links lead to, there or not; OSError where they lead round in a ring."""
    with suppress(FileNotFoundError):
        path.stat()  # a link loop is an OSError here, and may be a RuntimeError in resolve
    return path.resolve()


def _write(path: Path, content: bytes) -> None:
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    target = resolve_links(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
