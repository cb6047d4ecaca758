"""The nomenclature, continued: chips that share one context, and what they send each other.

Same registry and same rules as `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import SYMBOLS, symbol

_BEFORE = set(SYMBOLS)

# fmt: off

# --- layout and batch -----------------------------------------------------------------------
cp        = symbol("cp",        "1",              "parts over which a context is spread")
b_own     = symbol("b_own",     "seq",            "sequences whose tokens one part carries")
b_slice   = symbol("b_slice",   "seq",            "sequences that one copy of the experts sees")
b_state   = symbol("b_state",   "seq",            "sequences whose state one part holds")

# --- decode ---------------------------------------------------------------------------------
n_cp      = symbol("n_cp",      "1",              "layers whose caches are spread over parts")
n_ctx     = symbol("n_ctx",     "1",              "layers with a cache")
h_part    = symbol("h_part",    "1/token",        "elements of queries and results, a layer")
A_state   = symbol("A_state",   "flop/token",     "arithmetic on the recurrent state per position")
V_part    = symbol("V_part",    "byte",           "bytes of queries and results, a layer")
T_cp      = symbol("T_cp",      "s",              "parts of a context answering each other")
a_cp      = symbol("a_cp",      "s",              "floor of one round between parts, decode")
w_cp      = symbol("w_cp",      "byte/s",         "bytes of a round between parts per second")
g_cp      = symbol("g_cp",      "s/byte**(1/2)",  "square-root term of a round between parts")

# --- prefill --------------------------------------------------------------------------------
T_pf_attn = symbol("T_pf_attn", "s",              "arithmetic of attention of one prompt")
V_ring    = symbol("V_ring",    "byte",           "cache bytes that pass a chip in one layer")
T_ring    = symbol("T_ring",    "s",              "passing keys and values of one prompt round")
a_ring    = symbol("a_ring",    "s",              "floor of one round of keys and values")
w_ring    = symbol("w_ring",    "byte/s",         "bytes of keys and values passed per second")
g_ring    = symbol("g_ring",    "s/byte**(1/2)",  "square-root term of passing keys and values")
# fmt: on

__all__ = [name for name in SYMBOLS if name not in _BEFORE]
