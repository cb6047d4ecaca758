"""`planner validate --memory`: logged starts scored by class, bad rows named by their line."""

import pytest

from planner.text.errors import InputError
from planner.validation.memory_rows import logged_starts
from planner.validation.memory_scores import memory_scores
from tests.paths import shared

HEAD = ("id,complete,engine,version,layers,hidden,ffn,vocab,params_b,quant,chip,tp,share,"
        "visible_gib,heads,kv_heads,head_dim,attention,log_weights,log_nontorch,log_act,log_kv,log_tokens,"
        "max_model_len,note,graphs")  # fmt: skip
ROW = ("a,yes,vllm,0.19.0,32,4096,14336,128256,8.03,bf16,h100,1,0.95,79.19,32,8,128,gqa,14.99,0.25,"
       "1.89,{room},476016,8192,{note},on")  # fmt: skip


def table(tmp_path, *rows):
    path = tmp_path / "starts.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_a_row_is_scored(tmp_path):
    """One start: its room within a percent, its tokens exact, its verdict right."""
    path = table(tmp_path, ROW.format(room=58.11, note=""))
    scores = memory_scores([path])
    assert scores.rooms[0].rows == 1
    assert scores.rooms[0].median < 0.01
    assert scores.tokens[0].p95 < 1e-4
    assert scores.starts["fits"] == 1


def test_terms_that_do_not_add_up_are_named(tmp_path):
    """The room of another start: the line is told, the row is not scored."""
    path = table(tmp_path, ROW.format(room=58.11, note=""), ROW.format(room=50.0, note=""))
    out = str(memory_scores([path]))
    assert "line 3 (a): printed terms and room miss the share by -8.10 GiB" in out


@pytest.mark.parametrize("cell", ["nan", "much", "1e999x"])
def test_cells_that_are_no_numbers_are_named(tmp_path, cell):
    """With file, line and column's name."""
    path = table(tmp_path, ROW.format(room=cell, note=""))
    with pytest.raises(InputError, match=r"starts\.csv:2:1  log_kv: expected a number"):
        logged_starts(path)


def test_another_table_is_refused(tmp_path):
    """Columns that are needed are named."""
    path = tmp_path / "other.csv"
    path.write_text("engine,chip\nvllm,h100\n")
    with pytest.raises(InputError, match="no table of starts: columns version, layers"):
        logged_starts(path)


def test_the_open_rows_are_within_reach():
    """Discrete cards and text within 2 % (median), no refusal is told to fit, tokens exact."""
    scores = memory_scores([shared("engine_memory.csv")])
    rooms, tokens = ({x.group: x for x in rows} for rows in (scores.rooms, scores.tokens))
    known, default = rooms["vLLM, text, flags known"], rooms["vLLM, text, flags from defaults"]
    assert known.median <= 0.02
    assert known.p80 <= 0.04
    assert known.optimistic_15 == 0
    assert default.median <= 0.03
    assert default.p95 <= 0.15
    assert default.optimistic_15 <= 0.03 * default.rows
    assert rooms["SGLang, NVIDIA, AMD"].median <= 0.04
    assert rooms["SGLang, NVIDIA, AMD"].optimistic_15 == 0
    special = rooms["vLLM, images, drafts, unified memory"]
    assert special.optimistic_15 <= 0.1 * special.rows
    assert tokens["vLLM"].p95 <= 0.005
    assert scores.refusals["fits"] == 0
    assert scores.starts["does not fit"] == 0
