"""How a layout spreads experts and contexts: fullest ranks, copies of a token, rounds of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.network.layout_collectives import DECODE, PREFILL, rounds

if TYPE_CHECKING:
    from planner.architecture.counts import Sizes
    from planner.problems.serving.step.layouts import Layouts
    from planner.problems.serving.task.task import Task

__all__ = ["contexts", "copies", "copies_to_domains", "evenness", "imbalance"]


def contexts(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """What the parts of a context take to answer each other, and to pass keys and values round."""
    found = {
        "cp": layouts.cp * 1.0,
        "n_cp": np.where(layouts.cp > 1, task.sizes.n_attention_layers, 0) * 1.0,
        # Every part has the chunk of a chip of its own.
        "c_chunk": task.chunk * layouts.cp,
    }
    for names, within in ((("a_cp", "w_cp", "g_cp"), DECODE), (_RING, PREFILL)):
        if task.lecture:
            law = np.zeros(len(layouts)), np.ones(len(layouts)), np.zeros(len(layouts))
        else:
            parts = rounds(task.network, task.chip.name, layouts.cp, layouts.stage, within)
            law = parts.floor, parts.rate, parts.root
        found |= dict(zip(names, law, strict=True))
    return found


def evenness(task: Task, layouts: Layouts) -> dict[str, np.ndarray]:
    """Weights and tokens of the fullest expert rank over the mean.

    Copies of experts are weights that a rank holds beyond its share; tokens follow all of its
    experts alike, and whatever skewed routing adds comes on top.
    """
    # All tokens of one rank is as uneven as it gets.
    skew = np.minimum(task.skew, layouts.ep)
    if task.lecture or task.ideal:
        whole = np.ones(len(layouts))
        return {"u_ep": whole, "x_ep": whole * skew, "f_skew": skew}
    experts = max(task.sizes.n_experts, 1)
    held = experts + task.redundant
    fullest = np.ceil(held / layouts.ep) * layouts.ep
    return {"u_ep": fullest / experts, "x_ep": fullest / held * skew, "f_skew": skew}


def imbalance(task: Task, ep: np.ndarray) -> np.ndarray:
    """The fullest of ep ranks: 1 + c/sqrt(B), c = sqrt(2 ln(ep) ep / (k m))."""
    k = max(task.sizes.n_experts_active, 1)
    return np.sqrt(2 * np.log(ep) * ep / (k * task.positions_per_step))


def copies(sizes: Sizes, ep: np.ndarray) -> np.ndarray:
    """Expected number of expert ranks that hold at least one of a token's k experts."""
    return _distinct(sizes, ep, ep)


def copies_to_domains(sizes: Sizes, domains: np.ndarray) -> np.ndarray:
    """Expected number of domains that hold at least one of a token's k experts.

    Group-limited routing keeps a token to some of the domains, over which groups of experts lie in
    turn, and picks its experts among those of these.
    """
    each = np.maximum(np.ceil(domains / sizes.expert_groups), 1.0)
    reach = np.minimum(domains, sizes.expert_groups_active * each)
    return _distinct(sizes, domains, np.where(sizes.expert_groups > 1, reach, domains))


def _distinct(sizes: Sizes, places: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """How many of the `reach` places among which k experts are picked evenly are met."""
    group = sizes.n_experts / places
    experts, missed = group * reach, np.ones(np.shape(places))
    for i in range(sizes.n_experts_active):
        missed *= np.maximum(experts - group - i, 0.0) / np.maximum(experts - i, 1.0)
    return reach * (1 - missed) if sizes.n_experts else np.zeros(np.shape(places))


_RING = ("a_ring", "w_ring", "g_ring")
