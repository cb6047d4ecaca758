"""Whatever a file holds, it is a sound fabric or one TopologyError, and rates are numbers."""

from __future__ import annotations

import copy
import json
import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.loops import for_all
from topologies import TopologyError, check, read, write
from topologies.fabric.fabric import accelerators
from topologies.rates.cut import all_gather_rate
from topologies.rates.flow import all_to_all_rate

CHIP = {"kind": "accelerator", "forward": False, "domain": 0}
LISTS = {
    "directed": False,
    "graph": {"name": "four", "source": "drawn"},
    "nodes": [
        *({"id": f"gpu{i}", **CHIP} for i in range(3)),
        {"id": ["switch", 0], "kind": "switch", "forward": True},
    ],
    "links": [
        {"source": f"gpu{i}", "target": ["switch", 0], "bandwidth": 45e9, "latency": 1e-6,
         "tier": "scale_up", "count": 2}
        for i in range(3)
    ],
}  # fmt: skip
LINK = {"bandwidth": "45 GB/s", "latency": "1 us"}
SPECS = [
    {"kind": "torus", "dims": [3, 4], "link": LINK, "wrap": [True, False], "name": "small",
     "overrides": [{"link": [[0, 0], [0, 1]], "bandwidth": "1 GB/s"},
                   {"node": [2, 3], "remove": True}]},
    {"kind": "rails", "nodes": 2, "chips": 3, "up": LINK, "out": "50 GB/s", "out_latency": 1e-6,
     "relay": "pxn", "oversubscription": 2, "spines": 2},
    {"kind": "clos", "chips": 8, "out": "400 Gbit/s", "leaf": 2, "levels": 3, "pod": 2, "cores": 2,
     "oversubscription": [2, 1.5], "domain": {"kind": "switch", "chips": 2, "up": 9e11}},
    {"kind": "hierarchy", "count": 2, "out": "50 GB/s", "join": "rails", "relay": "all",
     "domain": {"kind": "mesh", "chips": 3, "link": LINK},
     "overrides": [{"node": [1, 2], "tier": "scale_out", "factor": 0.5}]},
    {"kind": "dragonfly", "p": 1, "a": 2, "h": 1, "up": LINK, "local": "45 GB/s", "out": 1e10},
    {"kind": "twisted_torus", "dims": [2, 4], "link": 1e9},
    {"kind": "planes", "chips": 3, "switches": 2, "up": "450 GB/s"},
    {"machine": "hgx-h100", "chips": 16, "as_of": "2026-11-21"},
    {"topology": ["Ring", "Switch"], "npus_count": [3, 2], "bandwidth": [50.0, 25],
     "latency": [500, 1]},
]  # fmt: skip
FORMS = [(".yaml", spec) for spec in SPECS] + [(".json", LISTS)]
WORDS = ["torus", "mesh", "hgx-h100", "scale_out", "1 GB/s", "3 us", "0 GB/s", "1e400 GB/s",
         "45 GB", "9" * 30, "gpu0", "none", "pxn", "all", "spine", "rails", "switches",
         ""]  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 6), st.sampled_from([10**6, 10**12, 10**400, 64]),
    st.floats(), st.floats(0, 1e15), st.sampled_from(WORDS), st.text(max_size=5),
    st.lists(st.integers(0, 3), max_size=3), st.just({}), st.just(SPECS[5]), st.just(LINK),
    st.sampled_from([[["gpu0"]], {"bandwidth": 1e9}, [[0, 0], [0, 1]]]),
)  # fmt: skip
KEYS = st.sampled_from(["kind", "chips", "overrides", "domain", "relay", "wrap", "parallel",
                        "orbit", "orbits", "in_network_reduce", "multigraph", "x", "name", "tier",
                        "count"])  # fmt: skip
EDITS = st.tuples(
    st.sampled_from(["drop", "replace", "add", "twice"]), st.integers(0, 60), KEYS, VALUES
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One place for the files of all examples."""
    return tmp_path_factory.mktemp("fabrics")


def places(value, path=()):
    """The path of every value inside a value."""
    yield path
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(below, (*path, key))


def edited(value, edits):
    """A copy in which some values are gone, replaced, added or repeated."""
    value = copy.deepcopy(value)
    for what, which, key, value_ in edits:
        new = copy.deepcopy(value_)
        found = [path for path in places(value) if path]
        if not found:
            return value
        *above, last = found[which % len(found)]
        holder = value
        for step in above:
            holder = holder[step]
        if what == "drop":
            del holder[last]
        elif what == "replace":
            holder[last] = new
        elif isinstance(holder, list):
            holder.append(new if what == "add" else copy.deepcopy(holder[last]))
        else:
            holder[key] = new
    return value


def written(value, suffix):
    """A value as JSON, or as YAML where numbers that are none have names of their own."""
    text = json.dumps(value)
    if suffix == ".yaml":
        text = text.replace("-Infinity", "-.inf").replace("Infinity", ".inf").replace("NaN", ".nan")
    return text


def assert_judged(file):
    """The fabric of a file if it is one, after everything that must hold of it was seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            G = read(file)
        except TopologyError as error:
            told = error.problems
        else:
            told = ()
    if told:
        assert all(isinstance(problem, str) and problem for problem in told)
        return None
    assert check(G) is G
    for _, _, arc in G.edges(data=True):
        assert 0 < arc["bandwidth"] < math.inf
        assert 0 <= arc["latency"] < 0.1
    return G


def answered(G, folder):
    """Rates of a small fabric are numbers, and it survives being written."""
    if not 2 <= len(accelerators(G)) <= 16 or G.number_of_edges() > 120:
        return
    gathered, exchanged = all_gather_rate(G).rate, all_to_all_rate(G).rate
    assert 0 < all_to_all_rate(G, routing="shortest_ecmp").rate <= exchanged * (1 + 1e-6)
    assert 0 < exchanged <= gathered * (1 + 1e-6) < math.inf
    write(G, folder / "again.json")
    again = assert_judged(folder / "again.json")
    assert dict(again.nodes(data=True)) == dict(G.nodes(data=True))
    assert list(again.edges(data=True)) == list(G.edges(data=True))


@settings(max_examples=80, deadline=None)
@given(form=st.sampled_from(FORMS), edits=st.lists(EDITS, max_size=3))
def test_a_file_with_values_astray_is_a_fabric_or_an_error(folder, form, edits):
    """Values that are gone, of another kind, out of range or given twice."""
    suffix, value = form
    file = folder / f"edited{suffix}"
    file.write_text(written(edited(value, edits), suffix), encoding="utf-8")
    G = assert_judged(file)
    if G is not None:
        answered(G, folder)


CUTS = st.tuples(
    st.integers(0, 10**6),
    st.integers(0, 12),
    st.text("{}[]:,-\"'#&*!|>%@ \n\t01.eE~kinds\x00é", max_size=6),
)


@settings(max_examples=80, deadline=None)
@given(form=st.sampled_from(FORMS), cuts=st.lists(CUTS, min_size=1, max_size=3))
def test_a_file_with_letters_astray_is_a_fabric_or_an_error(folder, form, cuts):
    """Text that is cut and patched anywhere."""
    suffix, value = form
    text = written(value, suffix).replace("}, ", "},\n ")
    for start, length, new in cuts:
        at = start % (len(text) + 1)
        text = text[:at] + new + text[at + length :]
    (folder / f"cut{suffix}").write_text(text, encoding="utf-8")
    assert_judged(folder / f"cut{suffix}")


@settings(max_examples=40, deadline=None)
@given(suffix=st.sampled_from([".yaml", ".json", ".yml"]), data=st.binary(max_size=60))
def test_any_bytes_are_a_fabric_or_an_error(folder, suffix, data):
    """Noise."""
    (folder / f"noise{suffix}").write_bytes(data)
    assert_judged(folder / f"noise{suffix}")


@for_all(("suffix", "value"), FORMS, ids=lambda value: str(value)[:24])
def test_what_is_mutated_here_is_sound(suffix, value, folder):
    """Each file stands on its own before anything is changed."""
    file = folder / f"sound{suffix}"
    file.write_text(written(value, suffix), encoding="utf-8")
    answered(assert_judged(file), folder)
