"""Symbols of collectives, groups of several nodes, copies sent to experts, and rack crossings.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

# one collective
alpha_0     = _symbol("alpha_0",     "s",             "time to start a collective")
alpha_1     = _symbol("alpha_1",     "s",             "latency of one step of a collective")
n_steps     = _symbol("n_steps",     "1",             "steps of a collective, one after the other")
q_tree      = _symbol("q_tree",      "1",             "bytes on the wire per byte all-reduced in trees")
q_one       = _symbol("q_one",       "1",             "bytes on the wire per byte all-reduced in one shot")
q_switch    = _symbol("q_switch",    "1",             "bytes on the wire per byte that the switch reduces")
x_switch    = _symbol("x_switch",    "1",             "time of a ring over that of a switch that reduces")
V_even      = _symbol("V_even",      "byte",          "message at which two algorithms take equal time")

# groups of several nodes
m_group     = _symbol("m_group",     "1",             "nodes of a group")
g_node      = _symbol("g_node",      "1",             "chips of a group in each of its nodes")
T_inner     = _symbol("T_inner",     "s",             "time of an all-reduce inside its nodes")
T_outer     = _symbol("T_outer",     "s",             "time of an all-reduce between its nodes")
T_serial    = _symbol("T_serial",    "s",             "time of an all-reduce over nodes, phase after phase")
T_overlap   = _symbol("T_overlap",   "s",             "time of an all-reduce over nodes, phases in a pipeline")

# collectives of a step, by themselves
a_ar        = _symbol("a_ar",        "s",             "floor of one all-reduce of a decode step")
w_ar        = _symbol("w_ar",        "byte/s",        "bytes all-reduced per second, decode")
g_ar        = _symbol("g_ar",        "s/byte**(1/2)", "square-root term of an all-reduce, decode")
a_ar_pf     = _symbol("a_ar_pf",     "s",             "floor of one all-reduce of a prompt")
w_ar_pf     = _symbol("w_ar_pf",     "byte/s",        "bytes all-reduced per second, prefill")
g_ar_pf     = _symbol("g_ar_pf",     "s/byte**(1/2)", "square-root term of an all-reduce, prefill")
a_x         = _symbol("a_x",         "s",             "floor of one exchange with experts, decode")
w_x         = _symbol("w_x",         "byte/s",        "bytes exchanged per second and chip, decode")
g_x         = _symbol("g_x",         "s/byte**(1/2)", "square-root term of an exchange, decode")
a_x_pf      = _symbol("a_x_pf",      "s",             "floor of one exchange with experts, prefill")
w_x_pf      = _symbol("w_x_pf",      "byte/s",        "bytes exchanged per second and chip, prefill")
g_x_pf      = _symbol("g_x_pf",      "s/byte**(1/2)", "square-root term of an exchange, prefill")
V_x         = _symbol("V_x",         "byte",          "bytes one chip sends to experts and back")
V_x_pf      = _symbol("V_x_pf",      "byte",          "bytes one chip sends to experts, and back, for a prompt in one layer")
k_copies_pf = _symbol("k_copies_pf", "1",             "copies of a token sent to experts, prefill")
x_ep        = _symbol("x_ep",        "1",             "tokens of the fullest expert rank over the mean")
f_skew      = _symbol("f_skew",      "1",             "the part of it that skewed routing adds")

V_ar_pf     = _symbol("V_ar_pf",     "byte",          "bytes all-reduced per rank for one prompt")
T_ar_pf     = _symbol("T_ar_pf",     "s",             "all-reduces of one prompt")
T_x_pf      = _symbol("T_x_pf",      "s",             "exchanges with experts of one prompt")
T_hop_pf    = _symbol("T_hop_pf",    "s",             "hops of one prompt")

# hand-over between stages
t_hop_net   = _symbol("t_hop_net",   "s",             "latency of a hop in the network")
t_hop_sw    = _symbol("t_hop_sw",    "s",             "time software takes to hand a microbatch over")
T_pass      = _symbol("T_pass",      "s",             "time to hand a microbatch to the next stage")
n_hand      = _symbol("n_hand",      "token",         "tokens handed over at once")

# dispatch and combine
k_nodes     = _symbol("k_nodes",     "1",             "nodes that hold an expert of a token, expected")
k_reach     = _symbol("k_reach",     "1",             "nodes a token is sent to")
k_remote    = _symbol("k_remote",    "1",             "nodes other than its own a token is sent to")
g_limit     = _symbol("g_limit",     "1",             "nodes among which routing may choose")
b_elem      = _symbol("b_elem",      "byte",          "bytes of one element without its scale")
b_scale     = _symbol("b_scale",     "byte",          "bytes of one scale")
c_scale     = _symbol("c_scale",     "1",             "elements that share a scale")
v_copy      = _symbol("v_copy",      "byte/token",    "bytes of one copy of a token")
T_disp      = _symbol("T_disp",      "s",             "time to send tokens to their experts")
T_comb      = _symbol("T_comb",      "s",             "time to send the experts' answers back")
x_dedup     = _symbol("x_dedup",     "1",             "copies sent, over one for each expert")

# expert groups of one rack and of several
n_inner     = _symbol("n_inner",     "1",             "chips of an expert group within one rack")
n_outer     = _symbol("n_outer",     "1",             "chips of an expert group over several racks")
n_spare     = _symbol("n_spare",     "1",             "routed experts of a layer that a chip of the larger group need not hold")
s_expert    = _symbol("s_expert",    "byte",          "weights of one routed expert")
s_even      = _symbol("s_even",      "byte",          "weights of one routed expert at which both groups take equal time")
n_own       = _symbol("n_own",       "token",         "positions of one chip in a step")
n_tie       = _symbol("n_tie",       "token",         "positions of one chip at which both groups take equal time")
t_more      = _symbol("t_more",      "s",             "what the floor of the larger group's exchange is above that of the smaller one")
x_more      = _symbol("x_more",      "s/token",       "what one more position of a chip costs the larger group above the smaller one")
T_saved     = _symbol("T_saved",     "s",             "time that a chip of the larger group reads less")
T_lost      = _symbol("T_lost",      "s",             "time that the larger group's exchange takes longer")
# fmt: on
