"""The models of the catalogue: names, sources, published figures."""

from __future__ import annotations

import json
import re

import pytest

from planner.architecture import model_sizes, summary
from planner.catalogue import models
from planner.text.errors import CatalogueError
from tests.loops import for_all

# Published figures that our exact counts miss by more than 1 %, and why.
EXPLAINED = {
    "deepseek-v4-pro": "1.6T includes the prediction block",
    "kimi-k2": "1.043T counts the first layer as a mixture",
}


@for_all("name", models.model_names())
def test_entry_has_source_and_date(name: str) -> None:
    """Every entry says where it comes from and when it was read."""
    entry = models.record(name)
    assert entry.source
    assert re.fullmatch(r"20\d\d-\d\d", entry.as_of)
    assert models.load(name).source == f"{entry.source} ({entry.as_of})"


@for_all("name", models.model_names())
def test_published_total_is_met(name: str) -> None:
    """Our count is within 1 % of the published figure, or the gap is explained."""
    entry = models.record(name)
    if entry.published_total is None:
        return
    assert entry.published_source
    gap = abs(model_sizes(models.load(name)).n_total / entry.published_total - 1)
    assert gap < (0.02 if name in EXPLAINED else 0.01)


@for_all(
    "name",
    [name for name in models.model_names() if (models.record(name).published_total or 0) % 1e6],
)
def test_exact_published_total_is_met_exactly(name: str) -> None:
    """A figure published to the last parameter is met to the last parameter."""
    assert model_sizes(models.load(name)).n_total == models.record(name).published_total


@for_all("name", models.model_names())
def test_published_active_is_met(name: str) -> None:
    """Active parameters are within 2.1 % of the published figure in its convention."""
    entry = models.record(name)
    if entry.published_active is None:
        return
    active = model_sizes(models.load(name)).n_active[entry.convention]
    assert active == pytest.approx(entry.published_active, rel=0.021)


@pytest.mark.parametrize("name", ["DeepSeek-V3", "deepseek v3", "deepseekv3"])
def test_unknown_name_has_a_suggestion(name: str) -> None:
    """A near name is suggested whatever its case."""
    with pytest.raises(CatalogueError, match="did you mean 'deepseek-v3"):
        models.load(name)


def test_a_name_is_not_a_path() -> None:
    """Only listed names are opened."""
    with pytest.raises(CatalogueError):
        models.load("../models/deepseek-v3")


@for_all("name", models.model_names())
def test_summary_is_plain_data(name: str) -> None:
    """The summary survives JSON and describes every layer."""
    told = summary(models.load(name))
    assert json.loads(json.dumps(told)) == told
    assert sum(kind["count"] for kind in told["layers"]) == told["n_layers"]
    assert set(told["weight_bytes"]) == set(told["weight_dtypes"])
