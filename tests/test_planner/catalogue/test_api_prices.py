"""Listed prices: one name per host, the newest row, resellers apart, dates respected."""

import csv
from datetime import date
from statistics import median

import pytest

from planner.catalogue import api_prices
from planner.catalogue.listed_prices import contract_rent, rentals
from planner.report.text.catalog import catalog, catalog_text
from planner.text.errors import CatalogueError
from tests.loops import for_all
from tests.paths import shared


def test_a_host_has_one_name_however_a_list_spells_it():
    """The three spellings of one host are one row among its model's hosts."""
    spellings = ("novita", "novita-ai", "huggingface_novita")
    assert {api_prices.host_name(name) for name in spellings} == {"novita"}
    for model in api_prices.open_models():
        hosts = [row.host for row in api_prices.host_prices(model)]
        assert len(set(hosts)) == len(hosts)
        assert not any(row.reseller for row in api_prices.host_prices(model))


def test_resellers_are_shown_and_not_counted():
    """Every reseller's row of a model is in its listing and in no host price."""
    card = catalog("api-prices", "glm-4.6")
    resold = [row for row in card["rows"] if row["reseller"]]
    assert resold
    assert not any(row["counted"] for row in resold)
    assert "(reseller)" in catalog_text(card)


def test_the_snapshot_has_the_published_rows():
    """Models, hosts' rows and medians are those of the published table, read by another code."""
    with shared("open_model_prices.csv").open(encoding="utf-8") as text:
        published = list(csv.DictReader(text))
    assert set(api_prices.open_models()) == {row["model"] for row in published}
    name, of = api_prices.host_name, {}
    for row in published:
        counted = row["status"] != "deprecated" and not row["suspect"]
        if (row["kind"], row["tier"], row["context_over"]) == ("host", "standard", "0") and counted:
            of.setdefault(row["model"], {}).setdefault(name(row["host"]), []).append(row)
    for model, hosts in of.items():
        spans = [
            (min(float(x["usd_out"]) for x in rows), max(float(x["usd_out"]) for x in rows))
            for rows in hosts.values()
        ]
        listed = median(row.output * 1e6 for row in api_prices.host_prices(model))
        assert median(x for x, _ in spans) <= listed * 1.0001
        assert listed <= median(x for _, x in spans) * 1.0001


def test_rows_hold_between_their_dates():
    """A step that was dropped holds before that day; a price of next year holds only then."""
    before = api_prices.sheet_rows("anthropic/claude-opus-4-6", date(2026, 3, 12))
    after = api_prices.sheet_rows("anthropic/claude-opus-4-6", date(2026, 3, 13))
    assert {row.above for row in before if row.tier == "standard"} == {0, 200_000}
    assert {row.above for row in after if row.tier == "standard"} == {0}
    changes = [row for row in api_prices.listed_token_prices() if row.since > "2026-12"]
    assert changes
    for row in changes:
        assert row not in api_prices.prices_on_date(row.model)
        assert row in api_prices.prices_on_date(row.model, date.fromisoformat(row.since))


@pytest.mark.parametrize("name", ["gogle/gemini-2.5-pro", "google/gemini-2.5-prp", "novita/x"])
def test_an_unknown_sheet_names_the_nearest(name):
    """A host or a model that is not listed is refused by name."""
    with pytest.raises(CatalogueError, match="unknown"):
        api_prices.sheet_rows(name)


def test_rents_by_contract_are_ranges_of_their_rows():
    """Each contract has its own rows; a day leaves out what was read later."""
    for contract in ("on_demand", "reserved", "spot"):
        rent = contract_rent("h100", contract)
        values = [
            row.value for row in rentals("h100")
            if row.tier == contract.replace("_", "-") and row.verified != "no"
        ]  # fmt: skip
        assert (rent.low, rent.value, rent.high) == (min(values), median(values), max(values))
    assert contract_rent("h100", "reserved", date(2025, 12, 1)).value * 3600 == pytest.approx(1.7)
    with pytest.raises(CatalogueError, match=r"no verified reserved rent .*listed: on-demand"):
        contract_rent("gh200", "reserved")
    with pytest.raises(CatalogueError, match="spot"):
        contract_rent("h100", "spott")


HEAD = ",".join(api_prices.COLUMNS)
ROW = "deepseek-r1,azure,host,standard,0,,,,1.35,5.4,0.5,,,2026-07-02,x,,"


@for_all(
    ("line", "problem"),
    [
        (ROW.replace("1.35", "nan"), "input: expected a price per token"),
        (ROW.replace("5.4", "-1"), "output: expected a price per token"),
        (ROW.replace("0.5,", "inf,"), "cached: expected a price per token"),
        (ROW.replace("0.5,", "2,"), "cached: 2 is above input, 1.35"),
        (ROW.replace("1.35", ""), "input: expected USD per million tokens, got ''"),
        (ROW.replace("5.4", "$5.4"), "output: expected USD per million tokens, got '$5.4'"),
        ("deepseek-r1,azure,host,standard,0,,,,1.35,5.4", "the row has 10 of 17 entries"),
        (f"{ROW},1", "the row has more than 17 entries"),
        (ROW.replace("standard,0", "standard,-1"), "above: expected a number of tokens"),
        (ROW.replace("0,,,,1", "0,nan,,,1"), "hours: expected such as 00:30-16:30"),
        (ROW.replace("2026-07-02", "soon"), "as_of: expected a day or a month such as 2026-11"),
        (ROW.replace("2026-07-02", "2026-13"), "as_of: expected a day or a month"),
        (ROW.replace("2026-07-02", "2026-02-30"), "as_of: expected a day or a month"),
    ],
)
def test_a_row_of_one_s_own_file_is_read_as_a_scenario_s(tmp_path, monkeypatch, line, problem):
    """What no list would have is refused with the place in the file."""
    file = tmp_path / "prices.csv"
    file.write_text(f"{HEAD}\n{ROW}\n{line}\n", encoding="utf-8")
    monkeypatch.setenv(api_prices.PRICES_ENV_VAR, str(file))
    read = api_prices.listed_token_prices.__wrapped__
    with pytest.raises(CatalogueError) as caught:
        read()
    assert str(caught.value).startswith(f"{file}:3:1  {problem}")
    file.write_text(f"{HEAD}\n{ROW}\n", encoding="utf-8")
    assert [(row.input, row.cached) for row in read()] == [(1.35e-6, 0.5e-6)]
