"""What an answer hangs on: elasticities, the next switch, break-even points, uncertain givens.

givens.py        what a scenario gives, each a number that may be varied
outputs.py       what an answer says, by the names that are asked for
tangent.py       the slopes of one layout's equations in the direction of every given
pool.py          one pool with its layout held and its batch as large as its limits allow
held.py          a serving plan with its layouts held: every output's elasticity to every given
waiting.py       what a given does to the queue before a prompt is read
serving.py       the rows of a serving scenario
life_givens.py   what a budget or a lifecycle gives
apart.py         the rows of a budget: multipliers, or solving again on either side
lives.py         the rows of a lifecycle, its serving layout held
paths.py         a given as a path of the scenario
local.py         the table of any scenario
exact.py         a scenario solved, and nothing else
switches.py      the nearest change of a given at which another choice is the best
swing.py         the answer with each given a little less and more: a tornado's bars
even.py          the value of a given at which one choice is as good as another
listed.py        ranges that the catalogues know
profiled.py      coefficients of a profile in place of others
drawing.py       uncertain givens: from the unit interval to values
answering.py     many draws answered
indices.py       Sobol and Morris indices
knowing.py       what knowing a given before choosing is worth
exploring.py     a global study from start to end
elasticities.py  the table, and the function that makes it
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from planner.sensitivity.elasticities import Elasticities, sensitivity

if TYPE_CHECKING:
    from planner.sensitivity.switch_point import break_even
    from planner.uncertainty.global_study import Study, explore

__all__ = ["Elasticities", "Study", "break_even", "explore", "sensitivity"]

# Loaded when they are first used: they need the solvers.
_HOMES = {
    "Study": "planner.uncertainty.global_study",
    "break_even": "planner.sensitivity.switch_point",
    "explore": "planner.uncertainty.global_study",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
