"""Kinks of swept lines: found on the exact model, and the same by their closed form."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import yaml

import planner
from planner.cli.app import main
from planner.protocol.document import to_document
from planner.report.pictures.sweep_axes import Boundary
from planner.report.pictures.sweep_lines import NO_FORM, PartCrossing, crossing_lines, draw_sweep
from planner.sweep.boundaries import boundaries, crossings
from planner.sweep.run import compute_missing, prepare_sweep
from planner.sweep.table import Memory, Table

DENSE: dict[str, Any] = {
    "problem": "serving",
    "model": "llama-3.1-70b",
    "system": "hgx-h200",
    "chips": 8,
    "workload": {"input_tokens": 4000, "output_tokens": 1000},
    "choose": {
        "mode": "decode", "tp": 8, "dp_attention": 1, "ep": 1, "pp": 1, "replicas": 1, "batch": 32,
    },
}  # fmt: skip
SPARSE = {
    **DENSE,
    "model": "deepseek-v3",
    "chips": 16,
    "choose": {
        **DENSE["choose"], "tp": 1, "dp_attention": 16, "ep": 16, "batch": 256, "overlap": "none",
    },
}  # fmt: skip
TOKENS = {"workload.input_tokens": "log(100..60k,9)"}


def kinks(
    source: dict[str, Any], over: dict[str, str], *sets: str
) -> tuple[Table, list[PartCrossing]]:
    """A sweep and its crossings."""
    order, memory = prepare_sweep(source, over, sets), Memory()
    compute_missing(order, memory)
    table = Table(memory.columns(), order.meta, None)
    return table, crossings(order.closed, table)


@pytest.mark.parametrize(
    ("over", "sets", "form"),
    [
        (
            TOKENS,
            ("system.memory_bandwidth=12 TB/s",),  # weights are read sooner than steps are started
            "overhead = kv at L_ctx = T_over*W_chip*dcp*e_kv/(b_kv*b_rank*f_heads*f_pace)",
        ),
        (
            {"system.memory_bandwidth": "log(1 TB/s..80 TB/s,9)"},
            (),
            "weights = overhead at W_chip = V_w*f_pace_w*n_half/(T_over*e_w)",
        ),
        (
            {"system.memory_bandwidth": "log(1 TB/s..80 TB/s,9)"},
            ("estimate=bound",),
            "memory = compute at W_chip = (V_kv_dec + V_w_bound - M_sram)/T_math_bound",
        ),
    ],
)
def test_the_closed_form_is_the_crossing(over, sets, form):
    """Its value is that of the symbol where the exact model switches, to a part in a million."""
    table, found = kinks(DENSE, over, *sets)
    assert [str(each) for each in found] == [form]
    (each,) = found
    half = 500.0 if "tokens" in each.along else 0.0  # of the answer stands in the context
    assert each.value == pytest.approx(each.at + half, rel=1e-6)
    before, after = (table[each.along][i] for i in each.rows)
    assert before < each.at <= after


def test_weights_and_cache_are_equal_at_a_context_in_closed_form():
    """Of contexts that answers lengthen: I + O/2."""
    large = "system.memory=282 GB", "system.memory_bandwidth=1 TB/s", "choose.batch=512"
    _, found = kinks(SPARSE, {"workload.output_tokens": "log(10..60k,9)"}, *large)
    assert (
        str(found[-1])
        == "weights = kv at L_ctx = V_w*dcp*e_kv*f_pace_w*n_half/(b_kv*b_rank*e_w*f_heads*f_pace)"
    )
    assert found[-1].value == pytest.approx(4000 + found[-1].at / 2, rel=1e-6)


def test_a_batch_crosses_where_its_closed_form_says():
    """Between the two whole batches at which the table changes."""
    table, found = kinks(DENSE, {"choose.batch": "1..200"}, "workload.input_tokens=30000",
                         "promises={}")  # fmt: skip
    formed = [each for each in found if each.form]
    assert formed
    for each in formed:
        assert each.symbol == "B"
        assert each.value == pytest.approx(each.at, rel=1e-6)
        before, after = (table["choose.batch"][i] for i in each.rows)
        assert (before, after) == (np.ceil(each.at) - 1, np.ceil(each.at))


@pytest.mark.slow
def test_ceilings_have_no_closed_form():
    """Chunks of a prompt, and batches that do not divide evenly; value and reason are given."""
    for source, over, sets in (
        (DENSE, TOKENS, ("choose.mode=aggregated",)),
        (SPARSE, {"choose.batch": "1..200"}, ("choose.pp=2", "chips=32")),
    ):
        _, found = kinks(source, over, *sets)
        ceilings = [each for each in found if each.why == "ceilings"]
        assert ceilings
        for each in ceilings:
            assert each.form is None
            assert str(each).endswith(", no closed form (ceilings)")
            assert each.at > 0


def test_every_switch_of_a_line_is_told_once():
    """What follows one switch is what stands before the next, also between the same two points."""
    table, found = kinks(DENSE, {"choose.batch": "16,32,64,128,256,512"})
    assert len(found) >= 2
    assert all(one.after == two.before and one.at < two.at for one, two in pairwise(found))
    words = [word for word in table["bottleneck"] if word]
    assert (found[0].before, found[-1].after) == (words[0], words[-1])


def test_a_map_has_none():
    """Two numbers of many values."""
    many = {**TOKENS, "price": "lin($1/hour..$5/hour,6)"}
    assert kinks(DENSE, many)[1] == []


def test_a_picture_says_the_closed_form():
    """Below the kink it belongs to."""
    pytest.importorskip("matplotlib")
    table, found = kinks(DENSE, TOKENS)
    picture = draw_sweep(table, "svg", "tpot", found).decode()
    assert f"from {found[0].at:,.0f} token: kv" in picture
    assert str(found[0]) in picture


def test_a_switch_between_layouts_has_none():
    """It is marked at the first point of the new one, as searches know no more."""
    pytest.importorskip("matplotlib")
    over = {"price": [1.0, 2.0, 3.0]}
    meta = {"over": ["price"], "units": {}, "points": 3, "scenario": {}}
    columns = {**over, "status": ["optimal"] * 3, "usd_per_mtok": [3.0, 2.0, 1.0],
               "layout": ["(tp 8)", "(tp 4)", "(tp 4)"], "bottleneck": ["kv"] * 3}  # fmt: skip
    picture = draw_sweep(Table(columns, meta, None), "svg").decode()
    assert "A  from 2 : (tp 4)" in picture
    assert NO_FORM in picture


def test_the_command_lists_them(tmp_path, capsys, monkeypatch):
    """Under the summary, and in the JSON document."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(DENSE))
    words = [
        "sweep",
        "s.yaml",
        "--over",
        f"workload.input_tokens={TOKENS['workload.input_tokens']}",
    ]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--out", "a.csv"])
    printed = capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--out", "b.csv", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["crossings"]
    assert found["symbol"] == "L_ctx"
    assert found["at"] == pytest.approx(found["value"] - 500, rel=1e-6)
    assert re.search(rf"workload.input_tokens {found['at']:,.0f} token: \w+ = kv at L_ctx", printed)


def test_no_crossing_says_nothing():
    """A line of one bottleneck."""
    assert crossing_lines([], {}) == []


def bordered(over: dict[str, str], *sets: str) -> tuple[Table, dict[str, Boundary]]:
    """A map and the lines on it, by the parts that they part."""
    order, memory = prepare_sweep(DENSE, over, sets), Memory()
    compute_missing(order, memory)
    table = Table(memory.columns(), order.meta, None)
    found = boundaries(order.closed, table)
    return table, {f"{each.before}, {each.after}": each for each in found}


MAP = {
    "system.memory_bandwidth": "log(1 TB/s..80 TB/s,8)",
    "workload.input_tokens": "log(100..60k,9)",
}


def test_the_lines_of_a_map_have_the_other_axis_in_their_closed_form():
    """Bandwidth goes up, prompts go along: one stands on the left, the other on the right."""
    _, found = bordered(MAP)
    assert found["kv, overhead"].forms == (
        "L_ctx = T_over*W_chip*dcp*e_kv/(b_kv*b_rank*f_heads*f_pace)",
    )
    assert found["overhead, weights"].forms == ("W_chip = V_w*f_pace_w*n_half/(T_over*e_w)",)
    over = {"choose.batch": "16,32,48,64,80", "workload.input_tokens": "log(1k..60k,15)"}
    _, found = bordered(over)
    (form,) = found["kv, overhead"].forms
    assert "B*t_seq" in form


def test_both_parts_are_as_long_on_the_lines_of_a_map():
    """At each point of each line, by solving with its two numbers."""
    _, found = bordered(MAP)
    looked = 0
    for each in found.values():
        for line in each.lines:
            for tokens, bandwidth in line[:: max(1, len(line) // 2)]:
                sets = [f"workload.input_tokens={tokens!r}",
                        f"system.memory_bandwidth={bandwidth!r} B/s"]  # fmt: skip
                parts = planner.solve(DENSE, sets=sets).chosen["time_per_step"]
                assert parts[each.before] == pytest.approx(parts[each.after], rel=1e-9)
                looked += 1
    assert looked > 5


def test_a_map_shows_its_lines_and_their_closed_form():
    """Numbered, below the picture; the same in the terminal."""
    table, found = bordered(MAP)
    picture = draw_sweep(table, "svg", None, list(found.values())).decode()
    for number, each in enumerate(found.values(), 1):
        assert f"{number}  {each}" in picture
    lines = crossing_lines(list(found.values()), table.units)
    assert lines[1:] == [f"  {each}" for each in found.values()]
    assert json.loads(json.dumps(to_document(found["kv, overhead"])))["forms"]


def test_a_solved_map_has_no_lines():
    """Layouts are searched at each point: nothing is known between them."""
    free = {**DENSE, "choose": {"mode": "decode", "tp": [4, 8]}}
    order = prepare_sweep(
        free, {"promises.tpot": "20 ms,30 ms", "workload.input_tokens": "100,200"}
    )
    assert order.closed is None
    assert boundaries(order.closed, None) == []
