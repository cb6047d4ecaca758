"""Memory and storage beyond HBM: every figure has a source, and drain times come out."""

import csv

import pytest

from planner.catalogue.listed_prices import TIERS, tier, tier_names
from planner.report.text.catalog import catalog, catalog_text
from planner.text.errors import CatalogueError
from tests.loops import for_all
from tests.paths import FACTS


@for_all("name", tier_names())
def test_every_tier_says_where_it_comes_from(name):
    """Capacity and rate with unit, source, date and standing."""
    found = tier(name)
    assert found.kind in TIERS
    for figure in found.figures.values():
        assert figure.base > 0
        assert "http" in figure.source
        assert figure.as_of
        assert figure.verified in {"yes", "secondary", "partial", "no"}


def test_faster_kinds_stand_first():
    """DRAM, CXL, flash, disk; the names of one kind are a part of all."""
    kinds = [TIERS.index(tier(name).kind) for name in tier_names()]
    assert kinds == sorted(kinds)
    assert set(tier_names("flash")) < set(tier_names())


def test_figures_are_those_of_the_shared_table():
    """Capacity and rate of every device that the table gives both for, HBM apart."""
    file = FACTS / "storage_tiers.csv"
    with file.open(encoding="utf-8") as stream:
        rows = [r for r in csv.DictReader(stream) if r["drain_seconds"] and r["tier"] != "HBM"]
    drains = {tier(name).title: tier(name).capacity / tier(name).read_rate for name in tier_names()}
    assert len(rows) == len(drains)
    for row in rows:
        assert drains[row["device"]] == pytest.approx(float(row["drain_seconds"]), rel=1e-3)


def test_the_catalogue_lists_tiers():
    """`planner catalog tiers`, and a wrong name with the nearest."""
    assert catalog("tiers", None)["names"] == list(tier_names())
    assert "drain time: 4.06 s" in catalog_text(catalog("tiers", "hgx-host-dram"))
    with pytest.raises(CatalogueError, match="did you mean 'hgx-host-dram'"):
        catalog("tiers", "hgx-host-ram")
