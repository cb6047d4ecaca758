"""The example fabrics can be read, and carry what can be worked out by hand."""

from __future__ import annotations

import pytest

from tests.paths import EXAMPLES
from topologies import read
from topologies.rates.cut import all_gather_rate
from topologies.rates.flow import all_to_all_rate

FOLDER = EXAMPLES / "topologies"
FILES = sorted(file for file in FOLDER.iterdir() if file.suffix in (".yaml", ".json"))
# All-to-all per ordered pair. [byte/s]
RATES = {
    # A rail of 16 chips has 200 GB/s up; its chips send there what is for other ranks of others.
    "hgx-rails": 16 * 50e9 / 4 / (16 * 15 * 7),
    # Every pair has a link of its own.
    "mi300x-measured": 44.7e9,
    # What leaves rack 2 has 71 cards: 72 chips send to 216 others.
    "nvl72-one-card-down": 71 * 50e9 / (72 * 216),
    # 1.7454545 times the plain torus, 8 B / (N k).
    "tpu-v5p-twisted": 96 / 55 * 8 * 100e9 / (128 * 8),
}
# Of an all-gather: what enters a node of eight, or the chip that is worst off, for each outside.
ENTERS = {
    "hgx-rails": 8 * 50e9 / 120,
    "mi300x-measured": 44.7e9,
    "nvl72-one-card-down": 900e9 / 287,
    "tpu-v5p-twisted": 600e9 / 127,
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_says_what_it_is_and_where_its_figures_come_from(file):
    """It is read without a warning."""
    G = read(file)
    assert G.graph["name"]
    assert G.graph["source"]
    assert G.graph["as_of"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_gathers_at_the_rate_of_its_narrowest_cut(file):
    """The way into a node or into one chip, on each of these fabrics."""
    assert all_gather_rate(read(file)).rate == pytest.approx(ENTERS[file.stem], rel=1e-6)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_exchanges_at_the_rate_worked_out_by_hand(file):
    """Any routing, with whatever is down."""
    assert all_to_all_rate(read(file)).rate == pytest.approx(RATES[file.stem], rel=1e-6)


@pytest.mark.parametrize("name", ["hgx-rails", "mi300x-measured"])
def test_an_example_with_one_shortest_way_needs_no_optimum(name):
    """Shortest paths are as good as any."""
    (file,) = (file for file in FILES if file.stem == name)
    flow = all_to_all_rate(read(file), routing="shortest_ecmp")
    assert flow.rate == pytest.approx(RATES[name], rel=1e-6)
