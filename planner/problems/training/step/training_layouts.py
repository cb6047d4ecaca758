"""Layouts of a training step as arrays: what divides the work, and choices that are made or not.

Every field is an array; all broadcast against each other, so that counts may be rows and choices
columns. Choices are integers, which `words` gives in those of a scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from planner.text.errors import InputError, did_you_mean

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero-bubble")
RECOMPUTE = ("none", "selective", "full", "reversible")
OFFLOAD = ("none", "optimizer", "activations")
WORDS: Mapping[str, tuple[str, ...]] = {
    "schedule": SCHEDULES,
    "recompute": RECOMPUTE,
    "offload": OFFLOAD,
}
SWITCHES = ("sequence_parallel", "overlap")


@dataclass(frozen=True)
class TrainingLayouts:
    """Layouts as arrays of integers that broadcast against each other.

    Counts of parallel parts, sequences of a micro-batch and virtual stages; `schedule`, `recompute`
    and `offload` index SCHEDULES, RECOMPUTE and OFFLOAD; `zero` is 0 to 3, `sequence_parallel`
    and `overlap` are 0 or 1.
    """

    tp: np.ndarray
    pp: np.ndarray
    dp: np.ndarray
    cp: np.ndarray
    ep: np.ndarray
    tp_expert: np.ndarray
    micro_batch: np.ndarray
    virtual_stages: np.ndarray
    schedule: np.ndarray
    recompute: np.ndarray
    zero: np.ndarray
    offload: np.ndarray
    sequence_parallel: np.ndarray
    overlap: np.ndarray

    @classmethod
    def of(cls, **choices: object) -> TrainingLayouts:
        """Layouts from words, switches or numbers; what is left out is 1, `1f1b`, none or hidden.

        Raises InputError for a field or a word that there is not.
        """
        names = [each.name for each in fields(cls)]
        for name in choices:
            if name not in names:
                raise InputError(f"a layout has no {name!r}{did_you_mean(name, names)}")
        values: dict[str, object] = {
            **dict.fromkeys(names, 1),
            **dict.fromkeys(("recompute", "zero", "offload"), 0),
        }
        values |= {"sequence_parallel": 0, "overlap": 1, "schedule": 1}
        for name, value in choices.items():
            values[name] = _code(name, value)
        return cls(**{name: np.asarray(value) for name, value in values.items()})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that all fields have together."""
        return np.broadcast_shapes(*(np.shape(value) for value in self.columns().values()))

    def columns(self) -> dict[str, np.ndarray]:
        """Every field by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def at(self, index: int | tuple[int, ...]) -> TrainingLayouts:
        """One layout, its fields without axes, at a place of the common shape."""
        shape = self.shape
        where = np.unravel_index(index, shape) if isinstance(index, int) else index
        columns = self.columns().items()
        return TrainingLayouts(
            **{name: np.asarray(np.broadcast_to(value, shape)[where]) for name, value in columns}
        )

    def words(self) -> dict[str, int | str | bool]:
        """One layout in the words of a scenario."""
        words: dict[str, int | str | bool] = {}
        for name, value in self.columns().items():
            number = int(value)
            if name in SWITCHES:
                words[name] = bool(number)
            else:
                words[name] = WORDS[name][number] if name in WORDS else number
        return words


def _code(name: str, value: object) -> object:
    """A word as its number; numbers and arrays as they are."""
    if not isinstance(value, str):
        return value
    words = WORDS.get(name, ())
    if value not in words:
        raise InputError(f"{name}: {value!r} is none of {', '.join(words) or 'its numbers'}")
    return words.index(value)
