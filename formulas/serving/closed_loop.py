"""First tokens in the closed loop of a load generator, which keeps a number of requests in flight.

Its first requests come all at once, so each of them waits for half of the others' prompts; later
ones meet only the prompts that arrived while they were held, unless all lengths are equal, when an
engine that reads prompts before it decodes keeps them marching in step. Prompts share passes: what
a pass costs once is counted by the share of it that a prompt fills.
"""

from formulas.algebra.notation import *

prompts_before = Equation.of(
    n_ahead,
    n_others / one_seq * (x_ramp + n_meet / L_out) + n_few,
    "in the first round all requests arrive together, and one waits for half of the others",
    "later every other request brings one prompt per L_out steps",
    source=little_1961.at("the number that arrive during a stay"),
)

pass_filling = Equation.of(x_fill, L_new / (c_chunk * n_chunks), "passes are filled across prompts")

pass_time = Equation.of(
    T_pf_pass,
    T_pf_w + T_pf_over + T_draft_pass + n_chunks * (n_ar * t_ar + n_a2a * t_a2a) + n_hop * t_hop,
    "weights are read, and kernels launched, once a pass",
)

prompt_itself = Equation.of(
    T_pf_each,
    T_pf_math
    + T_draft_pf
    + maximum(T_pf_attn, T_ring)
    + n_ar * (n_chunks * a_ar_pf + V_ar_pf / w_ar_pf + g_ar_pf * sqrt(n_chunks * V_ar_pf)) / e_ar_pf
    + n_a2a * (n_chunks * a_x_pf + V_x_pf / w_x_pf + g_x_pf * sqrt(n_chunks * V_x_pf)) / e_a2a
    + n_hop * V_ar_pf / r_hop,
    "keys and values go round behind the arithmetic of attention",
)

loop_first_token = Equation.of(
    T_loop,
    (1 + n_rounds)
    * (
        T_ttft
        + n_back * T_dec
        + n_ahead
        * (x_pf * f_stage * (T_pf_each + x_fill * T_pf_pass) / pp + L_new * one_seq * t_tok)
    )
    + n_rounds * L_out * one_seq * T_tpot,
    "prompts of a copy are read one behind the other, in shared passes",
    "requests beyond those that memory holds wait for others to leave",
    source=derived,
)

prefill_loop_first_token = Equation(
    "time to first token of a pool that prefills, in a closed loop",
    T_loop,
    T_ttft + (x_ramp * n_burst + B - one_seq) / one_seq * x_pf * T_pf_busy,
    assumes=(
        "the first requests come all at once",
        "later ones meet the B - 1 that the pool is behind with",
    ),
    source=derived,
)

CLOSED_LOOP = (prompts_before, pass_filling, pass_time, prompt_itself, loop_first_token)
PREFILL_LOOP = (prefill_loop_first_token,)
