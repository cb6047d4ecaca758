"""Symbols of schedules, racks, expert traffic, sparsity, speed modes, memory tiers, sparse attention.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

# The ratio of a chip, and batches beside the critical one
R_hw        = _symbol("R_hw",        "token",         "positions per step at which arithmetic equals reading the weights, were all weights active")
x_act       = _symbol("x_act",       "1",             "active over total parameters")
x_crit      = _symbol("x_crit",      "1",             "batch over the critical batch")
B_flight    = _symbol("B_flight",    "seq",           "sequences in flight on all nodes of a unit")
n_nodes     = _symbol("n_nodes",     "1",             "nodes of one unit of deployment")
X_node      = _symbol("X_node",      "token/s",       "tokens emitted per second and node")
v_user      = _symbol("v_user",      "token/(s*seq)", "tokens per second that one user sees")

# The train schedule and the racks of a fleet
f_train     = _symbol("f_train",     "1/s",           "steps that depart per second")
u_arr       = _symbol("u_arr",       "1",             "moment of arrival, as a share of the interval between departures", "u")
T_arr       = _symbol("T_arr",       "s",             "time from arrival to the end of the step that is boarded")
T_worst     = _symbol("T_worst",     "s",             "longest time from arrival to the end of the first step")
T_avg       = _symbol("T_avg",       "s",             "mean time from arrival to the end of the first step")
j_full      = _symbol("j_full",      "1",             "full departures that a request lets pass")
x_floor     = _symbol("x_floor",     "1",             "least time of a step over the drain time")
X_rack      = _symbol("X_rack",      "token/s",       "tokens emitted per second and rack")
X_world     = _symbol("X_world",     "token/s",       "tokens per second that a service emits")
n_racks     = _symbol("n_racks",     "1",             "racks of a service")
M_each      = _symbol("M_each",      "byte/chip",     "memory of each chip")
W_each      = _symbol("W_each",      "byte/(s*chip)", "memory bandwidth of each chip")
M_rack      = _symbol("M_rack",      "byte",          "memory of one rack")

# What sparsity buys (Clark et al., equations 1 and 7; all coefficients positive, signs written)
a_route     = _symbol("a_route",     "1",             "fall of the logarithm of the loss per decade of parameters")
b_route     = _symbol("b_route",     "1",             "fall of the logarithm of the loss per decade of experts")
c_route     = _symbol("c_route",     "1",             "what a decade of parameters takes from the gain by experts")
E_hat       = _symbol("E_hat",       "1",             "experts, saturated at both ends", r"\hat{E}")
E_first     = _symbol("E_first",     "1",             "experts to which a dense model is equal", r"E_{\mathrm{start}}")
E_limit     = _symbol("E_limit",     "1",             "experts beyond which more bring nothing", r"E_{\mathrm{max}}")
N_eff       = _symbol("N_eff",       "param",         "parameters of the dense model of equal loss")
l_N         = _symbol("l_N",         "1",             "decimal logarithm of active parameters", r"\ell_{N}")
l_eff       = _symbol("l_eff",       "1",             "decimal logarithm of effective parameters", r"\ell_{\mathrm{eff}}")
l_E         = _symbol("l_E",         "1",             "decimal logarithm of saturated experts", r"\ell_{E}")
l_first     = _symbol("l_first",     "1",             "decimal logarithm of the experts a dense model is equal to", r"\ell_{\mathrm{start}}")
x_gain      = _symbol("x_gain",      "1",             "effective over active parameters")
r_gain      = _symbol("r_gain",      "1",             "growth of effective parameters per growth of total parameters, as an exponent")

# Which experts a step visits
q_pick      = _symbol("q_pick",      "1",             "probability that one position picks a given expert", "q")
n_pos       = _symbol("n_pos",       "1",             "positions of one step", "n")
k_bend      = _symbol("k_bend",      "1",             "how fast the slope of coverage falls with the probability of a pick")
one_position = _symbol("one_position", "token",         "one position")
k_most      = _symbol("k_most",      "1",             "largest share of the routed experts that a step can read")

# Expert traffic
V_layer     = _symbol("V_layer",     "byte/token",    "bytes one position sends to experts of a layer and gets back")
V_pos       = _symbol("V_pos",       "byte/token",    "bytes one position exchanges with experts in all layers")
T_moe       = _symbol("T_moe",       "s",             "time of all exchanges with experts in one step")
n_held      = _symbol("n_held",      "1",             "routed experts of a layer on each chip")
f_cross     = _symbol("f_cross",     "1",             "share of expert traffic that leaves the rack")
n_span      = _symbol("n_span",      "1",             "racks over which a layer of experts is spread")
r_up        = _symbol("r_up",        "byte/s",        "rate of one chip into its rack")
r_out       = _symbol("r_out",       "byte/s",        "rate of one chip out of its rack")
x_slow      = _symbol("x_slow",      "1",             "rate inside the rack over rate out of it")
x_pen       = _symbol("x_pen",       "1",             "time of an exchange over racks, over that within one rack")
x_even      = _symbol("x_even",      "1",             "slowdown at which leaving the rack costs nothing")
n_even      = _symbol("n_even",      "1",             "racks at which a larger layer is as fast as one rack")

# Pipelines
n_flight    = _symbol("n_flight",    "1",             "microbatches in flight")
u_stage     = _symbol("u_stage",     "1",             "share of the stages that are busy")
n_before    = _symbol("n_before",    "chip",          "chips of a smaller scale-up domain")
x_up        = _symbol("x_up",        "1",             "time to read the weights in a smaller domain, over that in a larger one")
W_before    = _symbol("W_before",    "byte/(s*chip)", "memory bandwidth of a chip one generation earlier")
x_gen       = _symbol("x_gen",       "1",             "memory bandwidth of a chip over that of the generation before")
x_racks     = _symbol("x_racks",     "1",             "bytes that experts send between racks, over those that a pipeline sends")
T_hops      = _symbol("T_hops",      "s",             "time a step spends between stages")
x_hop       = _symbol("x_hop",       "1",             "time between stages over the time of a step")
n_nic       = _symbol("n_nic",       "1",             "network ports that share a transfer")
T_ship      = _symbol("T_ship",      "s",             "time to move one microbatch's activations to the next stage")
n_copies    = _symbol("n_copies",    "1",             "copies of the weights outside the routed experts")
r_copies    = _symbol("r_copies",    "1",             "routed experts held over distinct ones")

# Fast and slow modes when coverage grows with the batch
w_cov       = _symbol("w_cov",       "1",             "share of the normal step spent reading routed experts")
r_cov       = _symbol("r_cov",       "1",             "coverage over that of the normal step")
x_save      = _symbol("x_save",      "1",             "cost of a sequence over its cost at unbounded batch")

# Price ratios
B_rho       = _symbol("B_rho",       "seq",           "batch that a price ratio implies")
L_rho       = _symbol("L_rho",       "token/seq",     "context that a price ratio implies")

# How times grow with the batch
lam         = _symbol("lam",         "1",             "growth of the batch, at least one", r"\lambda")
T_one       = _symbol("T_one",       "s",             "a time that grows at most as the batch does")
T_two       = _symbol("T_two",       "s",             "another such time")
T_one_up    = _symbol("T_one_up",    "s",             "the first of them at lam times the batch")
T_two_up    = _symbol("T_two_up",    "s",             "the second of them at lam times the batch")
T_grown     = _symbol("T_grown",     "s",             "most that a combination of such times can be at a larger batch")
k_scale     = _symbol("k_scale",     "1",             "a factor that does not depend on the batch")
e_T         = _symbol("e_T",         "1",             "elasticity of a time by the batch", r"\varepsilon_{T}")
e_one       = _symbol("e_one",       "1",             "elasticity of the first time", r"\varepsilon_{1}")
e_two       = _symbol("e_two",       "1",             "elasticity of the second time", r"\varepsilon_{2}")
t_const     = _symbol("t_const",     "s",             "part of a time that does not depend on the batch")
t_each      = _symbol("t_each",      "s/seq",         "part of a time proportional to the batch")
t_root      = _symbol("t_root",      "s/seq**(1/2)",  "part of a time proportional to the root of the batch")
t_cover     = _symbol("t_cover",     "s",             "time to read every routed expert")
q_miss      = _symbol("q_miss",      "1",             "share of the experts that one sequence does not pick")
eta_B       = _symbol("eta_B",       "1",             "elasticity of an efficiency by the batch")
T_tiles     = _symbol("T_tiles",     "s",             "time of a step computed in whole tiles")
B_tile      = _symbol("B_tile",      "seq",           "sequences of one tile, graph or group")
t_tile      = _symbol("t_tile",      "s",             "time of one tile")
x_round     = _symbol("x_round",     "1",             "cost at a whole batch over the cost at the batch before rounding")
B_whole     = _symbol("B_whole",     "seq",           "batch before it is rounded down")

# tiers of memory
M_tier      = _symbol("M_tier",      "byte",          "bytes a tier of memory holds")
W_tier      = _symbol("W_tier",      "byte/s",        "rate at which a tier of memory is read")
p_tier      = _symbol("p_tier",      "USD/s",         "price of a tier for one second")
p_read      = _symbol("p_read",      "USD/s",         "price of what a read keeps busy, for one second")
tau_tier    = _symbol("tau_tier",    "s",             "time to read a whole tier once", r"\tau")
t_hold      = _symbol("t_hold",      "s",             "time from writing a cache to reading it again")
C_store     = _symbol("C_store",     "USD/token",     "cost of holding the cache of one token")
C_fetch     = _symbol("C_fetch",     "USD/token",     "cost of reading the cache of one token back")
C_remake    = _symbol("C_remake",    "USD/token",     "cost of computing the cache of one token again")
x_hold      = _symbol("x_hold",      "1",             "cost of holding and reading over that of computing again")
p_hit       = _symbol("p_hit",       "1",             "chance that a held cache is read again")
q_byte      = _symbol("q_byte",      "USD/(byte*s)",  "price of one byte for one second")
q_1         = _symbol("q_1",         "USD/(byte*s)",  "price of one byte for one second in the faster tier")
q_2         = _symbol("q_2",         "USD/(byte*s)",  "price of one byte for one second in the slower tier")
tau_1       = _symbol("tau_1",       "s",             "time to read the whole faster tier once", r"\tau_{1}")
tau_2       = _symbol("tau_2",       "s",             "time to read the whole slower tier once", r"\tau_{2}")
c_hold      = _symbol("c_hold",      "USD/byte",      "cost of holding one byte and reading it back")
n_fall      = _symbol("n_fall",      "1",             "percent the price of a byte falls per percent of drain time")
one_price   = _symbol("one_price",   "USD/(byte*s)",  "price of a byte for one second in a tier that drains in one second", "q_{0}")
one_second  = _symbol("one_second",  "s",             "one second", r"1\,\mathrm{s}")

# contexts and prices
x_cliff     = _symbol("x_cliff",     "1",             "time of a step over its time before the kink")
L_cliff     = _symbol("L_cliff",     "token/seq",     "context up to which a surcharge covers the step")
T_kv_max    = _symbol("T_kv_max",    "s",             "longest time a step may read caches")
L_read      = _symbol("L_read",      "token/seq",     "longest context whose caches can be read in time")
x_walls     = _symbol("x_walls",     "1",             "longest context by bandwidth over longest context by capacity")
L_share     = _symbol("L_share",     "token/seq",     "tokens of context that sequences have in common")
n_share     = _symbol("n_share",     "1",             "sequences that have a beginning in common")

# sparse attention
c_block     = _symbol("c_block",     "1",             "tokens of one block of the context")
k_block     = _symbol("k_block",     "token/seq",     "blocks a position reads in full")
R_sel       = _symbol("R_sel",       "token/seq",     "cache entries a position reads")
L_wide      = _symbol("L_wide",      "token/seq",     "balance context under two-level selection")
b_index     = _symbol("b_index",     "byte/token",    "bytes per token that choose which tokens are read")
k_top       = _symbol("k_top",       "token/seq",     "tokens a position reads in full")
V_sel       = _symbol("V_sel",       "byte/seq",      "cache bytes one position reads")
x_sel       = _symbol("x_sel",       "1",             "cache bytes read over those of full attention")
c_pack      = _symbol("c_pack",      "1",             "tokens packed into one cache entry")
L_window    = _symbol("L_window",    "token/seq",     "recent tokens read one by one")
n_in        = _symbol("n_in",        "1",             "inputs of a network or a cipher: positions, bits")
n_fan       = _symbol("n_fan",       "1",             "outputs of the round before that one output reads")
n_depth     = _symbol("n_depth",     "1",             "rounds or layers until every output depends on every input")
# fmt: on
