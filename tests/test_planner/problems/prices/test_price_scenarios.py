"""What a price scenario may hold: mistakes named with what would work, edges, and every face."""

import json

import pytest

import planner
from planner.catalogue import api_prices
from planner.cli import main
from planner.text.errors import InputError
from tests.loops import for_all

SHEET = {"input": "$3/Mtok", "output": "$15/Mtok"}


def asked(sheet, **more):
    """A scenario of these rows."""
    return {"problem": "prices", "sheet": sheet, **more}


@for_all(
    ("rows", "words"),
    [
        ({"input": "$3/token"}, r'did you mean "\$3/Mtok"'),
        ({"input": "$3"}, r'did you mean "\$3/Mtok"'),
        ({"input": 3}, r'got 3 without a unit; write "\$3.00/Mtok"'),
        ({"input": "$900/Mtok"}, "from"),
        ({"input": "$0.0004/Mtok"}, "from"),
        ({"input": "3 EUR/Mtok"}, "only USD"),
        ({"input": "€3/Mtok"}, "only USD"),
        ({"output": "¥3/Mtok"}, "only USD"),
        ({"storage": "$4.50/Mtok"}, r'did you mean "\$4.50/Mtok/hour"'),
        ({"output": None}, "sheet.output"),
        ({"cached": "$4/Mtok"}, "dearer than an input token"),
        ({"write": [{"hold": "5 min", "price": "$2/Mtok"}]}, "below the input price"),
        ({"write": [{"hold": "5 min", "price": "$4/Mtok"}] * 2}, "two prices of one hold time"),
        ({"steps": [{"input": "2x"}]}, "above"),
        ({"steps": [{"above": "200k"}]}, "changes nothing"),
        (
            {"steps": [{"above": 199_999, "input": "2x"}, {"above": 200_000, "input": "2x"}]},
            "twice",
        ),
        ({"tiers": [{"name": "fast", "price": "1x", "speed": "2x"}]}, "faster and no dearer"),
        ({"tiers": [{"name": "fast", "price": "0.9x", "speed": "2x"}]}, "faster and no dearer"),
        ({"tiers": [{"name": "fast", "price": "6x", "sped": "2x"}]}, "sped"),
        ({"cashed": "$1/Mtok"}, "cached"),
    ],
)
def test_impossible_sheets_are_refused(rows, words):
    """Each with the field, and what would put it right."""
    with pytest.raises(InputError, match=words):
        planner.solve(asked(SHEET | rows))


@for_all(
    ("given", "words"),
    [
        ({"margin": "60%"}, "60% of the price is 2.5"),
        ({"margin": [3, 1]}, r"\[least, most\]"),
        ({"prefill_efficiency": 1.5}, "at most 1"),
        ({"n_active": "70 GB"}, "parameter count"),
        ({"n_active": 100}, "at least"),
        ({"n_active": ["100B", "70B"]}, "got 100B before 70B"),
        ({"model": "deepsek-v3"}, "deepseek-v3"),
        ({"context": [1, 2, 3]}, "3 values"),
    ],
)
def test_impossible_facts_are_refused(given, words):
    """What is given is a value or a range of what it says it is."""
    with pytest.raises(InputError, match=words):
        planner.solve(asked(SHEET, given=given))


def test_all_mistakes_are_told_at_once():
    """Three fields, three mistakes."""
    rows = {"input": "$3", "output": "€15/Mtok", "steps": [{"input": "2x"}]}
    with pytest.raises(InputError) as caught:
        planner.solve(asked(rows, date="soon"))
    paths = {mistake.path for mistake in caught.value.mistakes}
    assert {"sheet.input", "sheet.output", "date"} <= paths


def test_a_price_that_is_missing_is_said_once():
    """One mistake, with what the key is."""
    with pytest.raises(InputError) as caught:
        planner.solve(asked({"input": "$3/Mtok"}))
    assert [mistake.path for mistake in caught.value.mistakes] == ["sheet.output"]


def test_a_name_that_is_like_none_lists_no_more_than_a_hundred():
    """Of five hundred listed models."""
    with pytest.raises(InputError, match=r"and \d+ more\)") as caught:
        planner.solve(asked("three dollars"))
    assert str(caught.value).count(",") <= 100


@pytest.mark.parametrize("name", ["gogle/gemini-2.5-pro", "google/gemini-2.5-por", "deepseek-v33"])
def test_unknown_sheets_name_the_nearest(name):
    """A host or a model that is not listed."""
    with pytest.raises(InputError, match=r"sheet.*unknown"):
        planner.solve(asked(name))


def test_a_threshold_with_or_without_its_edge_is_one_step():
    """Above 199,999 and from 200,000 are the same step."""
    ends = []
    for above in (199_999, 200_000, "200k"):
        steps = [{"above": above, "output": "1.5x"}]
        plan = planner.solve(asked(SHEET | {"steps": steps})).document["plan"]
        ends += [x["high"] for x in plan["inferences"] if x["name"] == "balance_context"]
    assert ends == pytest.approx([985e3] * 3)


def test_prices_and_multiples_of_a_step_are_one():
    """A step may say what it costs, or by how much more."""
    answers = [
        planner.solve(asked(SHEET | {"steps": [{"above": "200k", "output": price}]})).document
        for price in ("1.5x", "$22.50/Mtok")
    ]
    one, two = (answer["plan"]["inferences"] for answer in answers)
    assert [x["low"] for x in one] == pytest.approx([x["low"] for x in two])


@pytest.mark.parametrize(
    ("sheet", "words"),
    [
        (SHEET | {"output": "$1/Mtok"}, "less than half"),
        (SHEET | {"tiers": [{"name": "batch", "price": "1.2x"}]}, "dearer"),
        ("openrouter/deepseek-v3", "reseller"),
        ("deepseek/deepseek-v4-pro", "other hours"),
    ],
)
def test_the_unusual_is_warned_about(sheet, words):
    """It is answered, with a sentence."""
    assert words in " ".join(planner.solve(asked(sheet)).warnings)


def test_old_prices_are_warned_about():
    """Asked two years on, the snapshot is old; asked on its day it is not."""
    for day, old in (("2028-11-24", True), ("2026-11-24", False)):
        warnings = planner.solve(asked("mistral/mistral-large", date=day)).warnings
        assert any("days before" in x for x in warnings) == old


def test_prices_of_a_later_day_are_warned_about():
    """Asked of a day before the list was read."""
    warnings = planner.solve(asked("mistral/mistral-large", date="2024-11-24")).warnings
    assert any("after 2024-11-24" in words for words in warnings)


def test_a_price_of_next_year_holds_next_year():
    """A row that begins on a later day is another sheet on that day."""
    name = "google/gemini-3.8-flash"
    prices = [
        planner.solve(asked(name, date=day)).document["plan"]["sheet"]["input"]
        for day in ("2026-11-24", "2027-01-02")
    ]
    assert prices[1] > prices[0]


@pytest.mark.parametrize("command", ["solve", "check", "sensitivity"])
def test_every_face_answers(command, tmp_path, capsys):
    """As text, as JSON, and with its reasons."""
    file = tmp_path / "sheet.json"
    file.write_text(json.dumps(asked(SHEET)), encoding="utf-8")
    assert printed(capsys, command, str(file))
    if command == "solve":
        formula = "N_active = F*e_pf*p_in/(D_step*c_fwd*mu_mark)"
        assert formula in printed(capsys, "solve", str(file), "--why")
        assert json.loads(printed(capsys, "solve", str(file), "--json"))["schema"] == "prices/1"


def printed(capsys, *words):
    """What a command prints; it must end well."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 0
    return capsys.readouterr().out


def test_the_size_is_proportional_to_the_input_price():
    """The elasticity of the size by the level is one, as the equation says."""
    slopes = planner.sensitivity(asked(SHEET), output="n_active")
    assert slopes["sheet.input"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_the_margin_is_the_list_over_our_plan():
    """Price over cost, at three tokens in for one out, between the rents of the chip."""
    plan = planner.solve(
        asked("deepseek-v3", given={"model": "deepseek-v3", "context": "8k"}, chips="hgx-h200")
    ).document["plan"]
    own = planner.solve(
        {"problem": "serving", "model": "deepseek-v3", "system": "hgx-h200", "chips": [8, 16, 32],
         "workload": {"input_tokens": 3000, "output_tokens": 1000},
         "promises": {"ttft": "2 s", "tpot": "50 ms"}}
    )  # fmt: skip
    (line,) = [x for x in plan["inferences"] if x["name"] == "margin"]
    mix = (3 * plan["sheet"]["input"] + plan["sheet"]["output"]) / 4 * 1e6
    assert line["mid"] == pytest.approx(mix / own.cost, rel=1e-6)
    assert line["low"] < line["mid"] < line["high"]


@pytest.mark.slow
def test_a_cache_too_large_for_its_price_is_said_to_be():
    """A model whose caches cost more to read than its tokens earn."""
    given = {"model": "llama-3.1-8b", "context": "100k", "decode_efficiency": "60%"}
    plan = planner.solve(asked("llama-3.1-8b", given=given)).document["plan"]
    assert any("priced below memory cost" in x["verdict"] for x in plan["inferences"])


def test_the_answer_has_the_scenario_that_gives_it_again():
    """The scenario of an answer, every key filled in, is JSON and answers the same."""
    rows = {"steps": [{"above": 199_999, "output": "$22.50/Mtok"}],
            "tiers": [{"name": "fast", "price": "$90/Mtok", "speed": "2.5x"}],
            "write": [{"hold": "5 min", "price": "$3.75/Mtok"}]}  # fmt: skip
    given = {"n_active": ["70B", "100B"], "margin": {"from": 1, "to": 4}}
    first = planner.solve(asked(SHEET | rows, given=given, date="2026-11-24"))
    again = planner.solve(json.loads(json.dumps(dict(first.scenario))))
    assert again.document == first.document


@pytest.mark.slow
def test_every_listed_sheet_is_answered():
    """A sheet of every twelfth listed model and host: JSON without a hole, ends in order."""
    names = sorted(
        {
            f"{row.host}/{row.model}"
            for row in api_prices.listed_token_prices()
            if row.in_force(None)
        }
    )
    for name in names[::12]:
        answer = planner.solve(asked(name, date="2026-11-24"))
        plan = json.loads(json.dumps(answer.to_json(), allow_nan=False))["plan"]
        for line in plan["inferences"]:
            low, mid, high = (line[key] for key in ("low", "mid", "high"))
            if None not in (low, mid, high):
                assert low <= mid * (1 + 1e-12) <= high * (1 + 2e-12)
        assert {"n_active", "n_total"} <= {x["name"] for x in plan["inferences"]}
