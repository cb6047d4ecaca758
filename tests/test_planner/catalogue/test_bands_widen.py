"""A band never narrows by what is further outside: of a place, of its numbers, of its layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalogue.chips import chip
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.hull import CHIP_SEPARATOR, added_deviation, dimensions
from planner.catalogue.profile import COEFFICIENTS, Profile, profile
from planner.text.tolerances import QUANTILE_90

NAMES = ("engines-2026", "vllm-2026", "steady-2024", "llama-cpp-2024")
QUANTITIES = ("tpot", "ttft", "usd_per_mtok")
TRIALS = 40
# Of a logarithm: the covariance is kept in eleven bits, and what rows left of an effect that they
# hardly told is as wide as nothing known of it.
KEPT = 0.004
# What is changed of a place that rows held, each as no row has it.
FARTHER = {
    "chip": {"chip": "x"}, "architecture": {"chip": "x", "architecture": "y"},
    "model": {"model": "m", "shape": "s"}, "version": {"version": "0.0"},
    "engine": {"engine": "e"}, "format": {"math": "int3"}, "cache": {"cache": "int3"},
    "attention": {"attention": "another"},
    "lent": {"engine": "", "runs": ("e", "f")},
}  # fmt: skip


def measured_place(whole: Profile, draw: np.random.Generator) -> RunContext | None:
    """A place all of whose names rows held; None where no format of its engine was."""
    hull, spread = whole.hull, whole.coefficient_spread
    assert hull is not None
    assert spread is not None
    pairs = [
        x for x in hull.names["engine_chip"] if whole.engine in ("any", x.split(CHIP_SEPARATOR)[1])
    ]
    on, engine = draw.choice(pairs).split(CHIP_SEPARATOR)
    formats = [
        x.split(CHIP_SEPARATOR)[0]
        for x in hull.names["format"]
        if x.endswith(CHIP_SEPARATOR + engine)
    ]
    if not formats:
        return None
    versions = [x for x in hull.names.get("version", ()) if x.startswith(f"{engine} ")]
    math, part = draw.choice(formats).split(" ")
    return RunContext(
        chip=on, architecture=chip(on).architecture, maker=chip(on).maker, engine=engine,
        version=draw.choice(versions).split(" ", 1)[1] if versions else "", math=math,
        cache=draw.choice(hull.names["cache"]), attention=draw.choice(hull.names["attention"]),
        model=draw.choice(hull.names["model"]), shape=draw.choice(spread.values["new_model"]),
        months=float(draw.integers(0, 8)), experts=part == "experts",
    )  # fmt: skip


def widths(seen: Profile, shares: np.ndarray, beyond: dict[str, np.ndarray]) -> np.ndarray:
    """Logarithms by which both ends of every band lie off the estimate, shape (6, n)."""
    ends = [seen.band_ends(quantity, shares, beyond) for quantity in QUANTITIES]
    return np.concatenate([[-np.log(low), np.log(high)] for low, high in ends])


def random_shares(draw: np.random.Generator, n: int) -> np.ndarray:
    """Shares of n times by coefficient, few of them large."""
    return draw.dirichlet(np.full(len(COEFFICIENTS), 0.15), size=n).T


@pytest.mark.parametrize("name", NAMES)
def test_one_name_more_outside_never_narrows(name: str) -> None:
    """Chips, architectures, models, versions, engines, formats, one after another in any order."""
    draw, whole = np.random.default_rng(17), profile(name)
    wider = dict.fromkeys(FARTHER, False)
    for _ in range(TRIALS):
        place = measured_place(whole, draw)
        if place is None:
            continue
        shares = random_shares(draw, 5)
        near = widths(whole.at(place), shares, {})
        for what in draw.permutation(list(FARTHER)):
            place = replace(place, **FARTHER[what])
            far = widths(whole.at(place), shares, {})
            assert (far >= near - KEPT).all(), what
            wider[what] |= bool((far > near + KEPT).any())
            near = far
    told = {what: is_so for what, is_so in wider.items() if what != "version" or "2026" in name}
    assert all(told.values()), wider


@pytest.mark.parametrize("name", NAMES)
def test_one_number_more_outside_never_narrows_and_what_no_run_has_always_widens(name: str) -> None:
    """Batches, groups of chips, drafts; stages, half-batches and uneven experts of a layout."""
    draw, whole = np.random.default_rng(18), profile(name)
    hull = whole.hull
    assert hull is not None
    beyond = {x.name: np.array([hull.ranges[x.name][1] * 2 + 3]) for x in dimensions().values()
              if x.name in hull.ranges}  # fmt: skip
    levels = {x.name: np.array([1]) for x in dimensions().values() if x.levels}
    assert {"stages", "batch", "drafts"} <= beyond.keys()
    assert levels.keys() == {"overlap", "uneven", "ranks"}
    for _ in range(TRIALS):
        place = measured_place(whole, draw)
        if place is None:
            continue
        seen, shares = whole.at(place), random_shares(draw, 5)
        point: dict[str, np.ndarray] = {}
        near, kinds = widths(seen, shares, {}), set()
        for what in draw.permutation([*beyond, *levels]):
            point[what] = (beyond | levels)[what]
            far = widths(seen, shares, hull.beyond(point))
            assert (far >= near).all(), what
            kind = dimensions()[what].regime
            if dimensions()[what].adds and kind not in kinds:
                assert (far > near).all(), what
            kinds.add(kind)
            near = far


def test_what_an_axis_adds_goes_under_the_root() -> None:
    """By hand, of the band of a known place and the standard deviations of stages and halves."""
    whole = profile("engines-2026")
    place = RunContext("h100", "hopper", "vllm", "0.18.0", "fp8", "fp8", "grouped", "llama-3.1-70b",
                  shape="80 layers of 8192", maker="nvidia")  # fmt: skip
    seen, shares = whole.at(place), {"e_w": 0.5, "t_layer": 0.3, "t_hop": 0.2}
    assert seen.kinds == ()
    low, high, scatter = whole.coefficient_spread.quantiles["known"]["tpot"]
    both = [added_deviation("tpot")[kind] for kind in ("new_stages", "new_overlap")]
    off, more = np.hypot(seen.sigma(shares), scatter), QUANTILE_90 * np.hypot(*both)
    band = seen.band("tpot", shares, dict.fromkeys(("new_stages", "new_overlap"), np.True_))
    assert band.low == pytest.approx(np.exp(-np.hypot(low * off, more)))
    assert band.high == pytest.approx(np.exp(np.hypot(high * off, more)))


def test_a_band_without_coefficients_widens_as_well() -> None:
    """Of a profile that does not say how far its coefficients may be off, both ends by the root."""
    plain = replace(profile("engines-2026"), coefficient_spread=None)
    band = plain.band("ttft", {"e_pf": 1.0}, {"new_stages": np.True_})
    for end, known in ((-np.log(band.low), -np.log(plain.bands["ttft"].low)),
                       (np.log(band.high), np.log(plain.bands["ttft"].high))):  # fmt: skip
        assert end == pytest.approx(
            np.hypot(known, QUANTILE_90 * added_deviation("ttft")["new_stages"])
        )


def test_a_version_or_an_engine_that_is_not_told_is_no_narrower_than_one_that_is() -> None:
    """Untold it may be any: what versions, or engines, differ by is in the band."""
    draw, whole = np.random.default_rng(19), profile("engines-2026")
    for _ in range(TRIALS):
        place = measured_place(whole, draw)
        if place is None:
            continue
        shares = random_shares(draw, 5)
        told = widths(whole.at(place), shares, {})
        untold = widths(whole.at(replace(place, version="")), shares, {})
        any_engine = widths(whole.at(replace(place, version="", engine="")), shares, {})
        assert (untold >= told - KEPT).all()
        assert (any_engine >= untold - KEPT).all()
        assert (untold > told * 1.02).any()
