"""`planner gate`: kept 0, broken or infeasible 1, mistakes 2; numbers are those of `solve`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
import pytest

import planner
from planner.cli import main
from planner.comparison.gate import DOCUMENTS, document_schema, gate
from planner.comparison.price_difference import difference
from planner.scenario import kinds
from planner.scenario.kinds import PROBLEM_PACKAGES
from planner.text.errors import InputError
from tests.cases.frozen import examples, file_of
from tests.loops import for_all
from tests.paths import DATA, EXAMPLES

COMMAND = ("gate",)
TOY = "problem: toy\npromise: 40 ms\n"


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A scenario of the toy kind."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")
    file = tmp_path / "toy.yaml"
    file.write_text(TOY, "utf-8")
    return file


def ran(capsys, *words: object) -> tuple[int, str, str]:
    """Exit status, standard output and error of the command."""
    with pytest.raises(SystemExit) as end:
        main(["gate", *map(str, words)])
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def test_a_promise_is_kept_and_a_limit_broken_by_its_share(capsys, toy):
    """The scenario's promise is a line; a limit beside it is broken by the share it is over."""
    plan = planner.solve(toy)
    status, text, _ = ran(capsys, toy, "--max-tpot", "20 ms")
    assert status == 1
    assert "kept    promise" in text
    share = plan.chosen["tpot"] / 0.02 - 1
    document = json.loads(ran(capsys, toy, "--max-tpot", "20 ms", "--json")[1])
    assert document["status"] == "broken"
    assert document["verdicts"][1]["over"] == pytest.approx(share, rel=1e-12)
    assert ran(capsys, toy)[0] == 0
    table = ran(capsys, toy, "--markdown")[1]
    assert "| promise | plan | limit | verdict |" in table


def test_an_earlier_answer_holds_the_price(capsys, toy, tmp_path):
    """Five percent dearer than it was passes at 5 %, not at 4."""
    saved = tmp_path / "plan.json"
    document = json.loads(json.dumps(planner.solve(toy).document))
    document["plan"]["price"] /= 1.05
    saved.write_text(json.dumps(document), "utf-8")
    assert ran(capsys, toy, "--against", saved, "--may-rise", "5%")[0] == 0
    status, text, _ = ran(capsys, toy, "--against", saved, "--may-rise", "4%")
    assert status == 1
    assert "BROKEN  price" in text


def test_infeasible_is_broken_and_names_what_falls_short(capsys, toy):
    """No plan within a millisecond."""
    status, text, _ = ran(capsys, toy, "--set", "promise=1 ms")
    assert status == 1
    assert "no plan keeps promise: short by a factor of 29.4" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-tpot", "3 GB"), "--max-tpot: expected a time"),
        (("--max-tpot", "0"), "above zero"),
        (("--max-ttft-p95", "2 s"), "has no ttft_p95"),
        (("--may-rise", "5%"), "--may-rise needs a saved answer"),
        (("--against", "none.json"), "none.json  no such file"),
        (("--sure",), "no error band of tpot"),
    ],
)
def test_mistakes_are_two(capsys, toy, words, message):
    """A limit that cannot be read, or judged, is a mistake and no verdict."""
    status, _, err = ran(capsys, toy, *words)
    assert status == 2
    assert message in err


LOAD = {
    "problem": "serving", "model": "gpt-oss-120b", "system": "hgx-h100", "chips": 4,
    "rent": {"unit": 1}, "promises": {"tpot": "32 ms", "ttft": "3 s"},
    "workload": {"input_tokens": 3000, "output_tokens": 800, "concurrency": 200},
}  # fmt: skip


def test_a_limit_within_the_estimate_is_broken_where_its_chance_is_too_small():
    """Four chips hold 32 ms likely: kept by half, by its own chance, and not surely."""
    kept = gate(LOAD)
    chances = {v.promise: v.chance for v in kept.verdicts}
    assert (kept.status, kept.verdicts[1].needed) == ("kept", 0.5)
    assert 0.5 <= chances["promises.tpot"] < 0.9 <= chances["promises.ttft"]
    sure = gate(LOAD, sure=True)
    broken = [v for v in sure.verdicts if not v.holds]
    assert sure.status == "broken"
    assert [(v.promise, v.over) for v in broken] == [("promises.tpot", 0.0)]
    assert "of 100 cases, 90% asked for" in str(broken[0])
    planned = gate(LOAD, ["promises.chance=90%", "chips=8"])
    assert planned.status == "kept"
    assert all(v.chance >= v.needed == 0.9 for v in planned.verdicts)


def test_a_chance_is_read_off_the_band_on_both_sides():
    """At the ends of the band a limit holds in a tenth and in nine tenths, rising outputs too."""
    answer = planner.solve(LOAD).answer
    point, band = answer.plan, answer.band
    for name in ("tpot", "ttft", "usd_per_mtok"):
        value, ends = getattr(point, name), getattr(band, name)
        for limit, chance in zip(ends, (0.1, 0.9), strict=True):
            assert answer.chance(name, value, limit, rises=False) == pytest.approx(chance, abs=1e-4)
    low, high = band.tokens_per_s
    for limit, chance in ((low, 0.9), (high, 0.1)):
        held = answer.chance("tokens_per_s", point.tokens_per_s, limit, rises=True)
        assert held == pytest.approx(chance, abs=1e-4)
    speed = answer.chance("tokens_per_s_per_user", 1 / point.tpot, 1 / band.tpot[1], rises=True)
    assert speed == pytest.approx(0.9, abs=1e-4)
    whole = answer.chance("e2e", point.e2e, 2 * point.e2e, rises=False)
    assert 0.9 < whole < 1


def test_sure_judges_a_given_limit_by_its_chance():
    """A price between the estimate and the end of its band: kept, and not surely."""
    free = planner.solve(LOAD)
    limit = (free.cost * free.answer.band.usd_per_mtok[1]) ** 0.5
    assert gate(LOAD, (), {"usd_per_mtok": limit}).status == "kept"
    assert gate(LOAD, (), {"usd_per_mtok": limit}, sure=True).verdicts[-1].holds is False


@pytest.mark.slow
def test_percentiles_under_a_load_are_limits_of_their_own(capsys):
    """The scenario's own 95 % promise is judged, and so is one that is given."""
    status, text, _ = ran(capsys, EXAMPLES / "carry-a-load.yaml", "--max-ttft-p95", "1 s", "--json")
    assert status == 1
    rows = {(v["promise"], v["kept"]) for v in json.loads(text)["verdicts"]}
    assert {("promises.ttft_p95", True), ("ttft_p95", False)} <= rows


RECORDED = DATA / "answer_keys.json"
CHEAP = ("lecture", "budget-70b-quality", "infeasible")


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of the documents of a kind; the schema itself is sound."""
    schema = document_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def as_printed(document: object) -> Any:
    """What a reader of --json gets."""
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize("name", CHEAP)
def test_an_examples_document_is_valid(name):
    """The plan of an example that ships, or why there is none, as it is answered now."""
    plan = planner.solve(EXAMPLES / f"{name}.yaml")
    document = as_printed(plan.document)
    validator(plan.kind).validate(document)
    assert document["schema"] == validator(plan.kind).schema["title"]


def test_every_examples_frozen_document_is_valid():
    """What `planner solve --json` printed of every example when it was last agreed on."""
    documents = [
        document
        for case in examples()
        if (document := json.loads(file_of(case).read_text("utf-8"))["document"])
    ]
    assert len(documents) >= len(list(EXAMPLES.glob("*.yaml")))
    for document in documents:
        validator(document["problem"]).validate(document)


@pytest.mark.parametrize("spoil", [{"schema": "serving/0"}, {"status": 3}, {"plan": []}])
def test_what_is_spoilt_is_not_valid(spoil):
    """The schema is no formality."""
    document = as_printed(planner.solve(EXAMPLES / "lecture.yaml").document)
    with pytest.raises(jsonschema.ValidationError):
        validator("serving").validate({**document, **spoil})


def test_documents_of_diff_and_gate_are_valid():
    """The two commands that answer something else than a plan."""
    file = EXAMPLES / "lecture.yaml"
    changed = {**planner.solve(file).scenario, "price": 0.003}
    validator("diff").validate(as_printed(difference(file, changed).document))
    validator("gate").validate(as_printed(gate(file, (), {"usd_per_mtok": 1e-9}).document))
    with pytest.raises(InputError, match="did you mean 'serving'"):
        document_schema("servign")


def keys(name: str) -> list[str]:
    """Every key of a schema, below its type."""
    schema: Any = document_schema(name)
    return sorted(f"{x}.{key}" for x, y in schema["$defs"].items() for key in y["properties"])


@for_all("name", [*PROBLEM_PACKAGES, *DOCUMENTS])
def test_a_key_that_was_there_is_there_under_the_same_version(name):
    """Adding keeps the version; renaming or leaving out raises it."""
    recorded = json.loads(RECORDED.read_text("utf-8"))
    version = document_schema(name)["title"]
    assert version in recorded, f"write the keys of {version} into {RECORDED.name}"
    assert not set(recorded[version]) - set(keys(name))
