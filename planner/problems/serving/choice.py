"""The discrete choices of a serving plan, before any of its numbers is computed.

What changes when another plan becomes the best; a search that only asks for that evaluates nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.problems.serving.step.layouts import AXES
from planner.scenario.keys.speculation_keys import AUTO
from planner.text.wording import pools_text

if TYPE_CHECKING:
    from planner.problems.serving.point import PoolLayout
    from planner.problems.serving.question import Scenario
    from planner.protocol.problem import Counts


@dataclass(frozen=True)
class ChosenPool:
    """Layout, chips, formats and batch [seq] of a replica of one pool."""

    layout: PoolLayout
    chip: str
    chips: int
    batch_per_replica: int
    weights: str
    kv: str
    redundant_experts: int | None
    drafts: int | None

    @property
    def words(self) -> str:
        """The layout in short words."""
        return pools_text({**vars(self), "layout": vars(self.layout)})

    def balanced(self) -> ChosenPool:
        """Copy with a single replica: replicas may only balance two pools."""
        return replace(self, layout=replace(self.layout, replicas=1))


@dataclass(frozen=True)
class Choice:
    """Pools of a plan, the decode pool last; `loaded` is true if they carry a given load."""

    mode: str
    pools: tuple[ChosenPool, ...]
    loaded: bool

    @property
    def chips(self) -> int:
        """Chips of all pools."""
        return sum(pool.chips for pool in self.pools)

    @property
    def words(self) -> str:
        """The choices in short words."""
        last, pools = self.pools[-1], self.pools
        if len(pools) > 1 and not self.loaded:
            pools = tuple(pool.balanced() for pool in pools)
        words = [pool.words for pool in pools]
        layout = words[0] if len(words) == 1 else f"prefill {words[0]}, decode {words[1]}"
        mode = "" if self.mode in ("aggregated", "disaggregated") else f"{self.mode} "
        chip = " and ".join(dict.fromkeys(pool.chip for pool in pools))
        return f"{mode}{layout} on {self.chips} {chip}, weights {last.weights}, KV {last.kv}"

    @property
    def counts(self) -> Counts:
        """Integers that `words` omits, each as text with its smallest value.

        The batch of a load, which only follows it, is none.
        """
        if self.loaded:
            return ()
        counts = []
        if len(self.pools) > 1:
            replicas = [pool.layout.replicas for pool in self.pools]
            counts.append((f"{replicas[0]} and {replicas[1]} replicas", min(replicas)))
        batch = self.pools[-1].batch_per_replica
        if self.mode != "prefill":
            counts.append((f"batch {batch} a replica", batch))
        return tuple(counts)

    def holds(self, question: Scenario) -> tuple[str, ...]:
        """The changes of a scenario that leave it no choice but these layouts.

        Formats are put in only where the scenario lets choose between some: a checkpoint may store
        its matrices in several.
        """
        axes = [
            {axis: getattr(pool.layout, axis) for axis in (*AXES, "overlap")} for pool in self.pools
        ]
        if len(axes) > 1:
            texts = [", ".join(f"{axis}: {size}" for axis, size in sizes.items()) for sizes in axes]
            layouts = [f"choose.prefill={{{texts[0]}}}", f"choose.decode={{{texts[1]}}}"]
        else:
            layouts = [f"choose.{axis}={size}" for axis, size in axes[0].items()]
        formats = [f"choose.{name}={getattr(self.pools[-1], name)}" for name in ("weights", "kv")
                   if getattr(question.choose, name) is not None]  # fmt: skip
        speculation = question.speculation
        free = speculation is not None and speculation.drafts == AUTO
        drafts = _drafts(self.pools[-1].drafts) if free else ()
        return (f"choose.mode={self.mode}", f"chips={self.chips}", *formats, *layouts, *drafts)


def _drafts(drafts: int | None) -> tuple[str, ...]:
    return (f"speculation.drafts={drafts}",) if drafts else ("speculation=null",)
