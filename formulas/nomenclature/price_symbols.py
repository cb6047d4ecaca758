"""Symbols of a price sheet: what is listed, what a margin adds, what a step or a tier implies.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

p_in     = _symbol("p_in",     "USD/token",     "listed price of an input token", r"p_{\mathrm{in}}")
p_out    = _symbol("p_out",    "USD/token",     "listed price of an output token", r"p_{\mathrm{out}}")
p_cached = _symbol("p_cached", "USD/token",     "listed price of a cached input token")
p_ref    = _symbol("p_ref",    "USD/token",     "price at which a fitted size is the one at hand", r"p_{\mathrm{ref}}")
mu_mark  = _symbol("mu_mark",  "1",             "price over cost", r"\mu")
mu_hold  = _symbol("mu_hold",  "1",             "price of holding a cache over the cost of its memory", r"\mu_{\mathrm{hold}}")
C_mark   = _symbol("C_mark",   "USD/token",     "cost of a token by a plan at hand", r"C_{\mathrm{plan}}")
p_mix    = _symbol("p_mix",    "USD/token",     "listed price of a mix of tokens", r"p_{\mathrm{mix}}")
e_dec    = _symbol("e_dec",    "1",             "attained share of bandwidth, decode", r"e_{\mathrm{dec}}")
q_mem    = _symbol("q_mem",    "token/seq",     "time of memory over that of the arithmetic of one position")

# Steps of price at a length of prompt
x_step   = _symbol("x_step",   "1",             "price above a step over that below it")
L_below  = _symbol("L_below",  "token/seq",     "mean context of the requests below a step", "L_1")
L_above  = _symbol("L_above",  "token/seq",     "mean context of the requests above a step", "L_2")

# Tiers
x_slow_m = _symbol("x_slow_m", "1",             "price of a slow mode over the normal price", r"x_{\mathrm{slow},m}")
u_idle   = _symbol("u_idle",   "1",             "share of the hours that a slow tier finds idle", r"u_{\mathrm{idle}}")

# Caches held
p_w1     = _symbol("p_w1",     "USD/token",     "price of writing a cache held for the shorter time", "p_{w1}")
p_w2     = _symbol("p_w2",     "USD/token",     "price of writing a cache held for the longer time", "p_{w2}")
t_w1     = _symbol("t_w1",     "s",             "shorter time that a cache is held", "t_{w1}")
t_w2     = _symbol("t_w2",     "s",             "longer time that a cache is held", "t_{w2}")
q_hold   = _symbol("q_hold",   "USD/(token*s)", "price of holding the cache of one token", r"q_{\mathrm{hold}}")
x_hold_h = _symbol("x_hold_h", "1/s",           "price of holding a token's cache over the price of an input token")
x_write0 = _symbol("x_write0", "1",             "surcharge for a write held for no time, over the price of an input token")
f_reads  = _symbol("f_reads",  "1/s",           "reads of a held cache at which holding it costs as much as it saves")

# Sizes fitted on the prices of models whose weights are public
N_ref    = _symbol("N_ref",    "param",         "size at the reference prices", r"N_{\mathrm{ref}}")
k_in     = _symbol("k_in",     "1",             "power of the input price in a fitted size", r"k_{\mathrm{in}}")
k_out    = _symbol("k_out",    "1",             "power of the output price in a fitted size", r"k_{\mathrm{out}}")
k_active    = _symbol("k_active",    "1",             "power of the active parameters in a fitted price", r"k_{\mathrm{active}}")
k_tot    = _symbol("k_tot",    "1",             "power of all parameters in a fitted price", r"k_{\mathrm{tot}}")
# fmt: on
