"""The nomenclature, continued: what an engine reaches, and what it costs besides.

Same registry and rules as the other symbols. A profile of the planner gives their values.
"""

from formulas.nomenclature.symbols import symbol

# fmt: off
t_layer   = symbol("t_layer",   "s",              "overhead per layer")
t_moe     = symbol("t_moe",     "s",              "further overhead per layer with experts")
t_seq     = symbol("t_seq",     "s/seq",          "overhead per sequence of a rank")
t_step    = symbol("t_step",    "s",              "overhead per step")
t_pf_chunk = symbol("t_pf_chunk", "s",            "overhead per prefill chunk")
t_pf_moe  = symbol("t_pf_moe",  "s",              "overhead per chunk and layer with experts")
t_ep      = symbol("t_ep",      "s",              "overhead per layer of split experts")
t_request = symbol("t_request", "s",              "overhead per request before its first token")
t_tok     = symbol("t_tok",     "s/token",        "overhead per token of a prompt")
n_sched    = symbol("n_sched",    "1",              "steps a new request waits to be seen")
e_at      = symbol("e_at",      "1",              "share of peak of attention, decode")
e_pf      = symbol("e_pf",      "1",              "share of peak of dense products, prefill")
e_pf_x    = symbol("e_pf_x",    "1",              "the same of routed experts")
e_pf_a    = symbol("e_pf_a",    "1",              "the same of attention")
e_ar      = symbol("e_ar",      "1",              "time of an all-reduce alone over that in a step")
e_ar_pf   = symbol("e_ar_pf",   "1",              "the same of an all-reduce of a prompt")
e_a2a     = symbol("e_a2a",     "1",              "time of an exchange alone over that in a step")
# fmt: on

__all__ = [
    "e_a2a",
    "e_ar",
    "e_ar_pf",
    "e_at",
    "e_pf",
    "e_pf_a",
    "e_pf_x",
    "n_sched",
    "t_ep",
    "t_layer",
    "t_moe",
    "t_pf_chunk",
    "t_pf_moe",
    "t_request",
    "t_seq",
    "t_step",
    "t_tok",
]
