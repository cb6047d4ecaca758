"""The nomenclature, continued: what an expert group gains and loses when it leaves its rack.

Same registry and same rules as `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import SYMBOLS, symbol

_BEFORE = set(SYMBOLS)

# fmt: off
# ruff: noqa: E501  (a table reads better whole)
n_inner  = symbol("n_inner",  "1",       "chips of an expert group within one rack")
n_outer  = symbol("n_outer",  "1",       "chips of an expert group over several racks")
n_spare  = symbol("n_spare",  "1",       "routed experts of a layer that a chip of the larger group need not hold")
s_expert = symbol("s_expert", "byte",    "weights of one routed expert")
s_even   = symbol("s_even",   "byte",    "weights of one routed expert at which both groups take equal time")
n_own    = symbol("n_own",    "token",   "positions of one chip in a step")
n_tie    = symbol("n_tie",    "token",   "positions of one chip at which both groups take equal time")
t_more   = symbol("t_more",   "s",       "what the floor of the larger group's exchange is above that of the smaller one")
x_more   = symbol("x_more",   "s/token", "what one more position of a chip costs the larger group above the smaller one")
T_saved  = symbol("T_saved",  "s",       "time that a chip of the larger group reads less")
T_lost   = symbol("T_lost",   "s",       "time that the larger group's exchange takes longer")
# fmt: on

__all__ = [name for name in SYMBOLS if name not in _BEFORE]
