"""Arithmetic that published training runs reached, by chip, kind of model and dtype."""

from dataclasses import dataclass
from functools import cache

from planner.catalogue.chips import Chip
from planner.text.errors import CatalogueError
from planner.text.tables import table

FILE = "training.toml"
TERA = 1e12


@dataclass(frozen=True)
class TrainingRate:
    """Rate of one published run per chip [flop/s], and its chip; `kind`: benchmark or measured."""

    chip: str
    sparse: bool
    dtype: str
    value: float
    model: str
    kind: str
    source: str
    as_of: str
    verified: str

    def mfu(self, peak: float) -> float:
        """Share of a dense peak [flop/s]."""
        return self.value / peak


@dataclass(frozen=True)
class TextStock:
    """Distinct tokens of public text, and the interval that contains `coverage` of it [token]."""

    tokens: float
    low: float
    high: float
    coverage: float
    source: str
    as_of: str
    verified: str


def public_text() -> TextStock:
    """Default stock of training text."""
    return TextStock(**table("planner.catalogue", FILE)["stock"])


@cache
def training_rates() -> tuple[TrainingRate, ...]:
    """Every row of the catalogue."""
    data = table("planner.catalogue", FILE)
    return tuple(
        TrainingRate(
            **{key: row[key] for key in ("chip", "sparse", "dtype", "model", "kind")},
            value=row["tflops"] * TERA,
            **data["source"][row["from"]],
        )
        for row in data["rate"]
    )


def training_rate(chip: Chip, dtype: str, *, sparse: bool) -> TrainingRate:
    """The published rate of a chip, or of the chip that it is taken to be as good as.

    Raises CatalogueError if no run of that kind is known.
    """
    rates = {(row.chip, row.sparse, row.dtype): row for row in training_rates()}
    lender = table("planner.catalogue", FILE)["borrows"].get(chip.name, chip.name)
    for name in (chip.name, lender):
        if (name, sparse, dtype) in rates:
            return rates[name, sparse, dtype]
    kind = "sparse" if sparse else "dense"
    others = sorted(
        {f"{row.dtype} of {'sparse' if row.sparse else 'dense'} models" for row in rates.values()
         if row.chip == lender}
    )  # fmt: skip
    hint = f"; known are {', '.join(others)}" if others else ""
    raise CatalogueError(
        f"no published training run of a {kind} model in {dtype} on {chip.name} is known{hint}; "
        "give mfu, such as 0.4"
    )
