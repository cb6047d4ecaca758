"""Which layouts of two pools one engine runs together, as groups within which they are paired."""

from dataclasses import replace

import numpy as np

from planner.problems.serving.search.sizing import PhaseLayouts
from planner.problems.serving.step.runnable import tied_stages


def by_engine(prefill: PhaseLayouts, decode: PhaseLayouts) -> tuple[PhaseLayouts, PhaseLayouts]:
    """Both pools once for each engine, which runs the two of a pair or neither: its groups.

    Of an engine that moves caches into one stage or into as many as they come from, layouts that
    prefill stand beside either: once in the group of one stage, once in that of their own.
    """
    every = [each.engines for each in (prefill, decode)]
    tied = tied_stages() if (decode.stages > 1).any() else 0
    if not all(x.size for x in every) or np.bitwise_and.reduce(np.concatenate(every)) & ~tied:
        return prefill, decode
    either = int(np.bitwise_or.reduce(every[0]) & np.bitwise_or.reduce(every[1]))
    groups = [
        (number, int(stages))
        for number in range(either.bit_length())
        if either >> number & 1
        for stages in (np.unique(decode.stages) if tied >> number & 1 else (0,))
    ]
    runs, stages = np.array(groups, dtype=np.int64).reshape(-1, 2).T

    def split(layouts: PhaseLayouts, least: int) -> PhaseLayouts:
        alike = (stages <= least) | (layouts.stages[:, None] == stages)
        of, place = np.nonzero((layouts.engines[:, None] >> runs & 1).astype(bool) & alike)
        return replace(layouts.take(of), group=layouts.group[of] * runs.size + place)

    return split(prefill, 1), split(decode, 0)
