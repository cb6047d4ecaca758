"""The nomenclature, continued: where a cache is kept, what keeping costs, and sparse attention.

Same registry and same rules as `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import SYMBOLS, symbol

_BEFORE = set(SYMBOLS)

# fmt: off
# ruff: noqa: E501  (a table reads better whole)
# --- tiers of memory ------------------------------------------------------------------------
M_tier    = symbol("M_tier",    "byte",         "bytes a tier of memory holds")
W_tier    = symbol("W_tier",    "byte/s",       "rate at which a tier of memory is read")
p_tier    = symbol("p_tier",    "USD/s",        "price of a tier for one second")
p_read    = symbol("p_read",    "USD/s",        "price of what a read keeps busy, for one second")
tau_tier  = symbol("tau_tier",  "s",            "time to read a whole tier once", r"\tau")
t_hold    = symbol("t_hold",    "s",            "time from writing a cache to reading it again")
C_store   = symbol("C_store",   "USD/token",    "cost of holding the cache of one token")
C_fetch   = symbol("C_fetch",   "USD/token",    "cost of reading the cache of one token back")
C_remake  = symbol("C_remake",  "USD/token",    "cost of computing the cache of one token again")
x_hold    = symbol("x_hold",    "1",            "cost of holding and reading over that of computing again")
p_hit     = symbol("p_hit",     "1",            "chance that a held cache is read again")
q_byte    = symbol("q_byte",    "USD/(byte*s)", "price of one byte for one second")
q_1       = symbol("q_1",       "USD/(byte*s)", "price of one byte for one second in the faster tier")
q_2       = symbol("q_2",       "USD/(byte*s)", "price of one byte for one second in the slower tier")
tau_1     = symbol("tau_1",     "s",            "time to read the whole faster tier once", r"\tau_{1}")
tau_2     = symbol("tau_2",     "s",            "time to read the whole slower tier once", r"\tau_{2}")
c_hold    = symbol("c_hold",    "USD/byte",     "cost of holding one byte and reading it back")
n_fall    = symbol("n_fall",    "1",            "percent the price of a byte falls per percent of drain time", "n")
one_price = symbol("one_price", "USD/(byte*s)", "price of a byte for one second in a tier that drains in one second", "q_{0}")
one_second = symbol("one_second", "s",          "one second", r"1\,\mathrm{s}")

# --- contexts and prices --------------------------------------------------------------------
x_cliff   = symbol("x_cliff",   "1",            "time of a step over its time before the kink")
L_cliff   = symbol("L_cliff",   "token/seq",    "context up to which a surcharge covers the step")
T_kv_max  = symbol("T_kv_max",  "s",            "longest time a step may read caches")
L_read    = symbol("L_read",    "token/seq",    "longest context whose caches can be read in time")
x_walls   = symbol("x_walls",   "1",            "longest context by bandwidth over longest context by capacity")
L_share   = symbol("L_share",   "token/seq",    "tokens of context that sequences have in common")
n_share   = symbol("n_share",   "1",            "sequences that have a beginning in common")

# --- sparse attention -----------------------------------------------------------------------
c_block   = symbol("c_block",   "1",            "tokens of one block of the context", "c")
k_block   = symbol("k_block",   "token/seq",    "blocks a position reads in full", "k")
R_sel     = symbol("R_sel",     "token/seq",    "cache entries a position reads")
L_wide    = symbol("L_wide",    "token/seq",    "balance context under two-level selection")
b_index   = symbol("b_index",   "byte/token",   "bytes per token that choose which tokens are read")
k_top     = symbol("k_top",     "token/seq",    "tokens a position reads in full")
V_sel     = symbol("V_sel",     "byte/seq",     "cache bytes one position reads")
x_sel     = symbol("x_sel",     "1",            "cache bytes read over those of full attention")
c_pack    = symbol("c_pack",    "1",            "tokens packed into one cache entry")
L_window  = symbol("L_window",  "token/seq",    "recent tokens read one by one")
# fmt: on

__all__ = [name for name in SYMBOLS if name not in _BEFORE]
