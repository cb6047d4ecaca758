"""Tables of reinforcement learning: rows as questions, fits of what a framework adds, refusals."""

import pytest

import planner
from planner.measurements.readers.file_kinds import read_measured_values
from tests.cases.rl_questions import question

COLUMNS = (
    "id,framework,version,model,chip,precision_training,precision_generation,policy,steps_off,"
    "max_seq,mean_seq,chips,rollouts_per_step,train_global_batch,gen_tp,gen_pp,train_tp,train_cp,"
    "train_ep,train_pp,train_vpp,step_s,tokens_per_s_chip"
)
ROW = "{id},mine,1,qwen3-32b,{chip},BF16,BF16,{policy},{off},4096,1500,32,256,128,4,1,4,1,1,1,,{s},"


def written(folder, *rows):
    """A table of rows, each changed word by word."""
    usual = {"id": "a", "chip": "H100", "policy": "on", "off": 0, "s": 60}
    path = folder / "runs.csv"
    lines = [COLUMNS, *(ROW.format(**usual | row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_row_is_the_question_of_its_layouts(tmp_path):
    """The estimate is what `problem: rl` answers when asked the same; nothing beats the bound."""
    _, (entry,) = read_measured_values(written(tmp_path, {}), {})
    choose = {"tp": 4, "cp": 1, "pp": 1}
    work = {"prompt": 1, "answer": 1500, "most": 4095}
    alone = planner.solve(question(work=work, training={"choose": choose},
                                   rollout={"tp": 4, "pp": 1, "weights": "bf16"}))  # fmt: skip
    assert entry.prediction.estimate == pytest.approx(alone.answer.plan.step_time, rel=1e-12)
    assert 0 < entry.bound < entry.prediction.estimate
    assert entry.seconds == 60


def test_what_is_not_understood_is_refused_by_row(tmp_path):
    """Each row with its reason; the others stand."""
    rows = ({"s": ""}, {"chip": "Abacus"}, {"policy": "in-between"})
    _, entries = read_measured_values(written(tmp_path, *rows), {})
    reasons = [entry.reason for entry in entries]
    assert "not a positive number" in reasons[0]
    assert "Abacus" in reasons[1]
    assert "policy" in reasons[2]
