"""First tokens in the closed loop of a load generator, which keeps a number of requests in flight.

Its first requests come all at once, so each of them waits for half of the others' prompts; later
ones meet only the prompts that arrived while they were held, unless all lengths are equal, when an
engine that reads prompts before it decodes keeps them marching in step. Prompts share passes: what
a pass costs once is counted by the share of it that a prompt fills.

Tails are those of a mixture: of the first requests, which stand in one line, and of later ones,
whose work is their own prompt, those that come in the steps that they await, and a line where more
come than the chunk of a step has room for. Against a simulation of the steps (`tests`, 20 loops of
100,000 requests) the 95th and 99th percentiles are within 6 %; where a chunk holds two prompts, or
nearly all of its room is taken, those of later requests are up to 20 % off. Where some wait for a
place the 95th is within 5 % (13 % where few do), the 99th up to 30 % short.
"""

from math import factorial as _factorial

from formulas.algebra.notation import *
from formulas.serving.prefill import in_passes

HALF = Rational(1, 2)
DEALT = Rational(2, 5)  # prompts waited for, in standard deviations of the prompts of a rank

others_of_rank = Equation.of(
    n_others,
    maximum(B / dp - one_seq, 0),
    "requests are dealt evenly to the ranks that copy attention",
    source=definition,
)

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

_PROMPT = x_pf * f_stage * T_ahead / pp + L_new * one_seq * t_tok + t_request
loop_first_token = Equation.of(
    T_loop,
    (1 + n_rounds) * (T_ttft + n_back * T_dec + n_ahead * _PROMPT)
    + n_rounds * L_out * one_seq * T_tpot
    + n_turns * B * T_slot / one_seq,
    "prompts of a copy are read one behind the other, in shared passes, and the host takes up one "
    "request behind the other",
    "requests beyond those that memory holds wait for others to leave: n_rounds of them, or by the "
    "throughput identity n_turns times as many as run",
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

# --- tails ------------------------------------------------------------------------------------
_FULLEST = Rational(99, 100)  # maximum load of the chunks; above it the queue length is uncertain
_LEAST = Rational(1, 10**6)  # below it a number is normal, or none
_COUNTED = 8  # prompts that are counted one by one
_SPREAD = 1 + v_in**2  # E[L^2]/E[L]^2 of log-normal lengths, whose E[L^k] are its powers
_FILLS = L_new / c_chunk
_AWAITED = n_meet / g  # steps

place_in_burst = Equation.of(
    n_start,
    n_others / one_seq * maximum(1 - x_tail / (2 * x_ramp), 0),
    "a share of 2 x_ramp of the requests, the first of every user, come all at once, and are read "
    "one behind the other: places in that line are evenly distributed",
    source=derived,
)

_PASSES = ceiling((1 + n_start) * _FILLS)

burst_first_token = Equation.of(
    T_burst,
    T_ttft
    + maximum(n_start, minimum(n_others / one_seq, _PASSES / _FILLS - 1)) * _PROMPT
    + s_mixed * maximum(_PASSES - n_chunks, 0) * T_dec / pp,
    "those that were read before decode meanwhile, and all that a pass reads are read with it",
    source=derived,
)


def _odds(come: Expr) -> Expr:
    full = minimum(come * _FILLS, _FULLEST)
    long = 1 - 1 / (_FILLS * _SPREAD)
    apart = exp(-Rational(7, 6) * (1 - full) / (_FILLS * sqrt(come * _SPREAD)))
    return full / (1 - full) * maximum(long, apart)


steps_between = Equation.of(
    n_between,
    L_out / g + _AWAITED + n_chunks - 1,
    "a user's next prompt comes when the answer has ended, and nobody thinks",
)

prompts_sent = Equation.of(x_sent, n_others / (one_seq * n_between), "nobody waits in line")

first_odds = Equation.of(x_short, _odds(x_sent), "as with the line that there is", source=derived)

joining_prompts = Equation.of(
    x_come,
    n_others / (one_seq * (n_between + x_short * _SPREAD * _FILLS / 2)),
    "those in line send nothing",
    source=little_1961.at("the number that arrive during a step"),
)

line_odds = Equation.of(
    x_line,
    _odds(x_come),
    "of prompts longer than a chunk as those of a server, less the step in which one joins",
    "of short ones as the walk of what a step's prompts have beyond a chunk is above zero; 7/6 is "
    "twice -zeta(1/2)/sqrt(2 pi), by which steps overshoot",
    source=siegmund_1979.at("theorem 1"),
)

_LINE = x_line * _SPREAD / 2

mean_work = Equation.of(
    n_sum,
    1 + x_come * _AWAITED + _LINE,
    "a request awaits the end of the step that runs, and its own",
    source=kleinrock_1975.at("section 5.6, the Pollaczek-Khinchine mean-value formula"),
)

work_spread = Equation.of(
    d_sum,
    sqrt(v_in**2 + x_come * _AWAITED * _SPREAD + _LINE**2 + x_line * _SPREAD**3 / 3),
    "prompts come as a Poisson number, and lengths are log-normal",
    source=kleinrock_1975.at("section 5.7, moments of the waiting time by Takacs's recurrence"),
)

_THIRD = (
    x_come * _AWAITED * _SPREAD**3
    + _SPREAD**3
    - 3 * _SPREAD
    + 2
    + 2 * _LINE**3
    + _LINE * x_line * _SPREAD**3
    + x_line * _SPREAD**6 / 4
)
_SKEW = _THIRD / maximum(d_sum, _LEAST) ** 3
_ROOT = ((_SKEW + sqrt(_SKEW**2 + 4)) / 2) ** Rational(1, 3)

work_shape = Equation.of(
    x_log,
    maximum(_ROOT - 1 / _ROOT, _LEAST),
    "a log-normal number whose standard deviation is y times its mean has skewness y^3 + 3 y",
    source=derived,
)

_POISSON = x_come * _AWAITED
_BELOW = [
    exp(-_POISSON) * sum(_POISSON**i / _factorial(i) for i in range(k + 1))
    for k in range(_COUNTED)
]  # fmt: skip

prompts_counted = Equation.of(
    n_lattice,
    Piecewise(
        (
            sum(Piecewise((1, below < 1 - x_tail), (0, True)) for below in _BELOW),
            Rational(5, 2) > _POISSON,
        ),
        (
            ceiling(
                _POISSON
                + z_tail * sqrt(_POISSON)
                + (z_tail**2 - 1) / 6
                + (z_tail - z_tail**3) / (72 * sqrt(_POISSON))
                - HALF
            ),
            True,
        ),
    ),
    "a Poisson number, counted while it is small, later by the expansion of Cornish and Fisher",
    source=derived,
)

_LOGS = sqrt(log(1 + x_log**2))
_SMOOTH = n_sum + d_sum * (exp(z_tail * _LOGS - _LOGS**2 / 2) - 1) / x_log
_LINED = x_line * (1 - minimum(x_come * _FILLS, _FULLEST))  # share that finds a line
_ALIKE = exp(-2 * (pi * v_in) ** 2 * (1 + n_lattice)) * minimum(1, maximum(0, 2 - _LINED / x_tail))
_TOGETHER = Piecewise(
    ((n_chunks + _AWAITED - 1) / _FILLS, L_new > c_chunk),
    (_AWAITED * (ceiling(1 / _FILLS + _LEAST) - 1), True),
)

work_quantile = Equation.of(
    n_work,
    x_cohort * minimum(1 + n_others / one_seq, maximum(_TOGETHER, 1))
    + (1 - x_cohort) * (_SMOOTH + _ALIKE * (1 + n_lattice - _SMOOTH)),
    "where all lengths are equal whole prompts that shared a pass come back together, one pass of "
    "them behind the other, and longer ones leave no room between them",
    "else the work is a shifted log-normal number of its mean, variance and skewness; as far as "
    "prompts are alike, and few find a line, it is a whole number of them: the first wave of that "
    "staircase is damped as lengths spread",
    source=derived,
)

settled_first_token = Equation.of(
    T_settled,
    T_ttft
    + n_back * T_dec
    + (n_work - 1) * _PROMPT
    + s_mixed * maximum(ceiling(n_work * _FILLS) - n_chunks - _AWAITED + 1, 0) * T_dec / pp,
    "chunks that those who are met fill beyond one's own take a step each",
)

late_first_token = Equation.of(
    T_late,
    maximum(T_burst, T_settled + n_turns / (1 - x_ramp) * B * T_slot / one_seq),
    "either the first requests or later ones are by far the slower of those that are late",
    "requests beyond those that memory holds wait for others to leave, all about as long; of the "
    "first of every user half do",
)

LOOP_WORK = (  # what later requests meet, whatever share of them exceeds a time
    steps_between, prompts_sent, first_odds, joining_prompts, line_odds, mean_work, work_spread,
    work_shape,
)  # fmt: skip
LOOP_TAIL = (
    place_in_burst, burst_first_token, *LOOP_WORK, prompts_counted, work_quantile,
    settled_first_token, late_first_token,
)  # fmt: skip

CLOSED_LOOP = (prompts_before, filled_passes, work_ahead, prompt_ahead, loop_first_token)
PREFILL_LOOP = (burst_passes, work_ahead, prompt_ahead, pools_loop_first_token)
