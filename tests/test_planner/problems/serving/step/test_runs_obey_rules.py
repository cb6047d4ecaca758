"""Runs that were published did run: where rules of their engine refuse one, it was misread."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from planner.measurements.measurement import Measurement
from planner.measurements.readers import runs
from planner.problems.serving.step.engine_rules import EnginePool, engine_tables
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.runnable import supports
from tests.paths import SHARED

TABLES = ("serving_runs.csv", "serving_runs_2.csv", "serving_more_runs.csv")
# What is refused, with how the run differs from its row: (model, engine, ways of the experts).
MISREAD = {
    # The engine's published scripts store 32 more experts, which the table does not tell.
    ("deepseek-v3", "sglang", "ep 48"), ("deepseek-v3", "sglang", "ep 24"),
    ("deepseek-v3", "trtllm", "ep 48"),
    # Its recipe says that tp 8 takes expert parallelism; the table says that it had none.
    ("minimax-m2.5", "vllm", "ep 1"),
}  # fmt: skip
COPIES = 32


def of_an_engine() -> Iterator[tuple[Measurement, str]]:
    """Published rows of an engine whose rules were read, on chips that its release runs on."""
    for table in TABLES:
        for row in runs(SHARED / table).rows:
            name = row.engine.split("-")[0]
            engine = engine_tables().get(name)
            if engine and row.layout is not None and row.chip.maker in engine.vendors:
                yield row, name


def runs_it(row: Measurement, name: str, copies: int = 0) -> bool:
    """Whether the rules about layouts let the row pass."""
    weights = row.sizes.weight_dtype["routed" if row.sizes.n_experts else "dense_ffn"]
    role = ("prefill" if row.quantity == "ttft" else "decode") if row.pooled else ""
    pool = EnginePool(row.sizes, row.chip, role, weights, copies, row.drafts)
    return bool(np.all(supports(pool, Layouts.of(**row.layout), (name,))))


@pytest.mark.slow
def test_what_ran_is_run_by_its_engine():
    """All rows but those whose layout is no whole account of what ran; all are looked at."""
    if not SHARED.is_dir():
        pytest.skip("the measurements beside the repository are not there")
    passed, refused = 0, defaultdict(list)
    for row, name in of_an_engine():
        if runs_it(row, name):
            passed += 1
        else:
            refused[row.model, name, f"ep {row.layout.get('ep', 1)}"].append(row)
    assert passed > 5000
    assert refused.keys() == MISREAD
    stored = [row for (_, name, _), rows in refused.items() if name == "sglang" for row in rows]
    assert len(stored) > 40
    assert all(runs_it(row, "sglang", COPIES) for row in stored)
