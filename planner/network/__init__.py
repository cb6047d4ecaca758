"""Times of collectives on a machine: rates of its network, a profile, and the equations.

`collective_time` answers with a band and the reason for it, `coefficients` with the three numbers
per group that a geometric program needs, `hop_time` for one message from stage to stage.
"""

from planner.network.collective_times import coefficients, collective_time, hop_time
from planner.network.group import algorithms, place_group

__all__ = ["algorithms", "coefficients", "collective_time", "hop_time", "place_group"]
