"""The profile of a question by hand: coefficients drawn, limits of a chip, the lecture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, Band, Profile
from planner.problems.serving import profiled as profiles
from planner.problems.serving.profiled import (
    LECTURE,
    coefficient,
    limit_efficiencies,
    probability_cheaper,
    with_profile_values,
)
from planner.problems.serving.task import resolve
from planner.problems.serving.task.resolve import ServingTasks
from planner.text.errors import FieldError, InputError

PROFILE = replace(
    LECTURE,
    name="own",
    values={**LECTURE.values, "e_w": 0.6, "e_c": 0.5, "t_hop": 2e-6, "t_ar": 4e-6, "n_sched": 2.0},
    intervals={
        "e_w": (0.5, 0.8),
        "t_ar": (3e-6, 5e-6),
        "t_hop": (2e-6, 2e-6),
        "t_moe": (0.0, 1e-6),
    },
)
ASKED = SimpleNamespace(estimate="calibrated", assumptions="physical")


@dataclass(frozen=True)
class Asked:
    """What a task has of a profile."""

    profile: Profile


@dataclass(frozen=True)
class Apart:
    """Two pools and the latency between them."""

    prefill: Asked
    decode: Asked
    latency: float = 1e-3


def tasks(*several: Profile, pairs: tuple[Apart, ...] = ()) -> ServingTasks:
    """Tasks with these profiles."""
    return ServingTasks((), tuple(map(Asked, several)), pairs, (), ())


@pytest.fixture
def own(monkeypatch):
    """Every question has the profile above."""
    other = replace(PROFILE, values=LECTURE.values, intervals={})  # of another chip
    monkeypatch.setattr(resolve, "resolve", lambda scenario: tasks(PROFILE, other))


# -- coefficients -------------------------------------------------------------------------------


def test_the_lecture_loses_nothing():
    """Efficiencies of one, no overhead, and no error that a band could hold."""
    assert {LECTURE.values[name] for name in EFFICIENCIES} == {1.0}
    assert {LECTURE.values[name] for name in COEFFICIENTS if name not in EFFICIENCIES} == {0.0}
    assert set(LECTURE.bands.values()) == {Band(1.0, 1.0)}
    assert (LECTURE.rows, LECTURE.coverage) == (0, 1.0)
    assert limit_efficiencies(LECTURE, SimpleNamespace(measured=None)) == (LECTURE, None)


@pytest.mark.usefixtures("own")
def test_a_path_below_the_profile_is_a_coefficient():
    """With its unit, its range in refits where it has one, and the words where it has none."""
    assert coefficient(ASKED, "price") is None
    read = coefficient(ASKED, "profile.e_w")
    assert (read.path, read.unit) == ("profile.e_w", "1")
    assert (read.listed.kind, read.listed.ends, read.listed.within) == (
        "lognormal",
        (0.5, 0.8),
        0.8,
    )
    assert read.listed.source == "80% of refits of the profile own"
    assert coefficient(ASKED, "profile.t_ar").unit == "s"
    for name, value in (("t_hop", "2e-06"), ("t_moe", "0"), ("e_c", "0.5")):
        none = coefficient(ASKED, f"profile.{name}")
        assert none.listed is None
        assert none.unlisted.startswith(f"the profile own has {name} = {value} here in every refit")


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("t_ar", "20 us", 2e-5), ("t_ar", 3e-6, 3e-6), ("t_ar", 0, 0.0),
        ("e_w", "0.7", 0.7), ("e_w", 1, 1.0), ("n_sched", 3, 3.0), ("n_sched", 0.0, 0.0),
    ],
)  # fmt: skip
def test_a_coefficient_is_read_as_a_number_or_a_time(name, written, value):
    """An efficiency of one, and no overhead, among them."""
    assert coefficient(ASKED, f"profile.{name}").read(written) == pytest.approx(value)


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "written", "words"),
    [
        ("e_w", 0.0, "an efficiency above 0 and at most 1, got 0.0"),
        ("e_w", 1.01, "an efficiency above 0 and at most 1"),
        ("e_w", -0.5, "an efficiency above 0 and at most 1"),
        ("e_w", "much", "e_w is a number such as 0.8, got 'much'"),
        ("t_ar", "much", "t_ar is a time such as 20 us, got 'much'"),
        ("t_ar", None, "t_ar is a time such as 20 us"),
        ("n_sched", "2 s", "n_sched is a number such as 0.8"),
    ],
)
def test_what_is_no_value_of_a_coefficient_is_refused(name, written, words):
    """At its path, with what was expected."""
    with pytest.raises(FieldError, match=f"uncertain.profile.{name}: .*{words}"):
        coefficient(ASKED, f"profile.{name}").read(written)


def test_a_question_without_one_profile_is_refused(monkeypatch):
    """A name that no profile has, a bound, a lecture, tasks of two profiles."""
    other = Apart(Asked(PROFILE), Asked(replace(PROFILE, name="other")))
    monkeypatch.setattr(resolve, "resolve", lambda scenario: tasks(PROFILE, pairs=(other,)))
    with pytest.raises(FieldError, match="no coefficient 'e_ww'; did you mean 'e_w'"):
        coefficient(ASKED, "profile.e_ww")
    with pytest.raises(FieldError, match=r"no coefficient 'qqqqqq' \(known: e_w, e_kv"):
        coefficient(ASKED, "profile.qqqqqq")
    for change in ({"estimate": "bound"}, {"assumptions": "lecture"}):
        with pytest.raises(FieldError, match="the bound knows no profile"):
            coefficient(SimpleNamespace(**{**vars(ASKED), **change}), "profile.e_w")
    with pytest.raises(FieldError, match=r"different profiles \(own, other\)"):
        coefficient(ASKED, "profile.e_w")


def test_a_drawn_coefficient_is_that_of_the_first_task():
    """Others have theirs times the same factor; no efficiency exceeds one or its chip's."""
    second = replace(PROFILE, values={**PROFILE.values, "e_w": 0.3, "e_c": 0.8, "t_ar": 1e-6})
    third = replace(second, ceilings={"e_w": 0.35, "e_c": 1.02})
    before = tasks(PROFILE, second, third)
    assert with_profile_values(before, {}) is before
    after = with_profile_values(before, {"e_w": 0.9, "e_c": 0.75, "t_ar": 8e-6, "n_sched": 3.0})
    found = [one.profile.values for one in after.tasks]
    assert [one["e_w"] for one in found] == pytest.approx([0.9, 0.45, 0.35])
    assert [one["e_c"] for one in found] == pytest.approx([0.75, 1.0, 1.0])
    assert [one["t_ar"] for one in found] == pytest.approx([8e-6, 2e-6, 2e-6])
    assert [one["n_sched"] for one in found] == pytest.approx([3.0, 3.0, 3.0])
    assert all(one["t_hop"] == 2e-6 for one in found)
    nothing = [
        one.profile.values["t_moe"] for one in with_profile_values(before, {"t_moe": 1e-6}).tasks
    ]
    assert (PROFILE.values["t_moe"], nothing) == (0.0, [1e-6] * 3)


def test_pools_apart_wait_for_the_hop_that_is_drawn():
    """What the decoding pool's hop is longer; the first task is that of the reading pool."""
    slower = replace(PROFILE, values={**PROFILE.values, "t_hop": 6e-6})
    (pair,) = with_profile_values(
        tasks(pairs=(Apart(Asked(PROFILE), Asked(slower)),)), {"t_hop": 4e-6}
    ).pools
    assert pair.prefill.profile.values["t_hop"] == pytest.approx(4e-6)
    assert pair.decode.profile.values["t_hop"] == pytest.approx(12e-6)
    assert pair.latency == pytest.approx(1e-3 + 6e-6)


# -- limits of a chip ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """What a file says of its device."""

    device: str
    complete: bool
    as_of: str = "2026-11-21"


@pytest.fixture
def measured(monkeypatch):
    """A system whose chip was measured to sustain these shares of its peaks."""

    def system(most: dict[str, float], *, complete: bool = True) -> SimpleNamespace:
        head = Head("NVIDIA X", complete)
        monkeypatch.setattr(profiles, "read_measured", lambda path: SimpleNamespace(head=head))
        limits = {(head, "chip x", 450e9): most}
        monkeypatch.setattr(profiles, "ceilings", lambda one, *at: limits[(one.head, *at)])
        return SimpleNamespace(measured=Path("my-chip.toml"), chip="chip x", scale_up=450e9)

    return system


def test_an_efficiency_and_its_interval_end_where_the_chip_does(measured):
    """What is below stays, and what was not measured."""
    given = replace(PROFILE, intervals={"e_w": (0.5, 0.8), "e_c": (0.4, 0.6), "e_kv": (0.97, 1.0)})
    found, source = limit_efficiencies(given, measured({"e_w": 0.55, "e_c": 0.7, "e_kv": 0.9}))
    assert (found.values["e_w"], found.values["e_c"], found.values["e_kv"]) == (0.55, 0.5, 0.9)
    assert found.intervals == {"e_w": (0.5, 0.55), "e_c": (0.4, 0.6), "e_kv": (0.9, 0.9)}
    assert found.ceilings == {"e_w": 0.55, "e_c": 0.7, "e_kv": 0.9}
    rest = set(COEFFICIENTS) - {"e_w", "e_c", "e_kv"}
    assert all(found.values[name] == given.values[name] for name in rest)
    assert (source.what, source.as_of) == ("measured NVIDIA X", "2026-11-21")
    assert source.source == "my-chip.toml: e_w 0.6 -> 0.55, e_kv 1 -> 0.9"


def test_a_measurement_says_what_it_lacks(measured):
    """That it changes nothing, or was not finished."""
    _, source = limit_efficiencies(PROFILE, measured({"e_w": 0.6}, complete=False))
    words = "no efficiency of the profile is above what it sustains"
    assert source.source == f"my-chip.toml: {words} (the measurement is not complete)"
    _, source = limit_efficiencies(PROFILE, measured({"e_w": 0.6}))
    assert source.source == f"my-chip.toml: {words}"


def test_a_measurement_that_is_of_no_use_is_refused(measured, monkeypatch):
    """With the name of its file; a lecture has no losses that it could limit."""
    system = measured({})
    with pytest.raises(InputError, match="the lecture counts no losses"):
        limit_efficiencies(LECTURE, system)

    def other(*_: object) -> None:
        raise InputError("is of another chip")

    monkeypatch.setattr(profiles, "ceilings", other)
    with pytest.raises(InputError, match=r"my-chip\.toml: is of another chip"):
        limit_efficiencies(PROFILE, system)


# -- two plans ----------------------------------------------------------------------------------

SPREAD = replace(LECTURE, spread=MappingProxyType({"alike": 0.1, "other": 0.3}))
FIELDS = {
    "usd_per_mtok": 2.0, "mode": "aggregated", "weights": "fp8", "kv": "bf16", "chip": "h100",
    "phases": {},
}  # fmt: skip


def plan(**changes) -> SimpleNamespace:
    """What is compared of a plan."""
    return SimpleNamespace(**{**FIELDS, **changes})


def pools(*chips: str) -> dict[str, SimpleNamespace]:
    """Phases on these chips."""
    return {name: SimpleNamespace(chip=chip) for name, chip in zip("pd", chips, strict=True)}


@pytest.mark.parametrize(
    ("change", "spread"),
    [
        ({}, 0.1), ({"mode": "prefill"}, 0.3), ({"weights": "bf16"}, 0.3), ({"kv": "fp8"}, 0.3),
        ({"chip": "h200"}, 0.3), ({"phases": pools("h100", "h100")}, 0.3),
    ],
)  # fmt: skip
def test_the_chance_of_a_dearer_plan_is_that_of_a_normal(change, spread):
    """The difference of two errors is root two times as wide: one of its deviations is 16 %."""
    dearer = plan(usd_per_mtok=2.0 * math.exp(spread * math.sqrt(2)), **change)
    assert probability_cheaper(plan(), dearer, SPREAD) == pytest.approx(0.15865525)
    assert probability_cheaper(dearer, plan(), SPREAD) == pytest.approx(1 - 0.15865525)


def test_plans_apart_are_alike_where_both_pools_are():
    """Whatever chip the plan as a whole names."""
    both = plan(phases=pools("h100", "h200"))
    near, far = 2 * math.exp(0.1 * math.sqrt(2)), 2 * math.exp(0.3 * math.sqrt(2))
    alike = plan(phases=pools("h100", "h200"), usd_per_mtok=near, chip=None)
    other = plan(phases=pools("h100", "h100"), usd_per_mtok=far)
    assert probability_cheaper(both, alike, SPREAD) == pytest.approx(0.15865525)
    assert probability_cheaper(both, other, SPREAD) == pytest.approx(0.15865525)


def test_nobody_knows_without_a_spread_or_a_price():
    """Of either plan."""
    assert probability_cheaper(plan(), plan(), LECTURE) is None
    assert probability_cheaper(plan(usd_per_mtok=0.0), plan(), SPREAD) is None
    assert probability_cheaper(plan(), plan(usd_per_mtok=0.0), SPREAD) is None
