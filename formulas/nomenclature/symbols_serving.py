"""The nomenclature, continued: one replica that serves, its layout, its chips, its profile.

Same registry and rules as the other symbols; here rates and capacities are those of one chip,
because a layout says how many of them work together.
"""

from formulas.nomenclature.symbols import symbol

# fmt: off
# --- serving: layout of one replica ---------------------------------------------------------
tp        = symbol("tp",        "1",              "ways tensor parallelism shards attention")
dp        = symbol("dp",        "1",              "attention copies with sequences of their own")
pp        = symbol("pp",        "1",              "pipeline stages")
ep        = symbol("ep",        "1",              "groups over which the experts are spread")
xtp       = symbol("xtp",       "1",              "chips that share one expert")
n_rep     = symbol("n_rep",     "1",              "replicas")
f_stage   = symbol("f_stage",   "1",              "layers of the fullest stage over the mean")
f_pace    = symbol("f_pace",    "1",              "round of a microbatch over all its stages")
f_heads   = symbol("f_heads",   "1",              "share of a cache that one chip of tp holds")
u_ep      = symbol("u_ep",      "1",              "experts of the fullest rank over the mean")
r_fill    = symbol("r_fill",    "1",              "share of the slots that are filled")
one_seq   = symbol("one_seq",   "seq",            "one sequence")
one_token = symbol("one_token", "token",          "one token")

# --- serving: the batch ---------------------------------------------------------------------
b_rank    = symbol("b_rank",    "seq",            "sequences of one rank in one microbatch")
b_stage   = symbol("b_stage",   "seq",            "sequences of one stage in one microbatch")
b_mem     = symbol("b_mem",     "seq",            "sequences whose cache one rank holds")
L_new     = symbol("L_new",     "token/seq",      "prompt tokens to compute")
L_hit     = symbol("L_hit",     "token/seq",      "prompt tokens found in the prefix cache")
L_dec     = symbol("L_dec",     "token/seq",      "tokens emitted by decode steps per sequence")
P_pairs   = symbol("P_pairs",   "token**2/seq**2", "query-key pairs of one prompt")
x_hit     = symbol("x_hit",     "1",              "share of the input served from the prefix cache")
x_pf      = symbol("x_pf",      "1",              "1 where the pool prefills as well, else 0")
s_mixed   = symbol("s_mixed",   "1",              "1 where chunks and decoding share a step")
kappa     = symbol("kappa",     "1",              "share of prompts a decoding sequence awaits")
c_chunk   = symbol("c_chunk",   "token/seq",      "prompt tokens of one chunk, over all parts")
n_chunks  = symbol("n_chunks",  "1",              "chunks of one prompt")
phi_mixed = symbol("phi_mixed", "1",              "share of steps that carry a chunk")

# --- serving: the model by operator class ---------------------------------------------------
N_attn    = symbol("N_attn",    "param",          "attention weights a token passes")
N_ffn     = symbol("N_ffn",     "param",          "dense and shared-expert weights a token passes")
N_exp     = symbol("N_exp",     "param",          "routed-expert weights a token passes")
N_head    = symbol("N_head",    "param",          "weights of the output head")
S_fixed   = symbol("S_fixed",   "byte",           "weights that every step reads")
S_routed  = symbol("S_routed",  "byte",           "weights of all routed experts")
k_copies  = symbol("k_copies",  "1",              "chips a token's hidden vector is sent to")
R_bnd     = symbol("R_bnd",     "byte/seq",       "cache bytes read per step whatever the context")
R_state   = symbol("R_state",   "byte/seq",       "recurrent state read and written per step")
A_bnd     = symbol("A_bnd",     "flop/token",     "attention per position in bounded caches")
A_bnd_pf  = symbol("A_bnd_pf",  "flop/token",     "the same in prefill, mean over the prompt")
a_pf      = symbol("a_pf",      "flop*seq/token**2", "attention per query-key pair, prefill")
h_act     = symbol("h_act",     "1/token",        "elements of the hidden vector")
h_exp     = symbol("h_exp",     "1/token",        "elements of the vector sent to an expert")
h_wide    = symbol("h_wide",    "1/token",        "elements alive per token in the widest layer")
vocab     = symbol("vocab",     "1/token",        "logits per token")
n_blocks  = symbol("n_blocks",  "1",              "layers")
n_moe     = symbol("n_moe",     "1",              "layers with routed experts")
b_act     = symbol("b_act",     "byte",           "bytes of one activation")
b_logit   = symbol("b_logit",   "byte",           "bytes of one logit")
b_disp    = symbol("b_disp",    "byte",           "bytes of one element on the way to an expert")
b_comb    = symbol("b_comb",    "byte",           "bytes of one element on the way back")
b_store   = symbol("b_store",   "byte/token",     "cache bytes stored per token of context")
R_bnd_mem = symbol("R_bnd_mem", "byte/seq",       "cache bytes stored whatever the context")

# --- serving: one chip ----------------------------------------------------------------------
F_attn    = symbol("F_attn",    "flop/s",         "peak of one chip for attention weights")
F_ffn     = symbol("F_ffn",     "flop/s",         "peak of one chip for dense and shared weights")
F_routed  = symbol("F_routed",  "flop/s",         "peak of one chip for routed experts")
F_head    = symbol("F_head",    "flop/s",         "peak of one chip for the head")
F_sdpa    = symbol("F_sdpa",    "flop/s",         "peak of one chip for attention over the cache")
W_chip    = symbol("W_chip",    "byte/s",         "memory bandwidth of one chip")
M_cap     = symbol("M_cap",     "byte",           "memory of one chip")
M_sram    = symbol("M_sram",    "byte",           "on-chip memory of one chip")

# --- serving: network and profile -----------------------------------------------------------
V_msg     = symbol("V_msg",     "byte",           "bytes one chip contributes to a collective")
n_group   = symbol("n_group",   "1",              "chips of a group")
q_wire    = symbol("q_wire",    "1",              "bytes on the wire per byte contributed")
q_ar      = symbol("q_ar",      "1",              "bytes on the wire per byte all-reduced")
q_ag      = symbol("q_ag",      "1",              "bytes on the wire per byte gathered")
q_a2a     = symbol("q_a2a",     "1",              "share of an all-to-all that leaves the chip")
r_link    = symbol("r_link",    "byte/s",         "rate of one chip into the network, one way")
r_ar      = symbol("r_ar",      "byte/s",         "rate of one chip in the tensor-parallel group")
r_a2a     = symbol("r_a2a",     "byte/s",         "rate of one chip in the expert group")
r_hop     = symbol("r_hop",     "byte/s",         "rate from one stage to the next")
alpha_c   = symbol("alpha_c",   "s",              "latency floor of a collective")
gamma_c   = symbol("gamma_c",   "s/byte**(1/2)",  "mid-range term of a collective")
t_coll    = symbol("t_coll",    "s",              "time of one collective")
n_ar      = symbol("n_ar",      "1",              "all-reduces per step")
n_a2a     = symbol("n_a2a",     "1",              "dispatch-and-combine pairs per step")
n_hop     = symbol("n_hop",     "1",              "hops between stages")
t_ar      = symbol("t_ar",      "s",              "what an engine adds to one all-reduce")
t_a2a     = symbol("t_a2a",     "s",              "what an engine adds to one exchange")
t_hop     = symbol("t_hop",     "s",              "latency of one hop, network and software")
n_ep      = symbol("n_ep",      "1",              "layers whose experts one batch splits")
c_imb     = symbol("c_imb",     "seq**(1/2)",     "expert imbalance per square root of the batch")

# --- serving: times of one step -------------------------------------------------------------
V_w       = symbol("V_w",       "byte",           "weight bytes one chip reads in one step")
V_w_bound = symbol("V_w_bound", "byte",           "weight bytes one chip must read in one step")
V_kv_dec  = symbol("V_kv_dec",  "byte",           "cache bytes one chip reads in one step")
V_ar      = symbol("V_ar",      "byte",           "bytes one rank all-reduces")
T_w_dec   = symbol("T_w_dec",   "s",              "reading weights")
T_kv_dec  = symbol("T_kv_dec",  "s",              "reading the KV cache")
T_dense   = symbol("T_dense",   "s",              "weights every token passes, at peak")
T_experts = symbol("T_experts", "s",              "arithmetic of routed experts, at peak")
T_sdpa    = symbol("T_sdpa",    "s",              "arithmetic of attention over the cache, at peak")
T_math    = symbol("T_math",    "s",              "arithmetic")
T_ar      = symbol("T_ar",      "s",              "all-reduces")
T_a2a     = symbol("T_a2a",     "s",              "expert dispatch and combine")
T_hop     = symbol("T_hop",     "s",              "pipeline hops")
T_over    = symbol("T_over",    "s",              "overhead")
T_dec     = symbol("T_dec",     "s",              "decode step, estimate")
T_mem_bound  = symbol("T_mem_bound",  "s",        "memory roof of a decode step")
T_math_bound = symbol("T_math_bound", "s",        "arithmetic roof of a decode step")
T_net_bound  = symbol("T_net_bound",  "s",        "network roof of a decode step")
T_dec_bound  = symbol("T_dec_bound",  "s",        "decode step, bound")

# --- serving: prompts, requests, the bill ---------------------------------------------------
T_pf_math = symbol("T_pf_math", "s",              "arithmetic of one prompt")
T_pf_w    = symbol("T_pf_w",    "s",              "reading weights for one prompt")
T_pf_net  = symbol("T_pf_net",  "s",              "collectives of one prompt")
T_pf_over = symbol("T_pf_over", "s",              "overhead of one prompt")
T_pf      = symbol("T_pf",      "s",              "one prompt through all layers, estimate")
T_pf_busy = symbol("T_pf_busy", "s",              "time a replica spends per prompt")
T_pf_math_bound = symbol("T_pf_math_bound", "s",  "arithmetic roof of one prompt")
T_pf_busy_bound = symbol("T_pf_busy_bound", "s",  "time a replica must spend per prompt")
T_ttft    = symbol("T_ttft",    "s",              "time to first token")
T_ttft_bound = symbol("T_ttft_bound", "s",        "time to first token, bound")
T_out     = symbol("T_out",     "s",              "time a replica spends decoding per request")
T_slot    = symbol("T_slot",    "s",              "time a replica spends per request")
T_slot_bound = symbol("T_slot_bound", "s",        "time a replica must spend per request")
T_share   = symbol("T_share",   "s",              "mean time a step waits for prefill")
T_tpot    = symbol("T_tpot",    "s/token",        "mean time per output token")
T_tpot_bound = symbol("T_tpot_bound", "s/token",  "time per output token, bound")
T_e2e     = symbol("T_e2e",     "s",              "time from arrival to last token")
X_seq     = symbol("X_seq",     "seq/s",          "requests served")
M_fixed   = symbol("M_fixed",   "byte",           "weights outside the routed experts")
M_routed  = symbol("M_routed",  "byte",           "weights of the routed experts")
M_weights = symbol("M_weights", "byte",           "weights resident on one chip")
M_kv      = symbol("M_kv",      "byte",           "cache resident on one chip")
M_act     = symbol("M_act",     "byte",           "activations resident on one chip")
M_reserve = symbol("M_reserve", "byte",           "memory the runtime keeps for itself")
M_need    = symbol("M_need",    "byte",           "bytes resident on one chip")
C_mix     = symbol("C_mix",     "USD/token",      "price of a token, input and output together")
# fmt: on

__all__ = [
    "A_bnd",
    "A_bnd_pf",
    "C_mix",
    "F_attn",
    "F_ffn",
    "F_head",
    "F_routed",
    "F_sdpa",
    "L_dec",
    "L_hit",
    "L_new",
    "M_act",
    "M_cap",
    "M_fixed",
    "M_kv",
    "M_need",
    "M_reserve",
    "M_routed",
    "M_sram",
    "M_weights",
    "N_attn",
    "N_exp",
    "N_ffn",
    "N_head",
    "P_pairs",
    "R_bnd",
    "R_bnd_mem",
    "R_state",
    "S_fixed",
    "S_routed",
    "T_a2a",
    "T_ar",
    "T_dec",
    "T_dec_bound",
    "T_dense",
    "T_e2e",
    "T_experts",
    "T_hop",
    "T_kv_dec",
    "T_math",
    "T_math_bound",
    "T_mem_bound",
    "T_net_bound",
    "T_out",
    "T_over",
    "T_pf",
    "T_pf_busy",
    "T_pf_busy_bound",
    "T_pf_math",
    "T_pf_math_bound",
    "T_pf_net",
    "T_pf_over",
    "T_pf_w",
    "T_sdpa",
    "T_share",
    "T_slot",
    "T_slot_bound",
    "T_tpot",
    "T_tpot_bound",
    "T_ttft",
    "T_ttft_bound",
    "T_w_dec",
    "V_ar",
    "V_kv_dec",
    "V_msg",
    "V_w",
    "V_w_bound",
    "W_chip",
    "X_seq",
    "a_pf",
    "alpha_c",
    "b_act",
    "b_comb",
    "b_disp",
    "b_logit",
    "b_mem",
    "b_rank",
    "b_stage",
    "b_store",
    "c_chunk",
    "c_imb",
    "dp",
    "ep",
    "f_heads",
    "f_pace",
    "f_stage",
    "gamma_c",
    "h_act",
    "h_exp",
    "h_wide",
    "k_copies",
    "kappa",
    "n_a2a",
    "n_ar",
    "n_blocks",
    "n_chunks",
    "n_ep",
    "n_group",
    "n_hop",
    "n_moe",
    "n_rep",
    "one_seq",
    "one_token",
    "phi_mixed",
    "pp",
    "q_a2a",
    "q_ag",
    "q_ar",
    "q_wire",
    "r_a2a",
    "r_ar",
    "r_fill",
    "r_hop",
    "r_link",
    "s_mixed",
    "t_a2a",
    "t_ar",
    "t_coll",
    "t_hop",
    "tp",
    "u_ep",
    "vocab",
    "x_hit",
    "x_pf",
    "xtp",
]
