"""Training questions that several tests share, and a pipeline run pass by pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

BASE: Mapping[str, Any] = {
    "problem": "training", "model": "llama-3.1-70b", "system": "hgx-h100", "chips": 512,
    "work": {"global_batch": "512 sequences", "sequence": 8192, "tokens": "15 T tokens"},
}  # fmt: skip
SMALL: Mapping[str, Any] = {
    "problem": "training", "model": "llama-3.2-1b", "system": "hgx-h100", "chips": 8,
    "work": {"global_batch": "16 sequences", "sequence": 4096, "tokens": "1 B tokens"},
}  # fmt: skip


def asked(base: Mapping[str, Any] = BASE, **changes: Any) -> dict[str, Any]:
    """A question with values at paths, whose parts are joined by two underscores."""
    question = deepcopy(dict(base))
    for path, value in changes.items():
        *above, last = path.split("__")
        part = question
        for key in above:
            part = part.setdefault(key, {})
        part[last] = value
    return question


Pass = tuple[str, int, int]  # kind, chunk of the stage, micro-batch


def pipeline_time(
    orders: Sequence[Sequence[Pass]], takes: Sequence[Mapping[str, float]], chunks: int = 1
) -> float:
    """Time until all stages are done, every pass in its stage's order and after what it needs.

    `takes` are the times of a stage by kind of pass.

    A forward pass needs that of the layers before; gradients of the inputs those of the layers
    after, and their own forward pass; gradients of the weights those of the inputs.
    """
    stages = len(orders)
    done: dict[tuple[int, Pass], float] = {}
    clocks, places = [0.0] * stages, [0] * stages

    def needs(s: int, one: Pass) -> list[tuple[int, Pass]]:
        kind, chunk, micro = one
        layer = chunk * stages + s
        if kind == "F":
            before = layer - 1
            return [] if before < 0 else [(before % stages, ("F", before // stages, micro))]
        if kind == "W":
            return [(s, ("B", chunk, micro))]
        after = layer + 1
        beside = [(s, ("F", chunk, micro))]
        if after == stages * chunks:
            return beside
        return [*beside, (after % stages, ("B", after // stages, micro))]

    while any(place < len(order) for place, order in zip(places, orders, strict=True)):
        moved = False
        for s, order in enumerate(orders):
            while places[s] < len(order):
                one = order[places[s]]
                needed = needs(s, one)
                if any(each not in done for each in needed):
                    break
                start = max([clocks[s], *(done[each] for each in needed)])
                clocks[s] = done[s, one] = start + takes[s][one[0]]
                places[s] += 1
                moved = True
        assert moved, "the order of a stage waits for itself"
    return max(clocks)
