"""Listed prices read anew: from a small stand-in of the package, and from the package itself."""

import socket
import sys
from datetime import date
from textwrap import dedent

import pytest

from planner.catalogue import api_prices
from planner.catalogue.api_prices import PRICES_ENV_VAR, listed_token_prices
from planner.catalogue.refresh import price_refresh
from planner.cli.app import main
from planner.report.text.price_table import refresh_text
from planner.text.errors import CatalogueError, MissingExtra

DAY = date(2026, 11, 27)
STAND_IN = """
from datetime import date, time, timezone
from types import SimpleNamespace as Of

def prices(**given):
    return Of(**given)

def model(id, prices, variants=None, deprecated=None):
    return Of(id=id, prices=prices, price_variants=variants, deprecated=deprecated)

long = Of(base=3, tiers=[Of(start=200000, price=6)])
off_peak = Of(start_time=time(0, 30, tzinfo=timezone.utc), end_time=time(16, 30))
providers = [
    Of(id="anthropic", models=[
        model("claude-haiku-4-5", prices(input_mtok=4, output_mtok=20, cache_read_mtok=0.4),
              [Of(when={"processing": "batch"}, prices=prices(input_mtok=2, output_mtok=10)),
               Of(when={"service_tier": "default"}, prices=prices())]),
        model("claude-new", [
            Of(constraint=None, prices=prices(input_mtok=long, output_mtok=15)),
            Of(constraint=Of(start_date=date(2026, 12, 1)),
               prices=prices(input_mtok=3, output_mtok=15)),
        ]),
        model("claude-search", prices(web_searches_kcount=10)),
    ]),
    Of(id="novita", models=[model("meta-llama/Llama-3.1-8B-Instruct",
                                  prices(input_mtok=0.02, output_mtok=0.05))]),
    Of(id="huggingface_together", models=[model("meta-llama/Llama-3.1-8B-Instruct",
                                                prices(input_mtok=20, output_mtok=50))]),
    Of(id="deepseek", models=[model("deepseek-chat", [
        Of(constraint=None, prices=prices(input_mtok=0.135, output_mtok=0.55)),
        Of(constraint=off_peak, prices=prices(input_mtok=0.27, output_mtok=1.1)),
    ])]),
    Of(id="google", models=[model("claude-new", prices(input_mtok=3, output_mtok=15))]),
]
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A package of that name on the path, which no network is behind."""
    package = tmp_path / "genai_prices"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "data.py").write_text(dedent(STAND_IN), encoding="utf-8")
    facts = tmp_path / "genai_prices-9.9.9.dist-info"
    facts.mkdir()
    about = "Metadata-Version: 2.1\nName: genai-prices\nVersion: 9.9.9\n"
    (facts / "METADATA").write_text(about, encoding="utf-8")
    for name in [x for x in sys.modules if x.partition(".")[0] == "genai_prices"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [x for x in sys.modules if x.partition(".")[0] == "genai_prices"]:
        sys.modules.pop(name)


def test_each_row_is_that_of_the_package(stand_in):
    """Tiers, lengths, dates, hours, hosts by one name; resellers' new models are left out."""
    anew = price_refresh.price_refresh(DAY)
    listed = [row for row in anew.rows if row.source == "genai-prices 9.9.9"]

    def those(model, host):
        return sorted((x.tier, x.above, x.hours, x.since, x.until, round(x.input * 1e6, 6))
                      for x in listed if (x.model, x.host) == (model, host))  # fmt: skip

    assert those("claude-haiku-4-5", "anthropic") == [
        ("batch", 0, "", "", "", 2), ("standard", 0, "", "", "", 4),
    ]  # fmt: skip
    assert those("claude-new", "anthropic") == [
        ("standard", 0, "", "", "2026-12-01", 3), ("standard", 0, "", "2026-12-01", "", 3),
        ("standard", 200_000, "", "", "2026-12-01", 6),
    ]  # fmt: skip
    assert those("llama-3.1-8b", "novita") == [("standard", 0, "", "", "", 0.02)]
    assert those("deepseek-chat", "deepseek") == [
        ("standard", 0, "", "", "", 0.135), ("standard", 0, "00:30-16:30", "", "", 0.27),
    ]  # fmt: skip
    assert anew.left_out == ("google/claude-new",)
    assert {row.as_of for row in listed} == {"2026-11-27"}
    (far,) = [row for row in listed if row.host == "together"]
    assert not far.counted


def test_rows_of_other_lists_stay_and_all_that_differs_is_said(stand_in):
    """Nothing is new, gone or changed that the table leaves out."""
    anew = price_refresh.price_refresh(DAY)
    others = [row for row in listed_token_prices() if not row.source.startswith("genai-prices")]
    kept = [row for row in anew.rows if not row.source.startswith("genai-prices")]
    assert {(x.model, x.host, x.input, x.output) for x in others} == {
        (x.model, x.host, x.input, x.output) for x in kept
    }
    gone = {x.before for x in anew.changes if x.before is not None}
    left = {x for x in listed_token_prices() if x.source.startswith("genai-prices")} - gone
    fresh = {(x.model, x.host, x.tier, x.above, x.input, x.output) for x in anew.rows}
    assert all((x.model, x.host, x.tier, x.above, x.input, x.output) in fresh for x in left)
    text = refresh_text(anew, "claude-haiku-4-5")
    assert "1 -> 4" in text
    assert "5 -> 20" in text
    assert "2026-11 -> 2026-11-27" in text


def test_the_command_writes_what_a_variable_has_read(stand_in, tmp_path, monkeypatch, capsys):
    """Without the variable answers stay as they were; with it they take the file, and say so."""
    shipped, file = listed_token_prices(), tmp_path / "prices.csv"
    with pytest.raises(SystemExit) as left:
        main(["catalog", "api-prices", "claude-haiku-4-5", "--refresh", "--out", str(file)])
    assert left.value.code == 0
    assert PRICES_ENV_VAR in capsys.readouterr().err
    caches = [each for each in vars(api_prices).values() if hasattr(each, "cache_clear")]
    for each in caches:
        each.cache_clear()
    assert listed_token_prices() == shipped
    monkeypatch.setenv(PRICES_ENV_VAR, str(file))
    for each in caches:
        each.cache_clear()
    try:
        (row,) = [x for x in listed_token_prices() if (x.model, x.host, x.tier)
                  == ("claude-haiku-4-5", "anthropic", "standard")]  # fmt: skip
        assert (row.input, row.source) == (pytest.approx(4e-6), "genai-prices 9.9.9")
        assert api_prices.chosen_file() == ", from prices.csv"
    finally:
        monkeypatch.delenv(PRICES_ENV_VAR)
        for each in caches:
            each.cache_clear()


@pytest.mark.parametrize(("text", "words"), [
    (None, "No such file"), ("model,host\n", "has no column"),
    ("head\nx,y,host,standard,zero,,,,1,2,,,,2026-11,me,,\n", r"prices\.csv:2:1  above"),
])  # fmt: skip
def test_a_file_that_is_no_list_of_prices_is_refused(text, words, tmp_path, monkeypatch):
    """Its name and its line are said."""
    file = tmp_path / "prices.csv"
    if text is not None:
        file.write_text(text.replace("head", ",".join(api_prices.COLUMNS)), encoding="utf-8")
    monkeypatch.setenv(PRICES_ENV_VAR, str(file))
    with pytest.raises(CatalogueError, match=words):
        listed_token_prices.__wrapped__()


def test_without_the_package_the_extra_is_named(monkeypatch):
    """Which pip install brings it."""
    monkeypatch.setattr(price_refresh, "PACKAGE", "no-such-package")
    with pytest.raises(MissingExtra, match=r"pip install 'token-planner\[prices\]'"):
        price_refresh.price_refresh(DAY)


@pytest.mark.parametrize("words", [
    ["chips", "--refresh"], ["api-prices", "--out", "x.csv"],
    ["api-prices", "--refresh", "--out", "x.txt"], ["api-prices", "no-model", "--refresh"],
])  # fmt: skip
def test_what_cannot_be_read_anew_is_refused(words, capsys):
    """Another catalogue, a file without a refresh, another ending, an unknown model."""
    with pytest.raises(SystemExit) as left:
        main(["catalog", *words])
    assert left.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_version_of_the_snapshot_gives_the_snapshot(monkeypatch):
    """Offline, every shipped row of the package's own version is among its rows, but for three.

    An open model of a vendor with prices by the hour, and one that was withdrawn since, of two
    versions: the snapshot has their rows without the hours and the remark.
    """
    pytest.importorskip("genai_prices", reason="the package genai-prices is not installed")
    monkeypatch.setattr(socket, "socket", None)
    anew = price_refresh.price_refresh(DAY)
    if {anew.source} != {
        x.source for x in listed_token_prices() if x.source.startswith("genai-prices")
    }:
        pytest.skip(f"the snapshot is of another version than {anew.source}")
    gone = [x.before for x in anew.changes if x.what == "gone"]
    assert len(gone) <= 3
    for change in anew.changes:
        if change.what == "changed":
            before, after = change.before, change.after
            assert (before.input, before.output) == (after.input, after.output)
