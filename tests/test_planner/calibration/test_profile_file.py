"""A profile as text, read again: the same figures, whatever its texts hold."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from types import MappingProxyType

import pytest

from planner.calibration.own_profile import profile_text
from planner.catalogue.profile import (
    Adjustment,
    Band,
    Profile,
    parse_profile,
    profile,
    profile_names,
)
from planner.catalogue.profile_choice import profile_fault
from tests.loops import for_all


def _again(one: Profile) -> Profile:
    return parse_profile(one.name, tomllib.loads(profile_text(one)))


@for_all("name", profile_names())
def test_every_profile_that_ships_is_read_as_it_is_written(name):
    """Coefficients, intervals, adjustments, bands and errors to six digits, texts as they are."""
    one = profile(name)
    again = _again(one)
    assert again.values == pytest.approx(dict(one.values), rel=1e-5)
    assert again.errors == pytest.approx(dict(one.errors), rel=1e-5)
    assert (again.chips, again.models, again.unidentified) == (
        one.chips,
        one.models,
        one.unidentified,
    )
    assert [(a.of, dict(a.scope), a.monthly) for a in again.adjustments] == [
        (a.of, dict(a.scope), a.monthly) for a in one.adjustments
    ]
    for kind, engines in one.all_bands.items():
        for engine, bands in engines.items():
            for quantity, band in bands.items():
                found = again.all_bands[kind][engine][quantity]
                assert (found.low, found.high) == pytest.approx((band.low, band.high), rel=1e-5)
    assert again.spread == pytest.approx(dict(one.spread), rel=1e-5)
    assert profile_fault(one) is None


@pytest.mark.parametrize("text", ['a "b" \\ c', "tab\tand\nline", "Größe 😀", "\x7f\x00", "\udcff"])
def test_any_text_is_written_and_read(text):
    """Quotes, breaks, signs beyond ASCII and names of files that are no Unicode."""
    one = replace(profile("engines-2026"), source=text)
    assert _again(one).source == text.replace("\udcff", "?")


@for_all(
    ("changes", "told"),
    [
        ({"values": {"e_w": 0.0}}, "e_w is 0, expected an efficiency"),
        ({"values": {"e_w": math.nan}}, "e_w is nan"),
        ({"values": {"t_layer": -1e-6}}, "t_layer is -1e-06, expected 0 or more"),
        ({"values": {"t_layer": math.inf}}, "t_layer is inf"),
        ({"coverage": 80}, "coverage is 80, expected a share"),
        ({"bands": {}}, "no band of tpot"),
        ({"all_bands": {"known": {"any": {"tpot": Band(0.0, 1.0)}}}}, "the band known.any.tpot"),
        ({"spread": {"alike": 0.1}}, "the spread other is None, expected above 0"),
        ({"coverage": "most"}, "coverage is 'most'"),
        ({"as_of": "today"}, "as_of is 'today', expected a date"),
        ({"intervals": {"e_w": ("a", "b")}}, "the interval 'e_w' is 'a' to 'b'"),
        ({"adjustments": (Adjustment(("e_q",), {}, 1.0, (1.0, 1.0)),)}, "of 'e_q', which is no"),
        ({"adjustments": (Adjustment((), {"moon": "x"}, 1.0, (1.0, 1.0)),)}, "by 'moon', expected"),
        ({"adjustments": (Adjustment(("e_w",), {}, 0.0, (0.0, 1.0)),)}, "a factor on e_w is 0"),
    ],
)
def test_what_no_profile_can_say_is_told(changes, told):
    """Efficiencies, times, shares, bands and factors outside what they can be."""
    one = profile("engines-2026")
    if "values" in changes:
        changes = {"values": MappingProxyType({**one.values, **changes["values"]})}
    assert told in str(profile_fault(replace(one, **changes)))
