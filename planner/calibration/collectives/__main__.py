"""Fit the profile of collectives that ships.

Run `python -m planner.calibration.collectives --rows CSV --out TOML`. Everything is seeded: the
same rows give the same file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.calibration.collectives.fit import fitted


def main(arguments: list[str] | None = None) -> None:
    """Read the rows, fit every curve, write one file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("--rows", "--out"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args(arguments)
    given.out.write_text(fitted(given.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
