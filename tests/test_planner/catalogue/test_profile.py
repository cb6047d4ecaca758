"""Profiles: physical numbers, adjustments where they hold, bands of what is known and what not."""

from dataclasses import replace
from importlib.resources import files
from types import MappingProxyType

import numpy as np
import pytest

from planner.catalogue.chips import chip
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.figures import month_count
from planner.catalogue.profile import (
    COEFFICIENTS,
    EFFICIENCIES,
    Adjustment,
    parse_profile,
    profile,
    profile_names,
)
from planner.catalogue.profile_choice import choose_profile, profile_fault
from planner.problems.serving.profiled import LECTURE
from planner.text.errors import CatalogueError
from tests.loops import for_all
from tests.paths import ROOT

ENGINES = profile("engines-2026")


@for_all("name", profile_names())
def test_profiles_are_physical(name):
    """Efficiencies lie in (0, 1], overheads are not negative, bands hold their estimate."""
    one = profile(name)
    assert all(0 < one.values[c] <= 1 for c in EFFICIENCIES)
    assert all(one.values[c] >= 0 for c in COEFFICIENTS)
    assert one.band("tpot").low < 1 < one.band("tpot").high
    assert one.rows > 0
    assert set(one.intervals) == set(COEFFICIENTS)


SAID = ("configurations", "models", "chips", "architectures", "engines", "engine-chips", "versions")


def test_the_readme_says_how_accurate_the_profile_is():
    """Its table is of the figures recorded on rows left out: medians, means, means over groups."""
    by = {(row["word"], row["quantity"]): row for row in ENGINES.left_out}
    table = "".join(
        f"| {word} | "
        + " | ".join(
            f"{row['median']:.1%} | {row['mean']:.1%} | {row['group_log']:.3f}".replace("%", " %")
            for row in (by[word, "tpot"], by[word, "ttft"])
        )
        + " |\n"
        for word in SAID
    )
    assert table in (ROOT / "README.md").read_text(encoding="utf-8"), f"not there:\n{table}"


@for_all("name", profile_names())
def test_profiles_beat_a_constant_times_the_roofline(name):
    """On configurations left out, and on whole models where those are told."""
    errors = profile(name).errors
    for prefix in ("", "unseen_models_"):
        if f"{prefix}tpot_median" in errors:
            assert errors[f"{prefix}tpot_median"] < errors[f"{prefix}tpot_constant_median"]
            assert errors[f"{prefix}tpot_median"] < errors[f"{prefix}tpot_roofline_median"]


@pytest.mark.parametrize(("name", "rows"), [("engines-2026", 28), ("steady-2024", 13)])
def test_free_coefficients_are_few_beside_the_rows(name, rows):
    """What the rows told of coefficients and adjustments, each shrunk, against all rows fitted.

    An unknown counts by the share of its variance beforehand that the rows took away; one that
    the fit dropped stays at none, and spends no row. Steady batches are of four engines years
    apart, each with coefficients of its own.
    """
    assert _free(profile(name)) < profile(name).rows / rows


def _free(one):
    spread = one.coefficient_spread
    families = [next(f for f in spread.families if f.holds(a)) for a in one.adjustments]
    widths = [*(one.hull.widths[name] for name in COEFFICIENTS), *(f.width for f in families)]
    left = (spread.factor**2).sum(axis=1) / np.array(widths) ** 2
    assert (left < 1.01).all()
    free = [*(True for _ in COEFFICIENTS), *(a.factor != 1 for a in one.adjustments)]
    return float((1 - left)[free].sum())


@pytest.mark.parametrize("name", ["engines-2026", "steady-2024"])
def test_bands_hold_what_they_say(name):
    """Ranges of the other folds hold 77 to 83 % of configurations left out."""
    errors = profile(name).errors
    for quantity in ("tpot", "ttft", "usd_per_mtok"):
        assert 0.77 <= errors[f"{quantity}_band_holds"] <= 0.83


@pytest.mark.parametrize(("change", "named"), [({"e_q": 1.0}, "e_q"), ({"e_w": None}, "e_w")])
def test_a_profile_with_other_coefficients_is_refused(change, named):
    """A missing or an unknown coefficient is named."""
    values = {**ENGINES.values, **change}
    raw = {"coefficients": {k: v for k, v in values.items() if v is not None}}
    with pytest.raises(CatalogueError, match=named):
        parse_profile("mine", raw)


def test_an_adjustment_holds_in_its_scope_alone():
    """A factor on times divides efficiencies, multiplies overheads, and stays below one."""
    slower = Adjustment(("e_w", "t_layer"), {"engine": "vllm"}, 2.0, (2.0, 2.0))
    values = MappingProxyType({**ENGINES.values, "e_w": 0.8})
    one = replace(ENGINES, values=values, adjustments=(slower,))
    here, there = one.at(RunContext(engine="vllm")), one.at(RunContext(engine="sglang"))
    assert here.values["e_w"] == pytest.approx(0.4)
    assert here.values["t_layer"] == pytest.approx(2 * values["t_layer"])
    assert dict(there.values) == dict(values)
    faster = replace(one, adjustments=(replace(slower, factor=0.5),))
    assert faster.at(RunContext(engine="vllm")).values["e_w"] == 1.0


def test_monthly_factors_count_back_from_the_profiles_date():
    """A run of three months before counts them three times; today's none."""
    older = Adjustment(("t_layer",), {"engine": "vllm"}, 1.1, (1.1, 1.1), monthly=True)
    one = replace(ENGINES, adjustments=(older,))
    three = one.at(RunContext(engine="vllm", months=3.0)).values["t_layer"]
    assert three == pytest.approx(1.1**3 * ENGINES.values["t_layer"])
    assert one.at(RunContext(engine="vllm")).values["t_layer"] == ENGINES.values["t_layer"]


def test_old_kernels_reach_on_a_new_chip_what_they_reach_on_the_old(monkeypatch):
    """Weights of int4 on Blackwell: no more bytes or products a second than the chip before."""
    place = RunContext(chip="b200", architecture="blackwell", engine="vllm", math="int4")
    here = replace(place, chip="h200", architecture="hopper")
    old, new, before = chip("h200"), ENGINES.at(place).values, ENGINES.at(here).values
    assert ENGINES.at(place).at(place).values == new
    assert LECTURE.at(place).values["e_w"] == 1
    monkeypatch.setattr("planner.catalogue.profile.older_kernels", tuple)  # as if native
    native = replace(ENGINES).at(place).values  # another, which remembers no place
    slower = chip("b200").memory_bandwidth / old.memory_bandwidth
    assert new["e_w"] == pytest.approx(native["e_w"] / slower)
    products = chip("b200").peak("bf16") / old.peak("bf16")
    assert new["e_pf_x"] == pytest.approx(native["e_pf_x"] / products)
    assert new["e_kv"] == native["e_kv"]  # attention has kernels of its own
    assert new["t_layer"] == native["t_layer"]
    assert ENGINES.at(here).values == before


def test_a_resolved_profile_stays_as_it_is():
    """Asking a second time changes nothing."""
    place = RunContext(chip="b200", architecture="blackwell", engine="vllm", math="fp8")
    once = ENGINES.at(place)
    assert dict(once.at(place).values) == dict(once.values)
    assert dict(once.at(place).bands) == dict(once.bands)


def test_the_profile_of_one_engine_is_that_of_all_seen_by_it():
    """Its adjustments hold without being asked for."""
    own, every = profile("vllm-2026"), ENGINES
    place = RunContext(chip="h200", architecture="hopper", math="fp8")
    assert dict(own.at(place).values) == dict(every.at(replace(place, engine="vllm")).values)
    assert own.band("tpot") == every.at(replace(place, engine="vllm")).band("tpot")


def test_what_was_never_seen_gets_a_wider_band():
    """Models and chips that no fit saw borrow the coefficients and widen."""
    known = RunContext(chip="h200", model=ENGINES.models[0])
    width = [
        ENGINES.at(place).band("tpot").high / ENGINES.at(place).band("tpot").low
        for place in (known, replace(known, model="something-else"))
    ]
    assert width[0] < width[1]


def test_a_chip_of_a_known_architecture_borrows_its_adjustments():
    """What holds of an architecture holds of a chip of it that was never seen."""
    slower = Adjustment(("t_layer",), {"architecture": "blackwell"}, 2.0, (2.0, 2.0))
    one = replace(ENGINES, adjustments=(slower,))
    place = RunContext(chip="x", architecture="blackwell")
    assert one.at(place).values["t_layer"] == pytest.approx(2 * one.values["t_layer"])


def test_a_base_is_never_chosen_by_itself():
    """Steady batches of several engines are what their profiles share, nobody's estimate."""
    assert profile("steady-2024").base
    assert choose_profile("auto", "tpu-v4")[0].name == "palm-2022"
    found, words = choose_profile("auto", "rtx-4090")
    assert (found.name, "llama.cpp alone" in words) == ("llama-cpp-2024", True)


@for_all(
    ("on", "engines", "name", "words"),
    [
        ("h200", ("vllm", "trtllm"), "engines-2026", ""),
        ("h200", ("vllm",), "vllm-2026", ""),
        ("h200", ("atom",), "engines-2026", ""),
        ("a100", ("trtllm",), "trtllm-2024", ""),
        ("a100", ("vllm", "trtllm"), "trtllm-2024", "of trtllm alone"),
        ("l40", ("trtllm",), "trtllm-2024", "not on l40: its band is that of chips"),
        ("rtx-4090", ("vllm",), "vllm-2026", "not on rtx-4090"),
        ("rtx-4090", ("trtllm",), "trtllm-2024", "no run of trtllm on rtx-4090"),
        ("mi300x", ("vllm",), "vllm-2026", "no run of vllm on mi300x"),
    ],
)
def test_auto_takes_the_engines_own_profile_nearest_to_the_chip(on, engines, name, words):
    """What was fitted on the chip, else on its architecture, the newest; what it is not is said."""
    found, said = choose_profile("auto", on, engines)
    assert (found.name, bool(said)) == (name, bool(words))
    assert words in (said or "")


def test_what_another_engine_measured_is_not_lent_a_second_time():
    """Rows of other engines on a chip are in the fit: no factor of its maker comes on top."""
    place = RunContext("mi300x", "cdna3", maker="AMD", engine="vllm")
    assert profile("vllm-2026").at(place).values == ENGINES.at(place).values


def test_a_chip_that_no_fit_saw_is_said():
    """The nearest profile is used and the answer says so."""
    found, warning = choose_profile("auto", "gaudi3")
    assert found.name == "engines-2026"
    assert warning is not None
    assert "gaudi3" in warning


def test_every_listed_chip_has_an_architecture():
    """So that a chip of a known one can borrow."""
    assert chip("gb300").architecture == chip("b200").architecture == "blackwell"
    assert chip("h20").architecture == "hopper"


def test_the_lecture_stands_everywhere():
    """A profile without adjustments or kinds of bands is itself at any place."""
    assert dict(LECTURE.at(RunContext(chip="h200", engine="vllm")).values) == dict(LECTURE.values)


@pytest.mark.parametrize(
    ("earlier", "later", "months"),
    [
        ("2026-01", "2026-04", 3.0),
        ("2026-01-15", "2026-04", 3.0),
        ("2025-12-31", "2026-01-31", 1.0),
        ("2026-05", "2026-04", 0.0),
    ],
)
def test_months_between_dates(earlier, later, months):
    """Days count as parts of a month; a later date is no age."""
    assert month_count(earlier, later) == pytest.approx(months, abs=0.01)


@pytest.mark.parametrize("text", ["", "as_of = 1", "[coefficients]\ne_w = 'fast'"])
def test_a_file_that_is_no_profile_is_refused(tmp_path, text):
    """With its name and what was wrong."""
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"mine"):
        profile(str(path))


def test_a_file_written_again_is_read_again(tmp_path):
    """What a path held before is not what it holds now."""
    path = tmp_path / "mine.toml"
    for engine in ("vllm", "sglang"):
        text = f'like = "engines-2026"\nengine = "{engine}"\nrows = 1\n[errors]\n'
        path.write_text(text, encoding="utf-8")
        assert profile(str(path)).engine == engine


def test_a_missing_file_is_told(tmp_path):
    """No such file."""
    with pytest.raises(CatalogueError, match="no such file"):
        profile(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    "text", ['like = "nobody"\nengine = "vllm"\n', "like = 3", "coefficients = 3"]
)
def test_whatever_is_wrong_inside_a_profile_names_its_file(tmp_path, text):
    """A profile of another that is not there, among others."""
    file = tmp_path / "own.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"own\.toml: is no profile: "):
        profile(str(file))


@pytest.mark.parametrize(
    ("figure", "changed", "fault"),
    [
        ("median = ", "medium = ", "a row of left_out"),
        ("median = ", "median = '', was = ", "median of a row of left_out is ''"),
        ("within_10 = ", "within_10 = nan, was = ", "within_10 of a row of left_out"),
        ("quantiles.known]\n", "quantiles.known]\nodd = ['', 1, 1]\n", "quantiles known.odd"),
    ],
)
def test_figures_that_an_answer_quotes_are_looked_at_when_a_profile_is_read(
    tmp_path, figure, changed, fault
):
    """Errors on rows left out and quantiles of bands, before an answer stumbles over them."""
    shipped = (files("planner.catalogue") / "profiles/engines-2026.toml").read_text("utf-8")
    assert figure in shipped
    file = tmp_path / "own.toml"
    assert profile_fault(profile("engines-2026")) is None
    file.write_text(shipped.replace(figure, changed, 1), encoding="utf-8")
    assert fault in (profile_fault(profile(str(file))) or "")
