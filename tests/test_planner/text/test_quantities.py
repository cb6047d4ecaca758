"""Quantities: what is read, against pint and by hand, and how a refusal reads."""

from __future__ import annotations

import math

import pint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.text.quantities import DIMENSIONS, QuantityError, parse, show
from tests.loops import for_all

READ = [
    ("3.35 TB/s", "bandwidth", 3.35e12),
    ("80 GB", "size", 80e9),
    ("64 GiB", "size", 64 * 2**30),
    ("400 Gbit/s", "bandwidth", 50e9),
    ("400 Gbps", "bandwidth", 50e9),
    ("400 Gb/s", "bandwidth", 50e9),
    ("400 GB/s", "bandwidth", 400e9),
    ("400 GBps", "bandwidth", 400e9),
    ("5 GB/sec", "bandwidth", 5e9),
    ("5 GB per second", "bandwidth", 5e9),
    ("$3.50/hour", "price", 3.5 / 3600),
    ("$2.5/h", "price", 2.5 / 3600),
    ("3.5 USD/hour", "price", 3.5 / 3600),
    ("USD 3.5/(chip*hour)", "price", 3.5 / 3600),
    ("$3.5/GPU-hour", "price", 3.5 / 3600),
    ("$3.5/chip/hour", "price", 3.5 / 3600),
    ("50 ms", "time", 0.05),
    ("2 T tokens", "tokens", 2e12),
    ("200B tokens", "tokens", 200e9),
    ("4k tokens", "tokens", 4000),
    ("4k", "tokens", 4000),
    ("1_000", "tokens", 1000),
    ("70B", "params", 70e9),
    ("800 billion params", "params", 800e9),
    ("1.979 PFLOP/s", "compute", 1.979e15),
    ("989 TFLOPS", "compute", 989e12),
    ("1979 TOPS", "compute", 1979e12),
    ("1e24 FLOPs", "work", 1e24),
    ("10 requests/s", "request_rate", 10),
    ("5000 tokens/s", "token_rate", 5000),
    ("20 tokens/s/user", "token_rate", 20),
    ("700 W", "power", 700),
    ("1.2 kW", "power", 1200),
    ("0.0929 $/kWh", "energy_price", 0.0929 / 3.6e6),
    ("$2/Mtok", "token_price", 2e-6),
    ("85%", "share", 0.85),
    ("0.85", "share", 0.85),
    ("1e15", "number", 1e15),
    ("2 kB", "bytes_per_token", 2000),
    ("2 kB/token", "bytes_per_token", 2000),
    (7, "tokens", 7),
    (1e15, "number", 1e15),
]


@for_all(("text", "dimension", "value"), READ)
def test_quantity_is_read_in_base_units(text, dimension, value):
    """A quantity becomes the base unit of its dimension."""
    assert parse(text, dimension) == pytest.approx(value, rel=1e-12)


PINT = [
    ("3.35 TB/s", "bandwidth", "byte/s"),
    ("64 GiB", "size", "byte"),
    ("12 Mibit", "size", "byte"),
    ("400 Gbit/s", "bandwidth", "byte/s"),
    ("17 kbit", "size", "byte"),
    ("50 ms", "time", "s"),
    ("3 us", "time", "s"),
    ("7 ns", "time", "s"),
    ("2.5 hours", "time", "s"),
    ("3 days", "time", "s"),
    ("2 weeks", "time", "s"),
    ("2 years", "time", "s"),
    ("18 min", "time", "s"),
    ("1.2 kW", "power", "W"),
    ("3 MWh", "energy", "J"),
    ("5 kJ", "energy", "J"),
]


@for_all(("text", "dimension", "base"), PINT)
def test_physical_units_agree_with_pint(text, dimension, base):
    """Units that pint knows have the same size there."""
    oracle = pint.UnitRegistry().Quantity(text).to(base).magnitude
    assert parse(text, dimension) == pytest.approx(oracle, rel=1e-12)


REFUSED = [
    (
        "3.35 TB",
        "bandwidth",
        'expected a bandwidth such as "3.35 TB/s", got "3.35 TB" (bytes); '
        'did you mean "3.35 TB/s"?',
    ),
    (
        "989 TFLOPs",
        "compute",
        'expected a compute rate such as "989 TFLOP/s", got "989 TFLOPs" '
        '(FLOP, an amount and not a rate); did you mean "989 TFLOP/s"?',
    ),
    (
        "$3.5",
        "price",
        'expected a price per chip and time such as "$3.50/hour", got "$3.5" (USD); '
        'did you mean "$3.5/hour"?',
    ),
    (
        "400 gb/s",
        "bandwidth",
        'expected a bandwidth such as "3.35 TB/s", got "400 gb/s"; unknown unit \'gb\'; '
        "did you mean 'Gb' (bits) or 'GB' (bytes)?",
    ),
    (
        "50 m",
        "time",
        'expected a time such as "50 ms", got "50 m"; unknown unit \'m\'; '
        "did you mean 'min' or 'ms'?",
    ),
    ("1,000", "tokens", 'such as "4000 tokens", got "1,000"; write 1_000 or 1000'),
    ("-3 s", "time", 'got "-3 s", which is negative'),
    ("1e400 s", "time", 'got "1e400 s", which is not finite'),
    ("", "time", "got an empty text"),
    ("nan", "time", "does not begin with a number"),
    ("inf", "time", "does not begin with a number"),
    ("5 s s", "time", "'s' is not expected there"),
    ("5 TB/s/", "bandwidth", "whose unit is not finished"),
    ("5 USD/chip*hour", "price", "write the units below the line in brackets"),
    ("3 €/hour", "price", "'€' is not part of a unit"),
    ("5 EUR/hour", "price", "only USD is read"),
    ("70B", "time", 'got "70B" (bytes)'),
    ("3" * 81, "number", "got a text of 81 characters"),
    (True, "time", "got True"),
    (None, "time", "got None"),
    ([1], "time", "got a list of 1 items"),
    (math.nan, "time", "got nan, which is not a number"),
    (math.inf, "time", "got inf, which is not finite"),
    (-1, "time", "got -1, which is negative"),
    (10**400, "time", "got an integer of more than 60 digits, which is too large"),
    ("__import__('os')", "time", "does not begin with a number"),
    ("2**3 s", "time", "'3' is not part of a unit"),
]


@for_all(("text", "dimension", "said"), REFUSED)
def test_refusal_says_what_was_expected_and_got(text, dimension, said):
    """A refusal names the dimension with an example, what was read, and what was meant."""
    with pytest.raises(QuantityError) as caught:
        parse(text, dimension)
    assert said in str(caught.value)
    assert str(caught.value).startswith("expected ")
    assert caught.value.exit_status == 2


def test_bits_and_bytes_differ_by_eight_and_binary_prefixes_by_their_power():
    """Gb is an eighth of GB, and GiB is larger than GB."""
    assert parse("8 Gb", "size") == parse("1 GB", "size")
    assert parse("1 GiB", "size") / parse("1 GB", "size") == pytest.approx(1.073741824)


@for_all("name", sorted(DIMENSIONS))
def test_every_example_is_read_in_its_own_dimension(name):
    """The example a message shows is itself right."""
    assert parse(DIMENSIONS[name].example, name) > 0


@for_all(
    ("value", "dimension", "text"),
    [
        (0.046, "time", "46 ms"),
        (2.0, "time", "2 s"),
        (5400.0, "time", "90 min"),
        (3.35e12, "bandwidth", "3.35 TB/s"),
        (2.0, "money", "$2.00"),
        (3.5 / 3600, "price", "$3.50/hour"),
        (141e9, "size", "141 GB"),
        (0.85, "share", "85%"),
        (671e9, "params", "671 B params"),
        (1.979e15, "compute", "1.98 PFLOP/s"),
        (2e-6, "token_price", "$2.00/Mtoken"),
        (11100.0, "token_rate", "11100 tokens/s"),
    ],
)
def test_shown_as_a_person_would_write_it(value, dimension, text):
    """A value is shown with the unit and prefix of the field."""
    assert show(value, dimension) == text


@settings(deadline=None)
@given(st.sampled_from(sorted(DIMENSIONS)), st.floats(1e-6, 1e17))
def test_what_is_shown_is_read_again(dimension, value):
    """`parse(show(x))` is x within the digits shown."""
    text = show(value, dimension)
    again = parse(text, dimension)
    assert again == pytest.approx(value, rel=0.006, abs=0.006 if dimension == "money" else 0)


@settings(deadline=None)
@given(st.text(max_size=90), st.sampled_from(sorted(DIMENSIONS)))
def test_any_text_is_read_or_refused(text, dimension):
    """No text raises anything but QuantityError, and what is read is finite and not negative."""
    try:
        value = parse(text, dimension)
    except QuantityError:
        return
    assert math.isfinite(value)
    assert value >= 0
