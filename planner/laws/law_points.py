"""Measured points of a scaling law, (parameters, tokens, loss), read from a CSV file.

Columns are named as people name them: `n`, `params`, `model size`; `d`, `tokens`, or the training
arithmetic `c`, `flop`, from which tokens are C / 6N; `loss`. A cell is a number in natural units
or a quantity in words, `70M` or `1.4T tokens`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planner.text.errors import InputError, Mistake, QuantityError, quoted
from planner.text.quantities import parse

LARGEST = 100_000  # rows
MOST_MISTAKES = 20  # that are told; a file with more has another column than was thought
FLOP_PER_TOKEN = 6.0  # per parameter: two forward, four backward

# {what is meant: names of a column that mean it, folded to letters and digits}
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "size": ("n", "nactive", "param", "params", "parameters", "size", "modelsize"),
    "tokens": ("d", "dpt", "token", "tokens", "trainingtokens", "data"),
    "flop": ("c", "cpt", "flop", "flops", "trainingflop", "trainingflops", "compute"),
    "loss": ("loss", "l", "nats", "finalloss", "testloss", "validationloss"),
}
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
DIMENSIONS = {"size": "params", "tokens": "tokens", "flop": "work", "loss": "number"}


@dataclass(frozen=True)
class Points:
    """Runs of a scaling study: arrays of one length.

    Attributes
    ----------
    size
        Active parameters.
    tokens
        Training tokens.
    loss
        Loss at the end [nat per token].
    file
        Where they come from, for messages.
    """

    size: np.ndarray
    tokens: np.ndarray
    loss: np.ndarray
    file: str = "points"

    def __len__(self) -> int:
        return len(self.loss)

    def without_highest(self, count: int) -> Points:
        """The points without the `count` of highest loss, as Besiroglu et al. drop five."""
        rest = np.sort(np.argsort(self.loss, kind="stable")[: len(self) - count])
        return Points(self.size[rest], self.tokens[rest], self.loss[rest], self.file)


def read_points(path: str | Path) -> Points:
    """The points of a CSV file with a header.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or a cell is not a positive quantity; the
        first twenty mistakes, with their lines.
    """
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(Mistake(file, None, None, "", "there is no such file of points")) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Mistake(file, None, None, "", f"cannot be read: {error}")) from error
    reader = csv.DictReader(text.splitlines())
    columns = _columns(file, list(reader.fieldnames or ()))
    rows: dict[str, list[float]] = {what: [] for what in columns}
    mistakes: list[Mistake] = []
    for row in reader:
        if reader.line_num > LARGEST:
            raise InputError(Mistake(file, None, None, "", f"more than {LARGEST} rows"))
        for what, column in columns.items():
            number, message = _cell(row.get(column), what)
            rows[what].append(number)
            if message:
                mistakes.append(Mistake(file, reader.line_num, None, column, message))
        if len(mistakes) >= MOST_MISTAKES:
            break
    if mistakes:
        raise InputError(mistakes)
    arrays = {what: np.asarray(numbers) for what, numbers in rows.items()}
    tokens = arrays.get("tokens")
    if tokens is None:
        tokens = arrays["flop"] / (FLOP_PER_TOKEN * arrays["size"])
    return Points(arrays["size"], tokens, arrays["loss"], file)


def _columns(file: str, header: list[str]) -> dict[str, str]:
    """{what is meant: column of the file}, tokens before arithmetic."""
    folded = {"".join(x for x in name.lower() if x.isalnum()): name for name in header if name}
    columns = {}
    for what, names in COLUMNS.items():
        for name in names:
            if name in folded:
                columns[what] = folded[name]
                break
    if "tokens" in columns:
        columns.pop("flop", None)
    lacking = [what for what in ("size", "loss") if what not in columns]
    lacking += [] if {"tokens", "flop"} & set(columns) else ["tokens"]
    if lacking:
        there = ", ".join(quoted(name) for name in header) or "none"
        apart = [mark for mark in SEPARATORS if len(header) == 1 and mark in header[0]]
        if apart:
            there += f"; cells are to be separated by commas, not by {SEPARATORS[apart[0]]}"
        wanted = "; ".join(f"{what} ({', '.join(COLUMNS[what][:3])})" for what in lacking)
        raise InputError(Mistake(file, 1, None, "", f"no column of {wanted}; columns: {there}"))
    return columns


def _cell(text: str | None, what: str) -> tuple[float, str]:
    """The number of a cell, or nan and what is wrong with it."""
    try:
        number = parse((text or "").strip(), DIMENSIONS[what])
    except QuantityError as error:
        return np.nan, str(error)
    if not (np.isfinite(number) and number > 0):
        return np.nan, f"{what} must be positive, got {quoted(text)}"
    return float(number), ""
