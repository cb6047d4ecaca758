"""Fits the stacks that ship: python -m planner.calibration.training.shipped_stacks FILE..."""

import sys
from collections.abc import Sequence
from pathlib import Path

from planner.calibration.training.stack_file import stack_table, stack_text
from planner.calibration.training.step_fit import findings_of
from planner.calibration.training.step_scores import by_stack, fitted, form_of
from planner.catalogue.training import training_stacks
from planner.measurements.readers.training_rows import training_rows

CATALOGUE = Path(training_stacks.__file__).parents[1] / training_stacks.FILE
FIRST = "[stack.megatron"  # priors and the stack of physics alone stand before what is fitted


def catalogue_text(kept_text: str, tables: Sequence[Path]) -> str:
    """The catalogue's text, its fitted stacks replaced by fits of these tables."""
    text = kept_text[: kept_text.index(FIRST)]
    stacks = {
        name: rows
        for path in tables
        for name, rows in by_stack(training_rows(path)).items()
        if sum(row.usable for row in rows)
    }
    findings = {name: findings_of(fitted(rows, form_of(rows))) for name, rows in stacks.items()}
    for name, rows in stacks.items():
        text += stack_text(stack_table(name, rows, findings=findings), f"stack.{name}.") + "\n"
    return text


if __name__ == "__main__":
    before = CATALOGUE.read_text(encoding="utf-8")
    after = catalogue_text(before, [Path(name) for name in sys.argv[1:]])
    CATALOGUE.write_text(after, encoding="utf-8")
