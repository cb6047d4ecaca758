"""`planner topology`: what it says of machines and files, what it writes, what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

import topologies
from planner.network.network_document import measurements
from planner.network.network_source import network
from planner.report.files import dumps
from planner.report.text.topology import topology_text
from tests.cases.messages import bare
from tests.loops import for_all
from tests.test_planner.cli.conftest import document, numbers

COMMAND = ("topology",)

TORUS = """\
kind: torus
dims: [4, 4, 4]
link: {bandwidth: 45 GB/s, latency: 1 us}
"""
KEYS = {
    "name", "title", "chips", "domains", "nodes", "relays", "links", "routing", "bisection",
    "leaving", "in_network_reduce", "groups", "collectives", "faults", "warnings", "doubts",
    "source", "as_of", "figures",
}  # fmt: skip


@pytest.fixture
def torus(tmp_path: Path) -> Path:
    """A file with a torus of 64 chips."""
    file = tmp_path / "torus.yaml"
    file.write_text(TORUS, encoding="utf-8")
    return file


# What it says


def test_without_a_name_it_lists_the_machines(run):
    """Each machine of the catalogue with its domain and rates, as text and as JSON."""
    status, out, err = run()
    assert status == 0
    assert not err
    assert all(name in out for name in topologies.names())
    rows = document(run)
    assert [row["name"] for row in rows] == list(topologies.names())


@for_all("name", topologies.names())
def test_every_machine_is_measured_in_80_columns(name):
    """Text and JSON of each machine: links, groups, sources; no number that is none."""
    # A pod of thousands of chips takes seconds; a cube of it says the same.
    large = topologies.machine(name).chips_per_domain > 2000
    found = measurements(network(name, shape="4x4x4" if large else None))
    text = topology_text(found)
    assert all(len(line) <= 80 for line in text.splitlines())
    for word in ("links", "all-to-all", "bisection", "what binds"):
        assert word in text
    again = json.loads(dumps(found))
    assert again.keys() == KEYS
    assert all(math.isfinite(number) for number in numbers(again))
    assert all(row["all_to_all"] > 0 and row["all_gather"] > 0 for row in found["groups"])
    assert all(figure["source"] and figure["as_of"] for figure in found["figures"])


def test_the_bisection_of_a_pod_is_the_published_one(run):
    """Google's page of TPU v5e: 1.6 TB/s across 16x16 chips."""
    assert document(run, "tpu-v5e")["bisection"] == {"rate": 1.6e12, "chips": 128, "across": "x"}


def test_leaving_a_rack_is_where_it_becomes_slow(run):
    """NVL72: from 73 chips on; a chip's links are 900 inside and 50 GB/s outside."""
    found = document(run, "gb200-nvl72", "--chips", 288)
    assert found["domains"] == {"count": 4, "chips": [72]}
    assert found["leaving"]["from_chips"] == 73
    assert found["leaving"]["slowdown_links"] == pytest.approx(18)
    rates = {row["chips"]: row["all_to_all"] for row in found["groups"]}
    # Half of what a chip sends to the 143 others crosses its own card of 50 GB/s.
    assert rates[144] == pytest.approx(50e9 * 143 / 72)
    assert found["leaving"]["slowdown_all_to_all"] == pytest.approx(900e9 / rates[144])


def test_one_domain_cannot_be_left(run):
    """Of a single domain nothing is said about leaving it."""
    assert document(run, "tpu-v5e")["leaving"] is None
    _, out, _ = run("hgx-h200", "--chips", 8)
    assert "leaving" not in out


def test_links_are_counted_by_class(run):
    """Of 32 chips of HGX: a link each to their board and to the spine."""
    links = document(run, "hgx-h200", "--chips", 32)["links"]
    assert {(row["tier"], row["bandwidth"], row["links"]) for row in links} == {
        ("scale_up", 450e9, 32),
        ("scale_out", 50e9, 32),
    }


def test_asked_groups_are_the_ones_answered(run):
    """`--group` may be repeated; sizes come sorted, each once."""
    cube = ("tpu-v4", "--shape", "4x4x8")
    found = document(run, *cube, "--group", 64, "--group", 8, "--group", 8)
    assert [row["chips"] for row in found["groups"]] == [8, 64]
    assert found["groups"][1]["box"] == [4, 4, 4]


def test_a_slice_has_the_shape_that_is_asked_for(run):
    """A slice of a TPU by its sides; in a full cube the rings are closed."""
    found = document(run, "tpu-v4", "--shape", "4x4x8")
    assert found["chips"] == 128
    assert found["links"][0]["links"] == 3 * 128


@pytest.mark.slow
def test_a_whole_pod_is_measured(run):
    """9,216 chips, the longest side 24: 8 B/(N k_max), and the flow program agrees."""
    (group,) = document(run, "tpu-ironwood", "--group", 9216)["groups"]
    assert group["all_to_all"] == pytest.approx(8 * 100e9 / (9216 * 24) * 9215)
    assert group["confirmed_by"]


def test_what_binds_is_said_with_its_weight(run):
    """Beyond a rack the network cards bind alone; elasticities add up to 1."""
    found = document(run, "gb200-nvl72", "--chips", 144, "--group", 72, "--group", 144)
    rack, both = found["groups"]
    assert [(each["ends"], each["tier"]) for each in rack["binding"]] == [
        (["chip", "switch"], "scale_up")
    ]
    assert [(each["ends"], each["tier"]) for each in both["binding"]] == [
        (["chip", "spine"], "scale_out")
    ]
    for row in (rack, both):
        assert sum(each["elasticity"] for each in row["binding"]) == pytest.approx(1)
        assert row["engine"] == "formula"
        assert row["confirmed_by"]
        assert row["cut"]["links"]


def test_switches_that_add_nearly_double_an_all_reduce(run):
    """Ideal NVLS: S once there and once back, 2 (n - 1)/n of the plain bus bandwidth."""
    (group,) = document(run, "hgx-h200", "--chips", 8, "--group", 8)["groups"]
    assert group["all_reduce"] == pytest.approx(450e9)
    assert group["reduction"]["all_reduce"] == pytest.approx(450e9 * 2 * 7 / 8)
    (small,) = document(run, "hgx-h200", "--chips", 8, "--group", 4)["groups"]
    assert small["reduction"] is None


def test_an_oversubscribed_network_is_asked_for_in_words(run):
    """Sixteen boards on leaves of four, 4:1: 0.130208 GB/s for each pair of the 128."""
    words = ("--chips", 128, "--join", "clos", "--leaf", 32, "--oversubscription", 4)
    (group,) = document(run, "hgx-h100", *words, "--group", 128)["groups"]
    assert group["all_to_all"] / 127 == pytest.approx(0.130208e9, rel=1e-5)
    assert group["binding"][0]["ends"] == ["leaf", "spine"]


def test_a_twist_pays(run):
    """4x4x8 of TPU v4: 1.745 times the all-to-all of the plain torus."""
    words = ("tpu-v4", "--shape", "4x4x8", "--group", 128)
    rates = [
        document(run, *words, *twist)["groups"][0]["all_to_all"] for twist in ([], ["--twisted"])
    ]
    assert rates[1] / rates[0] == pytest.approx(1.7454545, rel=1e-6)


def test_shortest_paths_are_slower_on_a_dragonfly(run, tmp_path):
    """0.532 against 0.704 of the study: 75.5 %."""
    file = tmp_path / "dragonfly.json"
    topologies.write(topologies.dragonfly(2, 4, 2, up=50e9, local=50e9, out=50e9), file)
    best, short = (
        document(run, file, "--group", 72, "--routing", routing)["groups"][0]["all_to_all"]
        for routing in ("optimal", "shortest_ecmp")
    )
    assert short / best == pytest.approx(0.755, abs=0.003)


def test_a_collective_is_timed_beside_its_bound(run):
    """Each asked group and message, across domains by each algorithm, never below the bound."""
    words = ("--collective", "all-reduce", "--bytes", "1 MB", "--bytes", "64 MB")
    found = document(run, "hgx-h200", "--group", 8, "--group", 16, *words)["collectives"]
    assert [(row["chips"], row["bytes"]) for row in found] == [
        (8, 1e6), (8, 64e6), *[(16, 1e6), (16, 64e6)] * 2
    ]  # fmt: skip
    assert [row["algorithm"] for row in found[2:]] == ["two-level"] * 2 + ["ring"] * 2
    for row in found:
        assert row["bound"] <= row["seconds"]
        assert row["low"] <= row["seconds"] <= row["high"]
    assert document(run, "hgx-h200")["collectives"] == []
    _, out, _ = run("hgx-h200", "--group", 8, *words)
    assert "64 MB" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_file_is_measured_like_a_machine(run, torus):
    """The 4x4x4 torus of the study: 1.40625 GB/s for each ordered pair."""
    found = document(run, torus, "--group", 64)
    assert found["groups"][0]["all_to_all"] == pytest.approx(1.40625e9 * 63)
    assert found["bisection"]["rate"] == pytest.approx(2 * 16 * 45e9)


def test_what_is_uncertain_about_a_machine_is_said(run):
    """A rack known from memory, a card that is assumed; nothing where all is stated."""
    status, out, err = run("rubin-ultra-kyber", "--group", 2)
    assert (status, err) == (0, "")
    assert "doubts\n  NVIDIA Rubin Ultra" in out
    assert out.count("scale_up: from memory, unverified") == 1
    found = document(run, "mi300x-8", "--group", 2)
    assert found["doubts"][0].startswith("scale_out: assumption")
    assert {f["name"] for f in found["figures"] if f["assumed"]} >= {"scale_out"}
    assert document(run, "hgx-h100", "--group", 2)["doubts"] == []


def test_a_fault_in_a_file_is_found_and_costs(run, tmp_path):
    """One link of the torus at half its rate: 1.38428 GB/s for each pair."""
    file = tmp_path / "hurt.yaml"
    change = "overrides: [{link: [[0, 0, 0], [0, 0, 1]], factor: 0.5}]\n"
    file.write_text(TORUS + change, encoding="utf-8")
    found = document(run, file, "--group", 64)
    assert found["faults"] == ["0.0.0 - 0.0.1: 22.5 GB/s, not 45 GB/s"]
    assert found["groups"][0]["all_to_all"] / 63 == pytest.approx(1.38428e9, rel=1e-5)


def test_an_unlikely_rate_is_warned_of_and_kept_back_when_quiet(run, tmp_path):
    """45 B/s is sound and odd: said once on standard error, and in the JSON document."""
    file = tmp_path / "slow.yaml"
    file.write_text(TORUS.replace("45 GB/s", "45 B/s"), encoding="utf-8")
    status, out, err = run(file, "--group", 2)
    assert status == 0
    assert err.count("warning:") == 1
    assert (err + out).count("below 1 MB/s") == 1
    (said,) = document(run, file, "--group", 2)["warnings"]
    assert "and 383 more: bandwidth is 45 byte/s" in said
    _, _, err = run(file, "--group", 2, "--quiet")
    assert not err


# What it writes


def test_it_draws(run, tmp_path):
    """A picture beside the answer, the same through `--svg` and `--out`."""
    status, out, err = run("hgx-h200", "--svg", tmp_path / "a.svg", "--out", tmp_path / "b.svg")
    assert status == 0
    assert "all-to-all" in out
    assert "wrote" in err
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")


def test_what_it_writes_it_reads_again(run, tmp_path):
    """A machine as JSON is the same network from its file."""
    file = tmp_path / "board.json"
    first = document(run, "hgx-h200", "--chips", 8, "--out", file)
    again = document(run, file)
    for key in ("chips", "domains", "nodes", "bisection"):
        assert again[key] == first[key]
    rates = [[row[k] for k in ("all_to_all", "all_gather")] for row in first["groups"]]
    assert [[row[k] for k in ("all_to_all", "all_gather")] for row in again["groups"]] == [
        pytest.approx(row) for row in rates
    ]


def test_other_forms_are_written(run, tmp_path):
    """GraphML of anything, ASTRA-sim of what it can express."""
    assert run("tpu-v5e", "--out", tmp_path / "a.graphml")[0] == 0
    assert "graphml" in (tmp_path / "a.graphml").read_text(encoding="utf-8")
    assert run("tpu-v5e", "--out", tmp_path / "a.yaml")[0] == 0
    assert "npus_count" in (tmp_path / "a.yaml").read_text(encoding="utf-8")


def test_names_in_a_file_cannot_reach_the_terminal(run, tmp_path):
    """Escape sequences in the names of nodes are refused or shown as text."""
    G = topologies.hierarchy(topologies.switch(4, up=450e9), 2, out=50e9)
    topologies.write(G, tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text(encoding="utf-8").replace("spine", "\\u001b[31mspine")
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    _, out, err = run(tmp_path / "a.json")
    assert "\x1b" not in out + err


# What it refuses

MISTAKES = {
    "typo": (["gb200-nvl7"], "did you mean 'gb200-nvl72'?"),
    "no such name": (["zzz"], "known: hgx-a100"),
    "no such file": (["nowhere.yaml"], "no such file"),
    "no name": ([""], "unknown machine ''"),
    "a folder": (["."], "it is a directory"),
    "part of a domain": (["hgx-h200", "--chips", "12"], "8 or 16 are"),
    "no chips": (["hgx-h200", "--chips", "0"], "at least 1"),
    "too many chips": (["hgx-h200", "--chips", "80000000"], "at most 20,000"),
    "no network between": (["h100-pcie", "--chips", "4"], "scale_out is not known"),
    "no such slice": (["tpu-v4", "--chips", "4093"], "tpu-v4"),
    "shape of no torus": (["hgx-h200", "--shape", "2x4"], "no slices"),
    "no shape": (["tpu-v4", "--shape", "4xfour"], "sides such as 4x4x8"),
    "empty shape": (["tpu-v4", "--shape", ""], "sides such as 4x4x8"),
    "shape too large": (["tpu-v4", "--shape", "4x4x64"], "tpu-v4"),
    "flat shape": (["tpu-v4", "--shape", "4x4"], "tpu-v4"),
    "shape and chips": (["tpu-v4", "--shape", "4x4x4", "--chips", "32"], "64"),
    "group too large": (["hgx-h200", "--group", "999"], "has 32 chips"),
    "group of nothing": (["hgx-h200", "--group", "0"], "--group 0"),
    "routing": (["hgx-h200", "--routing", "optimum"], "did you mean 'optimal'?"),
    "nothing to draw": (["--svg", "a.svg"], "give a network"),
    "collective": (["hgx-h200", "--collective", "all-reduc"], "did you mean 'all-reduce'?"),
    "bytes of nothing": (["hgx-h200", "--bytes", "1 MB"], "--collective"),
    "no size": (["hgx-h200", "--collective", "all-to-all", "--bytes", "1 s"], "--bytes: expected"),
    "no joint": (["hgx-h200", "--join", "clas"], "clos"),
    "half a clos": (["hgx-h200", "--join", "clos"], "leaf"),
    "no ratio": (["hgx-h200", "--join", "rails", "--oversubscription", "nan"], "oversubscription"),
    "no twist": (["tpu-v4", "--shape", "4x4x4", "--twisted"], "twist"),
    "form": (["hgx-h200", "--out", "a.txt"], ".graphml"),
    "folder to write": (["hgx-h200", "--out", "folder.json"], "folder"),
    "folder to draw": (["hgx-h200", "--svg", "folder.json"], "folder"),
    "not of ASTRA-sim": (["hgx-h200", "--out", "a.yaml"], "ASTRA-sim"),
}


@for_all("case", MISTAKES)
def test_a_mistake_is_one_message_and_status_2(run, case, tmp_path, monkeypatch):
    """What is wrong and what was expected, on standard error; nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.json").mkdir()
    words, expected = MISTAKES[case]
    status, out, err = run(*words)
    assert status == 2
    assert not out
    assert expected.casefold() in err.casefold()
    assert "Traceback" not in err
    assert [file.name for file in tmp_path.iterdir()] == ["folder.json"]


def test_every_mistake_of_a_file_is_told_with_its_place(run, tmp_path):
    """One line each: file, line, column, what is wrong, what was meant."""
    file = tmp_path / "bad.yaml"
    file.write_text(TORUS.replace("4]", "0]").replace("bandwidth", "bandwith"), encoding="utf-8")
    status, out, err = run(file)
    assert status == 2
    assert not out
    lines = bare(err).splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"{file}:") for line in lines)
    assert f"{file}:2:14" in lines[0]
    assert "did you mean 'bandwidth'?" in err


def test_options_of_machines_are_not_for_files(run, torus):
    """A file says what it is."""
    status, _, err = run(torus, "--chips", 8)
    assert status == 2
    assert "--chips" in err
