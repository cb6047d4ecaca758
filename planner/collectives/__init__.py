"""How long a collective takes on a machine: rates of its network, a profile, and the equations.

`collective_time` answers with a band and the reason for it, `coefficients` with the three numbers
per group that a geometric program needs, `hop_time` for one message from stage to stage.
"""

from planner.collectives.coefficients import Coefficients, coefficients
from planner.collectives.group import Group, algorithms, group_of
from planner.collectives.times import CollectiveTime, collective_time, hop_time

__all__ = [
    "Coefficients",
    "CollectiveTime",
    "Group",
    "algorithms",
    "coefficients",
    "collective_time",
    "group_of",
    "hop_time",
]
