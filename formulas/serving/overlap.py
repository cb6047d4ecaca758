"""Two half-batches, one at work while the other sends: what a second half hides.

Where attention is copied and experts are spread, a pass may be cut in halves (`n_half` = 2). Each
half reads the weights and pays every latency for itself, and a share `e_ovl` of the shorter of work
and sending disappears behind the longer. Uncut passes (`n_half` = 1) hide nothing.
"""

from formulas.algebra.notation import *

hidden_share = Equation(
    "share of the shorter of work and sending that is hidden",
    x_hid,
    e_ovl * (n_half - 1),
    assumes=("one half works while the other sends",),
    source=deepseek_v3.at("section 3.4.2"),
)


def overlapped(work: Expr, sending: Expr) -> Expr:
    """Time of both [s]: their sum, less the hidden share of the shorter one."""
    return (1 - x_hid) * (work + sending) + x_hid * maximum(work, sending)
