"""Fields of a plan and the units of its outputs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import sympy as sp

from planner.problems.serving import closed_form
from planner.problems.serving.outputs import OUTPUTS
from planner.problems.serving.point import ServingPoint
from tests.loops import for_all


def point(**fields: Any) -> Any:
    """A plan of which a few fields count."""
    every = dict.fromkeys(ServingPoint.__dataclass_fields__)
    return ServingPoint(**{**every, **fields})


def test_memories_are_those_of_each_pool():
    """By a title that says which; of one pool its own."""
    pools = {
        name: SimpleNamespace(memory_per_chip=name, holds=None) for name in ("prefill", "decode")
    }
    two = point(memory_per_chip="decode", **pools)
    assert two.memories() == {
        "memory per chip that prefills": ("prefill", None),
        "memory per chip that decodes": ("decode", None),
    }  # fmt: skip
    assert two.phases == pools
    one = point(memory_per_chip="all", weights="fp8", kv="bf16")
    assert (one.memories(), one.phases) == ({"memory per chip": ("all", None)}, {})
    assert one.formats == "weights fp8, KV cache bf16"


@for_all("output", OUTPUTS, ids=lambda output: output.name)
def test_an_output_is_its_equation_in_the_unit_that_it_names(output, monkeypatch):
    """A million tokens, an hour of 3600 s, or base units; rates are the better the larger."""
    scale = 1
    if "million" in output.unit:
        scale = 10**6
    elif output.unit.endswith("/hour"):
        scale = 3600
    assert output.scale == scale
    assert output.rises == (output.unit in ("token/s", "seq/s", "token/(s*chip)"))
    asked, symbol = [], sp.Symbol("x")

    def expression(*of: Any) -> sp.Expr:
        asked.append(of)
        return symbol

    monkeypatch.setattr(closed_form, "expression", expression)
    answer = SimpleNamespace(plan=SimpleNamespace(mode="decode", **{output.name: 1.5}))
    plan: Any = SimpleNamespace(answer=answer)
    assert output.equation(plan) == scale * symbol
    assert asked == [(output.word, "decode", answer)]
    answer.plan = SimpleNamespace(mode="decode", **{output.name: None})
    assert output.equation(plan) is None
    answer.plan = None
    assert output.equation(plan) is None
