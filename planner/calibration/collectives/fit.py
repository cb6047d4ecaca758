"""From a table of measured collectives to the profile as text.

Fit the profile of collectives that ships.

Run `python -m planner.calibration.collectives --rows CSV --out TOML`. Everything is seeded: the
same rows give the same file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.calibration.collectives.curve_file import profile, written
from planner.calibration.collectives.evidence import Evidence, curves_of
from planner.measurements.readers.collective_rows import read_collectives

AS_OF = "2026-11-21"
SOURCE = (
    "nccl-tests sweeps and TensorRT-LLM kernels of ai-dynamo/aiconfigurator at 095f58a; "
    "deepseek-ai/DeepEP at dd758ca; stas00/ml-engineering at 744d01e; NVIDIA/nccl issues 1244, 1801"
)


def fitted(rows: Path) -> str:
    """The profile fitted to a table of rows, as it is written to its file."""
    read, reasons = read_collectives(rows)
    curves = curves_of(read)
    evidence = Evidence(curves)
    return written(read, reasons, evidence, profile(curves, evidence), SOURCE, AS_OF)


def main(arguments: list[str] | None = None) -> None:
    """Read the rows, fit every curve, write one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("--rows", "--out"):
        parser.add_argument(name, type=Path, required=True)
    options = parser.parse_args(arguments)
    options.out.write_text(fitted(options.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
