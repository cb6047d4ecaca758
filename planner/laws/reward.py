"""Reward over the arithmetic of reinforcement learning: ScaleRL's sigmoid, both ways round.

A reward that is required puts a lower bound on arithmetic, a number; it is no monomial in the
other choices unless the arithmetic is written as tokens times size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.catalogue.scaling_laws import law, law_names
from planner.text.errors import CatalogueError, FieldError

__all__ = ["RewardLaw", "reward_law"]

NAMES = ("R_start", "R_most", "C_mid", "gamma_rl")
MEANING = {
    "R_start": "the reward before reinforcement learning",
    "R_most": "the reward that nothing exceeds",
    "C_mid": "the arithmetic at which half of the gain is reached [FLOP]",
    "gamma_rl": "the exponent of the gain",
}


@dataclass(frozen=True)
class RewardLaw:
    """A sigmoid with its four coefficients, `C_mid` in FLOP."""

    name: str
    source: str
    as_of: str
    values: Mapping[str, float]

    def reward(self, arithmetic: np.ndarray | float) -> np.ndarray:
        """Reward after an arithmetic of reinforcement learning [FLOP]."""
        from formulas.scaling.power_laws import rl_reward

        return np.asarray(rl_reward.numpy("C_rl")(arithmetic, **self.values))

    def arithmetic(self, reward: float) -> float:
        """Arithmetic [FLOP] that a reward needs.

        Raises
        ------
        FieldError
            If the reward is not between the one at the start and the ceiling.
        """
        from formulas.scaling.power_laws import rl_arithmetic_needed

        low, high = self.values["R_start"], self.values["R_most"]
        if not low < reward < high:
            raise FieldError(
                ("rl.reward", f"{self.name} leads from {low:g} towards {high:g}, which it never "
                              f"reaches; {reward:g} is not between them")
            )  # fmt: skip
        return float(rl_arithmetic_needed.numpy("R_pass")(reward, **self.values))


def reward_law(name: str = "scalerl-2025", **given: float) -> RewardLaw:
    """The sigmoid of a catalogue name, with what belongs to the model at hand.

    Parameters
    ----------
    given
        `C_mid` [FLOP] and `R_start`, which no catalogue can know, and any coefficient to replace.

    Raises
    ------
    CatalogueError
        If no law of reward is called so.
    FieldError
        If a coefficient is neither known nor given, or the rewards are in the wrong order.
    """
    if name not in law_names("sigmoid"):
        raise CatalogueError.unknown("law of reward", name, law_names("sigmoid"))
    entry = law(name)
    values = {**entry.values, **given}
    lacking = [x for x in NAMES if x not in values]
    faults = [(f"rl.{x}", f"{name} does not say {MEANING[x]}; give it") for x in lacking]
    faults += [(f"rl.{x}", "no such coefficient of a reward") for x in given if x not in NAMES]
    if not faults and not 0 <= values["R_start"] < values["R_most"]:
        low, high = values["R_start"], values["R_most"]
        faults = [("rl.R_start", f"expected less than the ceiling {high:g}, got {low:g}")]
    if faults:
        raise FieldError(*faults)
    return RewardLaw(name, entry.source, entry.as_of, values)
