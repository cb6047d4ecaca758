"""The profile of collectives as a file: every curve that ships, measured or borrowed, and more.

Beside the curves stand their errors and bands, and what it adds to leave a scale-up domain: latency
of a step, efficiency, mid-range delay. Everything is seeded: the same rows give the same file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np

from planner.calibration.own_profile import toml_keys
from planner.catalogue.collective_curves import ANY_CHIP, CrossingCosts, Curve
from planner.catalogue.profile import COVERAGE
from planner.measurements.measurement import CollectiveRow
from planner.measurements.readers import collective_rows
from planner.measurements.readers.collective_rows import FAMILIES, MACHINES, REDUCE_FROM
from planner.network.collective_times import Triple
from planner.network.group import LONG_MESSAGE
from planner.text.tables import table, toml_lines, toml_value
from tools.fit.curve_pooling import (
    DELAY,
    Evidence,
    MeasuredCurves,
    cells_of,
    curves_of,
    envelope,
    fit_triple,
    rate_of,
    read_collectives,
    traffic_of,
)
from tools.fit.shipped_profile import inline
from topologies import group_rate, machine

PROFILE = table("tools.fit", "curves.toml")
TYPICAL: Mapping[str, str] = PROFILE["typical"]
SEED, DRAWS = 20261121, 40
GRID = 2.0 ** np.arange(9, 30)  # 512 bytes to 512 MiB
FIVE, SIX, TEN = "{:.5g}".format, "{:.6g}".format, "{:.10g}".format  # digits of numbers
# DeepEP's normal kernels at 16 chips reach 43 of 50 GB/s in both directions, where what stays in
# the node is not counted with what leaves it (docs/legacy.md at dd758ca).
NORMAL = 0.86
HOPS = [
    CrossingCosts(name, "p2p", ANY_CHIP, delay=0.0, **hop) for name, hop in PROFILE["hops"].items()
]


def collectives_text(rows: Path) -> str:
    """The profile fitted to a table of rows, as it is written to its file."""
    read, reasons = read_collectives(rows)
    curves = curves_of(read)
    evidence = Evidence(curves)
    return written(read, reasons, evidence, profile(curves, evidence))


def profile(curves: Sequence[MeasuredCurves], evidence: Evidence) -> list[Curve]:
    """Every curve that ships: those measured, then those borrowed, chips before families."""
    curve_texts = [_measured(curve) for curve in curves]
    have = {(c.chip, c.operation, c.algorithm, c.n) for c in curve_texts}
    borrowed = []
    for owner in (*MACHINES, *TYPICAL):
        for operation, algorithm, n in PROFILE["shapes"]:
            can_reduce = FAMILIES.get(owner, owner) in (*REDUCE_FROM, ANY_CHIP)
            if (owner, operation, algorithm, n) in have or (
                algorithm == "in-network" and not can_reduce
            ):
                continue
            borrowed.append(_borrowed(evidence, owner, operation, algorithm, n))
    return [*curve_texts, *borrowed]


def written(
    rows: Sequence[CollectiveRow],
    reasons: Mapping[str, int],
    evidence: Evidence,
    curves: Sequence[Curve],
) -> str:
    """The file."""
    floors = {c.chip: c.alpha for c in curves if c.algorithm == "in-network" and c.n == 8}
    points = sum(len(c.sizes) for c in curves if c.evidence == "measured")
    left = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    lines = [
        "# Written by tools.fit.",
        f"# Rows without a use: {left or 'none'}; others that no curve holds are checks.",
        "# Errors are relative; unseen_ means predicted without the curve, the chip, the family.",
        "# Bands hold measured / predicted; intervals hold 80 % of refits.",
        f'as_of = "{PROFILE["as_of"]}"',
        f'source = "{PROFILE["source"]}"',
        f"rows = {points}",
        f"coverage = {COVERAGE}",
        "\n[families]",
        *(f'{chip} = "{family}"' for chip, family in FAMILIES.items()),
        "\n[reduce_from]",
        *(f"{family} = {n}" for family, n in REDUCE_FROM.items()),
        "\n[bands]",
        *toml_lines({kind: tuple(band) for kind, band in evidence.bands().items()}, FIVE),
        "\n[errors]",
        *(f"{name} = {inline(scores, FIVE)}" for name, scores in evidence.errors().items()),
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


def intervals(
    draws: Callable[[np.random.Generator], Triple], seed: int, count: int
) -> dict[str, tuple[float, float]]:
    """Ranges [10 %, 90 %] of the coefficients over refits."""
    generator = np.random.default_rng(seed)
    made = [draws(generator) for _ in range(count)]
    ranges = {}
    for name in ("alpha", "efficiency", "gamma"):
        low, high = np.quantile([getattr(each, name) for each in made], [0.1, 0.9])
        ranges[name] = (float(low), float(high))
    return ranges


def _between(crossing: CrossingCosts) -> Iterator[str]:
    yield "\n[[between]]"
    names = ("network", "operation", "algorithm", "step", "efficiency", "delay")
    yield from toml_keys(crossing, *names, number=FIVE)


def _curve(curve: Curve) -> Iterator[str]:
    yield "\n[[curve]]"
    yield from toml_keys(curve, "chip", "operation", "algorithm", "n", "rate", number=FIVE)
    yield from toml_keys(curve, "traffic", number=TEN)
    yield from toml_keys(curve, "evidence", "alpha", "efficiency", "gamma", number=FIVE)
    yield f"intervals = {inline(curve.intervals, FIVE)}"
    yield f"bytes = {toml_value(curve.sizes, TEN)}"
    yield f"us = {toml_value([1e6 * t for t in curve.seconds], SIX)}"


def crossings(rows: Sequence[CollectiveRow], inner: dict[str, float]) -> list[CrossingCosts]:
    """What each network adds.

    Parameters
    ----------
    rows : measured times, those between domains among them.
    inner : floor of an all-reduce inside one full domain of a family. [s]
    """
    by_system: dict[str, list[CollectiveRow]] = {}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    of = {
        part: by_system.get(system, [])
        for part, system in collective_rows.TABLES["crossings"].items()
    }
    sweep = _sweep(of["efa"], "efa", inner["blackwell"])
    # Over InfiniBand ends alone were timed: between them long messages do as in the sweep.
    delay = sweep.delay if sweep else DELAY
    made = [
        sweep,
        *_infiniband(of["floor"], of["islands"], inner["hopper"], delay),
        *_exchanges(of["exchanges"]),
    ]
    return [*filter(None, made), *HOPS]


def _sweep(rows: Sequence[CollectiveRow], network: str, inner: float) -> CrossingCosts | None:
    """From all-reduces of many sizes over several nodes."""
    rows = sorted((r for r in rows if r.nodes > 1), key=lambda r: r.size)
    if not rows:
        return None
    sizes = np.array([row.size for row in rows])
    rate = group_rate(machine("hgx-b200"), rows[0].n).all_gather
    traffic = traffic_of("all-reduce", "ring", rows[0].n)
    triple = fit_triple(
        sizes, traffic * sizes / rate, envelope(np.array([row.seconds for row in rows]))
    )
    steps = 2 * log2(rows[0].nodes)
    step = (triple.alpha - inner) / steps
    return CrossingCosts(
        network, ANY_CHIP, ANY_CHIP, step, triple.efficiency, triple.gamma**2 * rate / traffic
    )


def _infiniband(
    floors: Sequence[CollectiveRow], longs: Sequence[CollectiveRow], inner: float, delay: float
) -> list[CrossingCosts]:
    """From the floor over two nodes and the best long message over islands.

    All-reduces of long messages have a `delay` [s] of their own.
    """
    if not floors or not longs:
        return []
    step = (min(row.seconds for row in floors) - inner) / (2 * log2(floors[0].nodes))
    best = min(longs, key=lambda row: row.seconds)
    island = replace(machine("gb200-nvl72"), chips_per_domain=best.n // best.nodes)
    bound = (
        traffic_of("all-reduce", "ring", best.n) * best.size / group_rate(island, best.n).all_gather
    )
    # A share of the bound; what the square-root term takes of a message this long is part of it.
    return [
        CrossingCosts("infiniband", *of, step, bound / (best.seconds - np.sqrt(bound * late)), late)
        for of, late in (((ANY_CHIP, ANY_CHIP), DELAY), (("all-reduce", LONG_MESSAGE), delay))
    ]


def _exchanges(rows: Sequence[CollectiveRow]) -> list[CrossingCosts]:
    """From dispatches and combines of one size over many nodes."""
    made = []
    for operation in ("dispatch", "combine"):
        over = [row for row in rows if row.operation == operation and row.nodes > 1]
        if not over:
            continue
        sizes = np.array([row.size for row in over])
        nodes = machine("hgx-h800")
        rates = np.array([group_rate(nodes, row.n).all_to_all for row in over])
        traffic = np.array([traffic_of(operation, row.algorithm, row.n) for row in over])
        seconds = np.array([row.seconds for row in over])
        triple = fit_triple(sizes, traffic * sizes / rates, seconds, root=False)
        floor, share = triple.alpha, triple.efficiency
        low = CrossingCosts("infiniband", operation, "deepep-low-latency", floor, share, 0.0)
        made += [low, replace(low, algorithm="deepep-normal", efficiency=NORMAL)]
    return made
