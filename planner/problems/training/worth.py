"""Outputs of a training run from its step time: tokens/s, MFU, goodput, days, energy, cost.

All of it is one kernel of the equations of `formulas.training`; arrays may stand in for the time of
a step and for what runs forward again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.store import cached_kernel
from planner.problems.training.question import TrainingQuestion
from planner.problems.training.resolve import ChipDraw, TrainingCase
from planner.scenario.keys.training_fields import DAY
from planner.text.errors import FieldError

if TYPE_CHECKING:
    from formulas.algebra.equation import Equation
    from formulas.numerics.kernel import Kernel

MTOK = 1e6
RUN_OUTPUT_EQUATIONS = (
    "trained_rate", "trained_rate_per_chip", "model_utilisation", "hardware_utilisation",
    "training_power", "training_token_energy", "training_token_cost",
)  # fmt: skip
RUN_SOURCES = (
    Path(__file__),
    *(Path(__file__).parents[3] / "formulas/training" / name
      for name in ("training_run.py", "goodput.py")),
)  # fmt: skip
OF_A_RUN = ("training_run_time", "training_run_energy", "training_run_cost")


def equations(*names: str) -> tuple[Equation, ...]:
    """Equations of `formulas.training.training_run` by name; it loads SymPy."""
    from formulas.training import training_run

    return tuple(getattr(training_run, name) for name in names)


@cache
def run_outputs_kernel() -> Kernel:
    """All of them as one function of arrays."""

    def make() -> Kernel:
        from formulas.numerics.evaluate import kernel

        every = equations(*RUN_OUTPUT_EQUATIONS, *OF_A_RUN)
        return kernel(every, [each.symbol for each in every])

    return cached_kernel("training-worth", make, RUN_SOURCES)


@cache
def goodput_kernel() -> Kernel:
    """Goodput and the best interval between checkpoints, as one function."""

    def make() -> Kernel:
        from formulas.numerics.evaluate import kernel
        from formulas.training import goodput

        interval = goodput.best_checkpoint_interval
        every = [goodput.goodput_share, goodput.time_between_failures]
        return kernel(every, {"x_good": goodput.goodput_share.symbol, "tau_save": interval.rhs})

    return cached_kernel("training-goodput", make, RUN_SOURCES)


@dataclass(frozen=True, eq=False)
class ChipCount:
    """System with its number of chips paid and of chips used by its layouts."""

    question: TrainingQuestion
    case: TrainingCase
    paid: int
    used: int

    @property
    def time_between_failures(self) -> float:
        """Mean time between failures of the chips used [s]; infinite without `reliability`."""
        reliability = self.question.reliability
        return inf if reliability is None else reliability.mtbf / self.used

    @cached_property
    def goodput(self) -> float:
        """Share of the time that trains [1]; one without failures.

        Raises FieldError where chips fail faster than training goes on.
        """
        good = self._reliable("x_good")
        if good is not None and good <= 0:
            words = (
                f"{self.used} chips fail every {self.time_between_failures:.3g} s, before a "
                "checkpoint is saved and training goes on: no work is left"
            )
            raise FieldError(("reliability", words))
        return 1.0 if good is None else good

    @property
    def checkpoint_interval(self) -> float | None:
        """Time between checkpoints that loses least [s]; None without failures."""
        return self._reliable("tau_save")

    def _reliable(self, name: str) -> float | None:
        """Output of the goodput equations, by name; None without `reliability`."""
        reliability = self.question.reliability
        if reliability is None:
            return None
        values = {
            "M_fail": reliability.mtbf,
            "t_save": reliability.save,
            "t_again": reliability.restart,
        }
        return float(goodput_kernel()(**values, n_train=float(self.used))[name])

    def symbols(self) -> dict[str, float]:
        """Values of the symbols of `formulas.training.training_run`, without those of the step."""
        question, case = self.question, self.case
        draw = case.draw or ChipDraw(0.0, 0.0, 0.0)
        work = question.work
        return {
            "D_opt_step": work.batch_tokens, "D_run": work.tokens or work.batch_tokens,
            "C_step": case.task.model_flop, "n_train": float(self.used),
            "n_paid": float(self.paid), "F_train": case.task.machine.peak, "x_good": self.goodput,
            "P_idle": draw.idle, "P_peak": draw.peak, "P_most": draw.rated,
            "x_site": question.pue or 1.0, "one_chip": 1.0, "p_chip": case.price.value,
            "p_joule": question.power_price or 0.0,
        }  # fmt: skip

    def worth(
        self, step: float | np.ndarray, again: float | np.ndarray
    ) -> Mapping[str, float | np.ndarray]:
        """Every output by the name of its symbol, at times of a step [s] and FLOP run again."""
        values = self.symbols()
        return run_outputs_kernel()(**values, T_opt=step, C_again=again)

    def score(self, step: np.ndarray, again: np.ndarray) -> np.ndarray:
        """Objective per useful token: [s/token], [USD/token] or [J/token]."""
        objective = self.question.objective
        if objective == "time" or (objective == "cost" and not self.question.power_price):
            scale = 1.0 if objective == "time" else self.paid * self.case.price.value
            return step * (scale / (self.goodput * self.question.work.batch_tokens))
        symbol = "w_train" if objective == "cost" else "e_train"
        return np.asarray(self.worth(step, again)[symbol])

    def within(self, step: np.ndarray, again: np.ndarray) -> np.ndarray | bool:
        """True for each run within the limits of days and USD."""
        limits = self.question.limits
        if limits.days is None and limits.usd is None:
            return True
        worth = self.worth(step, again)
        days, usd = np.asarray(worth["T_run"]) / DAY, np.asarray(worth["K_run"])
        return (days <= (limits.days or inf)) & (usd <= (limits.usd or inf))
