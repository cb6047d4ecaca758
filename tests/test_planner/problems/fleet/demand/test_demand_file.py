"""Demand of a fleet from CSV files: columns by name, units in heads, times that are times."""

from datetime import UTC, datetime, timedelta

import pytest

import planner
from planner.scenario import load, resolve_keys
from planner.text.errors import InputError
from tests.loops import for_all

WIDE = {"chat": (9.0, 3.0), "code": (2.0, 4.0), "summaries": (1.0, 8.0)}
COLUMNS = [{"pool": "h200", "chips": 4, "rate": "2 requests/s"}]
POOLS = {"h200": {"size": 8, "on_demand": "$4/hour"}}


def fleet(demands, **changes):
    """A fleet of models with a demand each."""
    models = {name: {"demand": demand, "columns": COLUMNS} for name, demand in demands.items()}
    return {
        "problem": "fleet",
        "units": "base",
        "models": models,
        "pools": POOLS,
        "hours": 2,
    } | changes


def hours(tmp_path, text, demand=None, **changes):
    """The demand that chat has of a file, by hour."""
    file = tmp_path / "day.csv"
    file.write_text(text)
    question = load(fleet({"chat": (demand or {}) | {"file": str(file)}}, **changes))
    return list(question.models["chat"].demand.hourly)


def test_each_model_has_the_column_of_its_name(tmp_path):
    """A wide file costs what a file of each model costs, and what lists in the scenario cost."""
    heads = "hour," + ",".join(WIDE)
    rows = [f"{h}," + ",".join(str(x[h]) for x in WIDE.values()) for h in range(2)]
    wide = tmp_path / "wide.csv"
    wide.write_text("\n".join([heads, *rows]))
    lists = {name: [f"{x} requests/s" for x in row] for name, row in WIDE.items()}
    plan = planner.solve(fleet(dict.fromkeys(WIDE, str(wide))))
    listed = planner.solve(fleet(lists))
    # 5 + 1 + 1 replicas of 4 chips, then 2 + 2 + 4: 4 machines in both hours
    assert plan.cost == listed.cost == pytest.approx(4 * 8 * 4)
    assert plan.document["plan"]["usd_per_month"] == pytest.approx(128 * 730)
    assert plan.document["plan"]["replicas"]["code"] == {"h200 x4": [1, 2]}
    assert "column code of" in " ".join(plan.warnings)
    assert not any("has no unit" in words for words in listed.warnings)
    question = load(fleet(dict.fromkeys(WIDE, str(wide))))
    assert load(resolve_keys(question)) == question


@pytest.mark.parametrize(
    "head", ["requests per hour", "chat [requests/hour]", "chat (k requests / hour)", "chat,code"]
)
def test_a_unit_in_the_head_is_read(tmp_path, head):
    """36,000 requests of an hour are 10 of a second; without a unit they are requests/s."""
    value = {"chat (k requests / hour)": 36, "chat,code": 10}.get(head, 36000)
    more = ",7" if "," in head else ""
    assert hours(tmp_path, f"hour,{head}\n0,{value}{more}\n1,{value}{more}\n") == [10.0, 10.0]


def test_quarters_of_an_hour_are_averaged(tmp_path):
    """Four rows of an hour are one hour of their mean."""
    rows = [f"{q // 4:02}:{q % 4 * 15:02},{q}" for q in range(8)]
    assert hours(tmp_path, "\n".join(["time,chat", *rows])) == [1.5, 5.5]


def test_stamps_say_the_hour_of_the_day_and_of_the_week(tmp_path):
    """A day that begins at 5:00+02:00 begins at 3:00 UTC; a week from Wednesday has its Monday."""
    start = datetime(2026, 5, 6, 3, tzinfo=UTC)  # a Wednesday
    zone = [(start + timedelta(hours=h)).isoformat() for h in range(168)]
    day = [f"{x.replace('+00:00', '')}Z,{h}" for h, x in enumerate(zone[:24])]
    read = hours(tmp_path, "\n".join(["time,chat", *day]), hours="day")
    assert read == [21.0, 22.0, 23.0, *map(float, range(21))]
    week = hours(
        tmp_path, "\n".join(["time,chat", *(f"{x},{h}" for h, x in enumerate(zone))]), hours=168
    )
    monday = week[0]
    assert (start + timedelta(hours=monday)).strftime("%a %H") == "Mon 00"


def test_clocks_that_go_back_are_followed_by_their_zone(tmp_path):
    """2:00 comes twice in the last night of October, told apart by what is behind it."""
    rows = ["2026-10-25T02:00+02:00,1", "2026-10-25T02:00+01:00,2"]
    assert hours(tmp_path, "\n".join(["time,chat", *rows])) == [1.0, 2.0]
    with pytest.raises(InputError, match="02:00 is doubled"):
        hours(tmp_path, "time,chat\n2026-10-25T02:00,1\n2026-10-25T02:00,2\n")


@for_all(
    ("text", "place", "words"),
    [
        ("hour,chat\nyesterday,1\nyesterday,2", "2:1", "got 'yesterday'"),
        ("time,chat\n00:00,1\n00:00,2", "3:1", "00:00 is doubled"),
        ("time,chat\n00:00,1\n05:00,2", "3:1", "01:00 is missing (05:00 follows 00:00)"),
        ("hour,chat\n1,1\n2,2", "2:1", "hour 0 is missing (hour 1 is the first)"),
        ("time,chat\n00:00,1\n00:15,2", "3:1", "the last hour has 2 of its 4 parts"),
        ("time,chat\n00:15,1\n01:15,2", "2:1", "rows begin within an hour"),
        ("time,chat\n00:00,1\n00:25,2", "3:1", "rows are 25 min apart"),
        ("time,chat\n0,1\n01:00,2", "3:1", "of another kind than that of line 2"),
        ("hour,chat [tokens/s]\n0,1\n1,2", "1:6", "expected a unit such as requests/s"),
        ("hour,requests\n0,1\n1,2", "1:6", "expected a unit such as requests/s"),
        ("hour,code\n0,1\n1,2", "1:1", "no column is called 'chat', there is 'code'"),
        ("hour,code,total\n0,1,2\n1,2,3", "1:1", "there is 'code', 'total'"),
        ("0,1\n1,2", "1:1", "expected names of columns such as hour,chat,code"),
        ("date,hour,chat\n1,0,1\n1,1,2", "1:6", "a second column of times"),
        ("hour,chat,Chat\n0,1,1\n1,2,2", "1:11", "a second column of 'chat'"),
        ("hour (CET),chat\n0,1\n1,2", "1:1", "times are of UTC, got 'CET'"),
        ("hour,chat\n0,1\n1,", "3:3", "got an empty text"),
        ("hour,chat\n0,1\n1", "3:1", "got an empty text"),
        ("hour;chat\n0;1\n1;2,5", "3:3", "without a comma"),
        ("hour,chat\n0,1\n1,2 tokens/s", "3:3", "expected a rate of requests"),
    ],
)
def test_what_is_no_demand_is_refused_at_its_cell(tmp_path, text, place, words):
    """Times, heads and rates that are none, with the line and column of the file."""
    with pytest.raises(InputError) as refused:
        hours(tmp_path, text)
    (mistake,) = refused.value.mistakes[:1]
    assert str(mistake).startswith(f"{tmp_path / 'day.csv'}:{place}  ")
    assert words in mistake.message


def test_a_month_is_as_long_as_its_file_says(tmp_path):
    """`hours: month` is of 28 to 31 days of a file, of 30 days without; other words are lengths."""
    text = "\n".join(["hour,chat", *(f"{h},1" for h in range(744))])
    assert len(hours(tmp_path, text, hours="month")) == 744
    for word, count in (("month", 720), ("week", 168), ("30 days", 720), (48, 48)):
        question = load(fleet({"chat": "3 requests/s"}, hours=word))
        assert question.hours == count
    with pytest.raises(InputError, match="say hours: 100"):
        hours(tmp_path, "\n".join(text.splitlines()[:101]), hours="month")
    with pytest.raises(InputError, match="expected whole hours"):
        load(fleet({"chat": "3 requests/s"}, hours="fortnight"))


def test_weekends_are_those_of_every_week():
    """A factor on Saturday and Sunday holds in each week of a month."""
    wave = {"mean": "10 requests/s", "weekend": 0.5}
    rates = load(fleet({"chat": wave}, hours="month")).models["chat"].demand.rates(720, None)
    assert [rates[24 * day] for day in range(14)] == [10, 10, 10, 10, 10, 5, 5] * 2


def test_a_column_may_have_another_name_and_may_wait(tmp_path):
    """`column` says which it is; work in a file may be deferred."""
    asked = {"column": "b", "deferrable": "1 hour"}
    assert hours(tmp_path, "hour,a,b\n0,1,2\n1,2,3\n", asked) == [2.0, 3.0]
