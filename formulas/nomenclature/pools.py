"""Symbols of open arrivals and of pools: load, waiting, spare room, transfer of caches.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

x_own       = _symbol("x_own",       "1",            "1 in a closed loop, where a request is one of the batch it meets; 0 with open arrivals")
x_load      = _symbol("x_load",      "seq/s",        "requests that arrive per second at one replica")
rho_pf      = _symbol("rho_pf",      "1",            "share of time a rank has a prompt to read", r"\rho_{\mathrm{pf}}")
S_occ       = _symbol("S_occ",       "s",            "time a prompt occupies the rank that reads it")
v_occ       = _symbol("v_occ",       "1",            "coefficient of variation of that time")
T_wait      = _symbol("T_wait",      "s",            "mean time a request waits before its prompt is read")
T_line      = _symbol("T_line",      "s",            "part of it behind the prompts of others")
T_join      = _symbol("T_join",      "s",            "part of it in steps that begin late or carry the prompts of others")
r_pf        = _symbol("r_pf",        "1",            "share of time a replica reads prompts", r"r_{\mathrm{pf}}")
w_join      = _symbol("w_join",      "1",            "share of a chunk that one prompt leaves to others")
T_tail      = _symbol("T_tail",      "s",            "delay of a first token, beyond reading a mean prompt, that a given share exceed")
x_tail      = _symbol("x_tail",      "1",            "share of the requests that wait longer")
n_wait      = _symbol("n_wait",      "seq",          "requests that wait, on average")
n_inside    = _symbol("n_inside",    "seq",          "requests in flight, on average")
x_var       = _symbol("x_var",       "1",            "variance over time of the requests in flight, over their mean")
T_move      = _symbol("T_move",      "s",            "moving a prompt's cache from the pool that read it to the one that decodes")
V_prompt    = _symbol("V_prompt",    "byte",         "cache bytes of one prompt")
n_send      = _symbol("n_send",      "1",            "chips that send a prompt's cache, or receive it, if those are fewer")
r_send      = _symbol("r_send",      "byte/s",       "rate of one of them into the network between the pools")
t_send      = _symbol("t_send",      "s",            "latency of that network, and its software")
X_pools     = _symbol("X_pools",     "seq/s",        "requests that two pools serve per second")
X_pf        = _symbol("X_pf",        "seq/s",        "prompts that one replica of the first pool reads per second")
X_dec       = _symbol("X_dec",       "seq/s",        "requests that one replica of the second pool decodes per second")
n_pf        = _symbol("n_pf",        "1",            "replicas that prefill")
n_dec       = _symbol("n_dec",       "1",            "replicas that decode")
C_pools     = _symbol("C_pools",     "USD/token",    "price of a token at the scenario's mix, two pools")
n_chips_pf  = _symbol("n_chips_pf",  "chip",         "chips of the pool that prefills")
n_chips_dec = _symbol("n_chips_dec", "chip",         "chips of the pool that decodes")
p_chip_pf   = _symbol("p_chip_pf",   "USD/(chip*s)", "price of one of the first")
p_chip_dec  = _symbol("p_chip_dec",  "USD/(chip*s)", "price of one of the second")
# fmt: on
