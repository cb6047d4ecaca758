"""Pools are paired where one engine runs both: of some, by the stages that a cache goes through."""

from __future__ import annotations

import numpy as np

from planner.problems.serving.pairs.receiving_chips import by_engine
from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.step.engine_rules import engine_tables

VLLM, SGLANG = (1 << list(engine_tables()).index(name) for name in ("vllm", "sglang"))


def pool(stages: list[int], engines: list[int]) -> PhaseLayouts:
    """Layouts of so many stages each, run by these engines."""
    columns = dict.fromkeys(PhaseLayouts.__dataclass_fields__, np.zeros(len(stages), np.int64))
    given = {"rows": np.arange(len(stages)), "stages": np.array(stages)}
    return PhaseLayouts(**{**columns, **given, "engines": np.array(engines)})


def pairs(prefill: PhaseLayouts, decode: PhaseLayouts) -> set[tuple[int, int]]:
    """Rows that stand in one group."""
    first, last = by_engine(prefill, decode)
    return {
        (int(a), int(b))
        for a, group in zip(first.rows, first.group, strict=True)
        for b, other in zip(last.rows, last.group, strict=True)
        if group == other
    }


def test_sglang_decodes_in_one_stage_or_in_as_many_as_prefill():
    """What decodes in one stage goes with all; what decodes in two with two."""
    prefill, decode = pool([1, 2, 3], [SGLANG] * 3), pool([1, 2], [SGLANG] * 2)
    assert pairs(prefill, decode) == {(0, 0), (1, 0), (2, 0), (1, 1)}


def test_other_engines_are_not_tied():
    """Where another engine runs both, any stages go together; none is paired across engines."""
    both = VLLM | SGLANG
    assert pairs(pool([1, 3], [both] * 2), pool([2], [both])) == {(0, 0), (1, 0)}
    assert pairs(pool([1, 2], [VLLM, SGLANG]), pool([2, 2], [SGLANG, VLLM])) == {(0, 1), (1, 0)}
    assert not pairs(pool([1], [VLLM]), pool([2], [SGLANG]))
    assert pairs(pool([1, 3], [-1, -1]), pool([2], [-1])) == {(0, 0), (1, 0)}
