"""Symbols of the lecture: a step, a model, a machine, times, efficiencies, memory and money.

Without suffix a symbol means the whole domain (all chips of one replica), with `_chip` one chip.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)
# name = _symbol(name, unit, meaning, latex where the rule L_ctx -> L with subscript does not serve)

# A step and its work
B          = _symbol("B",          "seq",                "sequences decoded together in one step")
g          = _symbol("g",          "token/seq",          "tokens emitted per sequence and step")
m_pos      = _symbol("m_pos",      "token/seq",          "positions computed per sequence and step", "m")
L_ctx      = _symbol("L_ctx",      "token/seq",          "tokens of context held per sequence")
L_in       = _symbol("L_in",       "token/seq",          "tokens of the prompt of one sequence")
L_out      = _symbol("L_out",      "token/seq",          "tokens generated per sequence")
L_pass     = _symbol("L_pass",     "token/seq",          "tokens of one sequence computed in one pass")

# A model
N_total    = _symbol("N_total",    "param",              "parameters held in memory")
N_active   = _symbol("N_active",   "param",              "parameters one token passes through")
b_w        = _symbol("b_w",        "byte/param",         "bytes per parameter")
b_kv       = _symbol("b_kv",       "byte/token",         "key-value bytes per token of context")
c_fwd      = _symbol("c_fwd",      "flop/(param*token)", "arithmetic per active parameter and token, forward")
a_kv       = _symbol("a_kv",       "flop*seq/token**2",  "attention arithmetic per position and cached token")
n_layers   = _symbol("n_layers",   "1",                  "layers that keep keys and values")
n_kv       = _symbol("n_kv",       "1",                  "key-value heads of a layer")
d_head     = _symbol("d_head",     "1",                  "width of one head")
b_el       = _symbol("b_el",       "byte/token",         "bytes of one cached number, for each token")
r_kv       = _symbol("r_kv",       "1",                  "width of the shared latent that is cached")
r_rope     = _symbol("r_rope",     "1",                  "width of the positional key cached beside the latent")
n_experts  = _symbol("n_experts",  "1",                  "routed experts of a layer")
k_experts  = _symbol("k_experts",  "1",                  "routed experts that one token visits", "k")
coverage   = _symbol("coverage",   "1",                  "share of the routed experts read in a step", r"\kappa")
sigma      = _symbol("sigma",      "1",                  "total over active parameters", r"\sigma")
N_dense    = _symbol("N_dense",    "param",              "parameters every token passes through")
N_routed   = _symbol("N_routed",   "param",              "parameters of all routed experts")
k_least    = _symbol("k_least",    "1",                  "least share of the routed experts that a step can read")
N_touched  = _symbol("N_touched",  "param",              "parameters read from memory in one step")

# A machine
F          = _symbol("F",          "flop/s",             "arithmetic rate of the domain")
W          = _symbol("W",          "byte/s",             "memory bandwidth of the domain")
M          = _symbol("M",          "byte",               "memory of the domain")
M_used     = _symbol("M_used",     "byte",               "memory in use in the domain")
M_chip     = _symbol("M_chip",     "byte/chip",          "memory in use on one chip")
n_chips    = _symbol("n_chips",    "chip",               "chips of the domain")
n_stages   = _symbol("n_stages",   "1",                  "pipeline stages")
B_micro    = _symbol("B_micro",    "seq",                "sequences of one microbatch", r"B_{\mu}")
p_chip     = _symbol("p_chip",     "USD/(chip*s)",       "price of one chip for one second", r"p_{\mathrm{chip}}")

# Times of a step
T_comp     = _symbol("T_comp",     "s",                  "time of the arithmetic of one step")
T_w        = _symbol("T_w",        "s",                  "time to read the weights once")
T_kv       = _symbol("T_kv",       "s",                  "time to read every cache of the batch once")
T_mem      = _symbol("T_mem",      "s",                  "time of the memory traffic of one step")
T_step     = _symbol("T_step",     "s",                  "time of one step")
T_floor    = _symbol("T_floor",    "s",                  "least time of one step, at any batch")
T_drain    = _symbol("T_drain",    "s",                  "time to read the whole memory once")

# Efficiencies: attained over peak
e_w        = _symbol("e_w",        "1",                  "attained share of bandwidth, reading weights")
e_kv       = _symbol("e_kv",       "1",                  "attained share of bandwidth, reading caches")
e_c        = _symbol("e_c",        "1",                  "attained share of the arithmetic peak")
e_net      = _symbol("e_net",      "1",                  "attained share of network bandwidth")

# Critical batches and contexts
B_crit     = _symbol("B_crit",     "seq",                "batch at which arithmetic and memory take equal time")
B_0        = _symbol("B_0",        "token",              "positions per step at which arithmetic equals reading the weights")
L_star     = _symbol("L_star",     "1",                  "cached tokens whose reading takes as long as the arithmetic of one position", r"L_{*}")
L_a        = _symbol("L_a",        "token/seq",          "context at which attention equals the arithmetic of the weights")
L_kink     = _symbol("L_kink",     "token/seq",          "context at which a step turns from arithmetic to memory")
L_never    = _symbol("L_never",    "token/seq",          "context beyond which no batch makes a step arithmetic-bound")
x_batch    = _symbol("x_batch",    "1",                  "cost of a sequence over its arithmetic floor")
T_seq      = _symbol("T_seq",      "s/seq",              "time of a step divided by its sequences")

T_pos      = _symbol("T_pos",      "s/token",            "time of a pass divided by its positions")
L_cross    = _symbol("L_cross",    "token/seq",          "tokens per pass at which a pass turns to arithmetic")

# Fast and slow modes, relative to the normal one
w_fix      = _symbol("w_fix",      "1",                  "share of the normal step that does not depend on the batch", "w")
s_fast     = _symbol("s_fast",     "1",                  "speed over the normal speed", "s")
s_most     = _symbol("s_most",     "1",                  "largest speed over the normal speed")
beta_B     = _symbol("beta_B",     "1",                  "batch over the normal batch", r"\beta_{B}")
x_price    = _symbol("x_price",    "1",                  "price over the normal price")

# Memory
L_max      = _symbol("L_max",      "token/seq",          "longest context that fits every sequence of the batch")
B_max      = _symbol("B_max",      "seq",                "largest batch that fits")
n_domain   = _symbol("n_domain",   "chip",               "chips of one scale-up domain, one pipeline stage")

# Money
C_tok      = _symbol("C_tok",      "USD/token",          "cost of one generated token")
C_in       = _symbol("C_in",       "USD/token",          "cost of one prompt token")
C_out      = _symbol("C_out",      "USD/token",          "cost of one generated token, as sold")
D_step     = _symbol("D_step",     "USD/s",              "price of the domain for one second")
rho_price  = _symbol("rho_price",  "1",                  "price of an output token over that of an input token", r"\rho")
# fmt: on
