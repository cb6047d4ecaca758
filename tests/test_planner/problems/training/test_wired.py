"""Training on the graph of a topology file: the catalogue's plan, dearer fabrics, bad files."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

import planner
from planner.text.errors import InputError
from tests.cases.training import SMALL, asked

HGX = "machine: hgx-h100\nchips: 64\n"
LAYOUT = {"tp": 8, "pp": 1, "dp": 2, "cp": 4, "micro_batch": 1, "zero": 1}


def wired(tmp_path: Path, text: str, **changes: object) -> dict[str, object]:
    """A question whose system is wired by a file of this text."""
    (tmp_path / "pod.yaml").write_text(text, encoding="utf-8")
    system = {"like": "hgx-h100", "topology": str(tmp_path / "pod.yaml")}
    return asked(SMALL, system=system, chips=64, work__global_batch="64 sequences", **changes)


def test_hgx_written_out_as_a_graph_is_planned_as_the_catalogue_has_it(tmp_path):
    """The same layout, and every number of it."""
    catalogued = asked(SMALL, chips=64, work__global_batch="64 sequences")
    ours = planner.solve(wired(tmp_path, HGX)).answer
    theirs = planner.solve(catalogued).answer
    assert ours.plan.layout == theirs.plan.layout
    assert ours.plan.step_time == pytest.approx(theirs.plan.step_time, rel=1e-9)
    for name, value in theirs.plan.time_per_step.terms.items():
        assert ours.plan.time_per_step.terms[name] == pytest.approx(value, rel=1e-9), name
    assert [x.step_time for x in ours.alternatives] == pytest.approx(
        [x.step_time for x in theirs.alternatives], rel=1e-9
    )
    assert any(source.what == "network pod.yaml" for source in ours.provenance.data)


@pytest.mark.parametrize(("cp", "dp", "pp", "dearer"), [(4, 2, 1, 1), (1, 4, 2, 3), (1, 8, 1, 1)])
def test_an_oversubscribed_fabric_is_never_faster(tmp_path, cp, dp, pp, dearer):
    """Replicas in neighbouring nodes wait where a leaf of four has less than a node's cards above.

    Stages four nodes apart wait as soon as there is less than for all.
    """
    layout = {**LAYOUT, "cp": cp, "dp": dp, "pp": pp}
    steps = []
    for above in (1, 2, 4, 8):
        text = f"{HGX}join: clos\nleaf: 32\noversubscription: {above}\n"
        now = planner.solve(wired(tmp_path, text, current={**layout, "overlap": False}))
        steps.append(now.answer.current.plan.step_time)
    assert steps == sorted(steps)
    assert sum(b > a * (1 + 1e-9) for a, b in pairwise(steps)) == dearer


def test_a_lost_card_slows_the_replicas_that_used_it(tmp_path):
    """A graph that no formula fits is rated on its own links."""
    base = "machine: hgx-h100\nchips: 16\njoin: rails\n"
    lost = base + "overrides:\n  - {node: [1, 3], tier: scale_out, bandwidth: 10 GB/s}\n"
    steps = []
    for text in (base, lost):
        layout = {**LAYOUT, "dp": 2, "cp": 1, "overlap": False}
        question = wired(tmp_path, text, current=layout) | {"chips": 16}
        steps.append(planner.solve(question).answer.current.plan.step_time)
    assert steps[1] > steps[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("machine: hgx-h100\nchips: 64\nleafs: 2\n", "line 3"),
        ("kind: switch\nchips: 64\nup: fast\n", "line 3"),
        ("machine: hgx-h100\nchips: 32\n", "64 chips are asked for, but pod.yaml wires 32"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, text, words):
    """A key that there is not, a rate that is none, fewer chips than are paid for."""
    with pytest.raises(InputError, match=words):
        planner.solve(wired(tmp_path, text))


def test_a_file_has_its_own_links(tmp_path):
    """Rates of links beside a file are refused, and no slope is given for them."""
    question = wired(tmp_path, HGX)
    question["system"] = {**question["system"], "scale_out": "50 GB/s"}  # type: ignore[dict-item]
    with pytest.raises(InputError, match="leave scale_out out"):
        planner.solve(question)
    plan = planner.solve(json.loads(json.dumps(wired(tmp_path, HGX)))).answer
    assert not {"system.scale_up", "system.scale_out"} & plan.elasticities.keys()
    assert "system.memory_bandwidth" in plan.elasticities
