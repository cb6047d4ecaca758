"""What the rows of a profile cover, and what it takes to leave them."""

from dataclasses import replace

import numpy as np
import pytest

from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.hull import MAX_EXTRAPOLATION, Hull, dimensions, hull_names, parse_hull
from planner.catalogue.profile import COEFFICIENTS, profile, profile_names
from tests.loops import for_all

HULL = profile("engines-2026").hull
INSIDE = {
    **hull_names(
        RunContext("h100", "hopper", "vllm", "0.18.0", "fp8", "fp8", "grouped", "llama-3.1-70b")
    ),
    "overlap": np.array([0]), "uneven": np.array([0]), "stages": 1.0, "chips": 8.0,
    "batch": 64.0, "context": 2250.0, "prompt": 2000.0, "ep": 8.0, "domains": 1.0, "drafts": 0.0,
    "ranks": np.array([0]),
}  # fmt: skip
BEYOND = {
    "model": "another", "chip": "another on vllm", "engine": "another", "version": "vllm 0.0",
    "engine_chip": "mi300x on vllm", "format": "mxfp4 weights on vllm", "attention": "another",
    "cache": "int4", "stages": 2.0,
    "overlap": np.array([1]), "uneven": np.array([1]), "batch": 4096.0, "context": 1e6,
    "prompt": 20.0, "ep": 256.0, "chips": 256.0, "domains": 9.0, "drafts": 3.0,
    "ranks": np.array([1]),
}  # fmt: skip


def test_a_point_among_the_rows_is_inside():
    """Nothing of it is named."""
    assert not HULL.outside(INSIDE)


@for_all("name", list(dimensions()))
def test_each_dimension_moved_alone_is_the_only_one_named(name):
    """Whatever the others, which stay."""
    moved = INSIDE | {name: BEYOND[name]}
    assert [each.name for each in HULL.outside(moved)] == [name]
    assert set(dimensions()) == set(INSIDE) == set(BEYOND)


@for_all("name", [n for n, each in dimensions().items() if each.unit])
def test_the_ends_of_a_range_are_inside_and_a_quarter_more(name):
    """What lies a little beyond an end is no news; half as much again is."""
    low, high = HULL.ranges[name]
    for asked in (low, high, low / MAX_EXTRAPOLATION * 1.001, high * MAX_EXTRAPOLATION * 0.999):
        assert not HULL.outside({name: asked})
    if high:
        assert [each.name for each in HULL.outside({name: high * 1.5})] == [name]


def test_what_follows_is_not_said_twice():
    """A new engine runs on no chip yet, and no format."""
    moved = INSIDE | {"engine": "x", "engine_chip": "h100 on x", "format": "fp8 weights on x"}
    assert [each.name for each in HULL.outside(moved)] == ["engine"]


def test_no_engine_in_particular_is_any_of_them():
    """A format that one of the engines ran in is inside."""
    assert not HULL.outside({"format": "mxfp4 experts", "engine_chip": "gb300"})
    assert [each.name for each in HULL.outside({"format": "int8 experts"})] == ["format"]


@for_all("name", profile_names())
def test_every_profile_has_a_hull(name):
    """With names of the catalogue, and ranges from the least to the most."""
    hull = profile(name).hull
    assert all(0 <= low <= high for low, high in hull.ranges.values())
    assert set(hull.widths) <= set(COEFFICIENTS)


def test_every_coefficient_is_told_by_some_dimension_that_is_not_a_whole_machine():
    """And no pattern names a coefficient that is gone."""
    narrow = [each for each in dimensions().values() if "*" not in each.coefficients]
    untold = [c for c in COEFFICIENTS if not any(each.holds(c) for each in narrow)]
    assert untold == ["n_sched"]  # of an engine alone
    for dimension in dimensions().values():
        for pattern in dimension.coefficients:
            one = type(dimension)("", "", "", (pattern,))
            assert any(map(one.holds, COEFFICIENTS)), pattern


def test_two_hulls_together_cover_what_either_does():
    """Of a profile and of one's own rows."""
    own = Hull({"model": ("mine",), "chip": ("h100",)}, {"prompt": (10.0, 100.0)})
    both = HULL.joined(own)
    for hull, point in ((HULL, INSIDE), (own, {"model": "mine", "prompt": 50.0})):
        assert not {**hull.outside(point), **both.outside(point)}


@pytest.mark.parametrize("raw", [{"moon": ["x"]}, {"batch": [1]}, {"batch": ["a", "b"]}])
def test_what_is_no_hull_is_refused(raw):
    """Another dimension, a range of one end, words for numbers."""
    with pytest.raises(ValueError, match=r"hull|unpack|convert"):
        parse_hull(raw)


def test_beyond_a_range_is_a_kind_of_distance_and_never_a_narrower_band():
    """Of batches and of groups of chips that the fit does not reach, each point by itself."""
    batches = np.array([1.0, 64.0, 4096.0])
    numbers = {"batch": batches, "chips": np.array([8.0]), "drafts": np.array([0.0])}
    beyond = HULL.beyond(numbers)
    assert beyond["new_batch"].tolist() == [False, False, True]
    assert HULL.beyond({"drafts": np.array([3.0])})["new_batch"].tolist() == [True]
    assert beyond["new_scale"].tolist() == [False]
    one = profile("engines-2026").at(RunContext("h100", "hopper", "vllm", "0.18.0", "fp8", "fp8"))
    shares = np.full((len(COEFFICIENTS), 3), 1 / len(COEFFICIENTS))
    near, far = one.band_ends("tpot", shares), one.band_ends("tpot", shares, beyond)
    assert (far[0] <= near[0]).all()
    assert (far[1] >= near[1]).all()
    assert far[0][2] < near[0][2]
    assert far[0][1] == near[0][1]


def test_an_engine_that_nobody_names_is_none_that_is_new():
    """Nor is its pairing with a chip."""
    known = profile("engines-2026").at(RunContext("h100", "hopper"))
    assert known.regime == "known"
    assert profile("engines-2026").at(RunContext("h100", "hopper", "x")).regime == "new_engine"


def test_formats_of_sixteen_bits_are_one():
    """Rows in fp16 cover bf16; none cover int4."""
    steady = profile("steady-2024").hull
    for math in ("fp16", "bf16"):
        assert not steady.outside(hull_names(RunContext("rtx-4090", math=math, cache=math)))
    out = steady.outside(
        hull_names(RunContext("rtx-4090", engine="llama.cpp", math="int3", cache="int4"))
    )
    assert [each.name for each in out] == ["format", "cache"]


def test_a_profile_of_one_engine_counts_no_other_as_measured():
    """The rows it shares are of several; engines that it is lent to were none of them."""
    own = profile("llama-cpp-2024")
    assert [each.name for each in own.hull.outside({"engine": "trtllm"})] == ["engine"]
    assert not profile("steady-2024").hull.outside({"engine": "trtllm"})
    card = RunContext("rtx-4090", "ada", maker="nvidia")
    assert own.engine_asked(card) == "llama.cpp"
    assert own.engine_asked(replace(card, runs=("llama.cpp", "vllm"))) == "llama.cpp"
    assert own.engine_asked(replace(card, runs=("vllm", "sglang"))) == "vllm or sglang"
    whole = profile("engines-2026")
    assert whole.engine_asked(replace(card, runs=("vllm", "another"))) == ""
    assert whole.engine_asked(replace(card, runs=("vllm",))) == "vllm"
    assert whole.engine_asked(replace(card, runs=("another", "third"))) == "another or third"


def test_each_level_that_layouts_may_have_is_judged_by_itself():
    """Two half-batches beside whole ones, as layouts of one table have them."""
    ((dimension, where),) = HULL.outside({"overlap": np.array([0, 1, 0])}).items()
    assert (dimension.name, where.tolist()) == ("overlap", [False, True, False])
    assert dimension.value(np.array([1])) == "two-batch"
    assert HULL.beyond({"overlap": np.array([0, 1])})["new_overlap"].tolist() == [False, True]


def test_every_dimension_is_a_kind_of_distance_that_widens():
    """By a band of runs left out that way, or by what it adds; which has its reason beside it."""
    measured = profile("engines-2026").coefficient_spread.quantiles
    for dimension in dimensions().values():
        adds = dimension.adds
        assert (dimension.regime in measured) != bool(adds), dimension.name
        assert set(adds) <= {"tpot", "ttft", "usd_per_mtok"}
        assert all(0 < width < 1 for width in adds.values())
