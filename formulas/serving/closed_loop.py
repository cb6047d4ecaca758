"""First tokens in the closed loop of a load generator, which keeps a number of requests in flight.

Its first requests come all at once, so each of them waits for half of the others' prompts; later
ones meet only the prompts that arrived while they were held, unless all lengths are equal, when an
engine that reads prompts before it decodes keeps them marching in step. Prompts share passes: what
a pass costs once is counted by the share of it that a prompt fills.
"""

from formulas.algebra.notation import *
from formulas.serving.prefill import in_passes

DEALT = Rational(2, 5)  # prompts that one waits for, of the standard deviation of those of a rank

prompts_before = Equation.of(
    n_ahead,
    n_others / one_seq * x_ramp
    + (1 - 2 * x_ramp)
    * (
        x_cohort * minimum(n_others / one_seq, maximum(c_chunk / L_new - 1, 0))
        + (1 - x_cohort) * n_others / one_seq * n_meet / L_out
    ),
    "in the first round all requests arrive together, and one waits for half of the others",
    "later every other request brings one prompt per L_out steps, or where all lengths are equal "
    "those that shared a pass end together, and share their next one",
    source=little_1961.at("the number that arrive during a stay"),
)

filled_passes = Equation.of(n_filled, L_new / c_chunk, "passes are filled across prompts")

burst_passes = Equation(
    "passes of one of the prompts that come all at once",
    n_filled,
    maximum(L_new / c_chunk, n_chunks * minimum(1, dp * pp * one_seq / maximum(one_seq, n_burst))),
    assumes=("prompts that come all at once share passes, as far as they fill them",),
)

work_ahead, prompt_ahead = in_passes(
    T_work_ahead, T_ahead, n_filled, "what a pass costs once is borne by the prompts that fill it"
)

loop_first_token = Equation.of(
    T_loop,
    (1 + n_rounds)
    * (
        T_ttft
        + n_back * T_dec
        + n_ahead * (x_pf * f_stage * T_ahead / pp + L_new * one_seq * t_tok + t_request)
    )
    + n_rounds * L_out * one_seq * T_tpot,
    "prompts of a copy are read one behind the other, in shared passes, and the host takes up one "
    "request behind the other",
    "requests beyond those that memory holds wait for others to leave",
    source=derived,
)

_TURN = x_pf * f_stage * T_ahead / (pp * dp * one_seq)  # of one prompt among the ranks
_ANSWER = L_out * one_seq * T_tpot
_DEALT = DEALT * sqrt(n_burst * one_seq * (dp - 1)) + one_seq
_ALONG = one_seq * n_chunks / n_shared
_MET = maximum(0, n_burst / one_seq - 1) * T_read / (T_ttft + _ANSWER)

pools_loop_first_token = Equation(
    "time to first token of two pools, in a closed loop",
    T_loop,
    x_ramp * n_burst * (_TURN + L_new * t_tok + t_request / one_seq)
    + maximum(
        T_ttft
        + (1 + n_sched) * T_dec
        + minimum(1, _MET) * (T_read / 2 + maximum(0, _DEALT - _ALONG) * _TURN)
        + minimum((B - one_seq) * _TURN, maximum(0, n_burst * _TURN - _ANSWER)),
        n_rounds * _ANSWER,
    ),
    assumes=(
        "the first requests come all at once, and the host takes up one behind the other",
        "later ones meet as many others as are read at once: a pass is under way then, and half of "
        "it still to come",
        "each is dealt to a rank at random, and the next in its place again: one waits for 2/5 of "
        "the standard deviation of a rank's number, as a simulation finds where the pools keep "
        "each other busy",
        "those of the B that the pool is behind with wait, of a round at most what is no answer",
        "the pool that decodes takes a request up as late as one pool does, n_sched of its steps, "
        "and tells the token with its next",
        "requests beyond its places wait for others to be answered, and are read meanwhile",
    ),
    source=little_1961.at("the number in a part of a system, and in a closed one"),
)

CLOSED_LOOP = (prompts_before, filled_passes, work_ahead, prompt_ahead, loop_first_token)
PREFILL_LOOP = (burst_passes, work_ahead, prompt_ahead, pools_loop_first_token)
