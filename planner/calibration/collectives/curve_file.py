"""The profile as a file: every curve that ships, measured or borrowed, with errors and bands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from planner.calibration.collectives.domain_crossing import crossings
from planner.calibration.collectives.evidence import COVERAGE, Evidence, MeasuredCurves, cells_of
from planner.calibration.collectives.pooling import envelope
from planner.catalogue.collective_curves import ANY, Between, Curve
from planner.measurements.readers.collective_rows import (
    FAMILIES,
    MACHINES,
    REDUCE_FROM,
    Row,
    rate_of,
    traffic_of,
)
from planner.network.coefficients import Triple, fit_triple, intervals

SEED, DRAWS = 20261121, 40
GRID = 2.0 ** np.arange(9, 30)  # 512 bytes to 512 MiB
SHAPES = (
    *(("all-gather", "ring", n) for n in (2, 4, 8)),
    *(("reduce-scatter", "ring", n) for n in (2, 4, 8)),
    *(("all-to-all", "pairwise", n) for n in (2, 4, 8)),
    *(("all-reduce", "ring", n) for n in (2, 4, 8)),
    ("all-reduce", "in-network", 8),
    *(("all-reduce", "fused", n) for n in (2, 4, 8)),
)
TYPICAL = {"ampere": "a100", "hopper": "h100", "blackwell": "b200", ANY: "h100"}
DIGITS = 5


def profile(curves: Sequence[MeasuredCurves], evidence: Evidence) -> list[Curve]:
    """Every curve that ships: those measured, then those borrowed, chips before families."""
    curve_texts = [_measured(curve) for curve in curves]
    have = {(c.chip, c.operation, c.algorithm, c.n) for c in curve_texts}
    borrowed = []
    for owner in (*MACHINES, *TYPICAL):
        for operation, algorithm, n in SHAPES:
            can_reduce = FAMILIES.get(owner, owner) in (*REDUCE_FROM, ANY)
            if (owner, operation, algorithm, n) in have or (
                algorithm == "in-network" and not can_reduce
            ):
                continue
            borrowed.append(_borrowed(evidence, owner, operation, algorithm, n))
    return [*curve_texts, *borrowed]


def written(
    rows: Sequence[Row],
    reasons: Mapping[str, int],
    evidence: Evidence,
    curves: Sequence[Curve],
    source: str,
    as_of: str,
) -> str:
    """The file."""
    floors = {c.chip: c.alpha for c in curves if c.algorithm == "in-network" and c.n == 8}
    points = sum(len(c.sizes) for c in curves if c.evidence == "measured")
    left = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    lines = [
        "# Written by planner.calibration.collectives.",
        f"# Rows without a use: {left or 'none'}; others that no curve holds are checks.",
        "# Errors are relative; unseen_ means predicted without the curve, the chip, the family.",
        "# Bands hold measured / predicted; intervals hold 80 % of refits.",
        f'as_of = "{as_of}"',
        f'source = "{source}"',
        f"rows = {points}",
        f"coverage = {COVERAGE}",
        "\n[families]",
        *(f'{chip} = "{family}"' for chip, family in FAMILIES.items()),
        "\n[reduce_from]",
        *(f"{family} = {n}" for family, n in REDUCE_FROM.items()),
        "\n[bands]",
        *(f"{kind} = {_list(band)}" for kind, band in evidence.bands().items()),
        "\n[errors]",
        *(f"{name} = {_table(found)}" for name, found in evidence.errors().items()),
        *(line for each in crossings(rows, floors) for line in _between(each)),
        *(line for curve in curves for line in _curve(curve)),
    ]
    return "\n".join(lines) + "\n"


def _measured(curve: MeasuredCurves) -> Curve:
    seconds, count = envelope(curve.seconds), len(curve.sizes)

    def refit(generator: np.random.Generator) -> Triple:
        drawn = np.sort(generator.integers(0, count, count))
        return fit_triple(curve.sizes[drawn], curve.wire[drawn], seconds[drawn])

    return _made(curve, seconds, "measured", curve.fitted(), refit)


def _borrowed(evidence: Evidence, owner: str, operation: str, algorithm: str, n: int) -> Curve:
    blank = _blank(owner, operation, algorithm, n)
    mean, covariance = evidence.pool.predict(cells_of(blank))
    if algorithm == "fused":  # a fused kernel hands long messages to the library
        least = REDUCE_FROM.get(FAMILIES.get(owner, owner))
        library = "ring" if least is None or n < least else "in-network"
        borrowed = evidence.pool.predict(cells_of(_blank(owner, operation, library, n)))[0]
        mean = np.minimum(mean, borrowed)
    seconds = np.maximum.accumulate(np.exp(mean))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    def refit(generator: np.random.Generator) -> Triple:
        return blank.fitted(np.exp(mean + root @ generator.standard_normal(len(mean))))

    return _made(blank, seconds, "borrowed", blank.fitted(seconds), refit)


def _blank(owner: str, operation: str, algorithm: str, n: int) -> MeasuredCurves:
    """A curve without times."""
    rate = rate_of(TYPICAL.get(owner, owner), operation, n)
    traffic = traffic_of(operation, algorithm, n, family=FAMILIES.get(owner, owner))
    return MeasuredCurves(owner, operation, algorithm, n, GRID, GRID, traffic, rate)


def _made(
    of: MeasuredCurves,
    seconds: np.ndarray,
    evidence: str,
    triple: Triple,
    refit: Callable[[np.random.Generator], Triple],
) -> Curve:
    return Curve(
        of.chip, of.operation, of.algorithm, of.n, of.rate, of.traffic, evidence,
        triple.alpha, triple.efficiency, triple.gamma, intervals(refit, SEED, DRAWS),
        tuple(of.sizes.tolist()), tuple(seconds.tolist()),
    )  # fmt: skip


def _between(crossing: Between) -> Iterator[str]:
    yield "\n[[between]]"
    yield f'network = "{crossing.network}"'
    yield f'operation = "{crossing.operation}"'
    yield f'algorithm = "{crossing.algorithm}"'
    for name in ("step", "efficiency", "delay"):
        yield f"{name} = {_short(getattr(crossing, name))}"


def _curve(curve: Curve) -> Iterator[str]:
    yield "\n[[curve]]"
    for name in ("chip", "operation", "algorithm"):
        yield f'{name} = "{getattr(curve, name)}"'
    yield f"n = {curve.n}"
    yield f"rate = {_short(curve.rate)}"
    yield f"traffic = {_short(curve.traffic, 10)}"
    yield f'evidence = "{curve.evidence}"'
    for name in ("alpha", "efficiency", "gamma"):
        yield f"{name} = {_short(getattr(curve, name))}"
    yield f"intervals = {{ {', '.join(f'{k} = {_list(v)}' for k, v in curve.intervals.items())} }}"
    yield f"bytes = {_list(curve.sizes, 10)}"
    yield f"us = {_list((1e6 * t for t in curve.seconds), 6)}"


def _table(values: Mapping[str, float]) -> str:
    return f"{{ {', '.join(f'{name} = {_short(value)}' for name, value in values.items())} }}"


def _list(values: Iterable[float], digits: int = DIGITS) -> str:
    return f"[{', '.join(_short(value, digits) for value in values)}]"


def _short(value: float, digits: int = DIGITS) -> str:
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"
