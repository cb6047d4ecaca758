"""Times of the flow engine; run by `pytest tests/benches/bench_topologies.py -m benchmark`."""

from __future__ import annotations

import pytest

from tests.cases.flow import GB, KNOWN, changed, renamed
from topologies import torus
from topologies.rates.flow import all_to_all_rate

pytestmark = pytest.mark.benchmark

BUILDS = {
    **{name: build for name, (build, _) in KNOWN.items()},
    "16x16x24 torus": lambda: torus((16, 16, 24), link=90 * GB),
    "16x24x24 torus": lambda: torus((16, 24, 24), link=90 * GB),
    "4x4x4, one link slow": lambda: changed(
        torus((4, 4, 4), link=GB), ((0, 0, 0), (0, 0, 1)), factor=0.5
    ),
    "8x8x8, one link slow": lambda: changed(
        torus((8, 8, 8), link=GB), ((0, 0, 0), (0, 0, 1)), factor=0.5
    ),
}


@pytest.mark.parametrize("name", BUILDS)
def test_time_as_built(benchmark, name):
    """From the fabric to the rate, under the names that the builder gave."""
    G = BUILDS[name]()
    benchmark(lambda: all_to_all_rate(G))


@pytest.mark.parametrize("name", BUILDS)
def test_time_under_other_names(benchmark, name):
    """The same without declaration, with numbers for names and in another order."""
    G, _ = renamed(BUILDS[name](), 3)
    benchmark.pedantic(lambda: all_to_all_rate(G), rounds=1, iterations=1)
