"""Arrivals: how busy the readers of prompts are, and how long a request waits for one.

A rank reads one prompt after the other, first come, first served; what is not yet read waits. In
one pool each chunk of a prompt shares its step with the decoding sequences, so reading takes the
prompt's own time and that of the decode steps it rides on. Requests are dealt to the ranks at
random, which leaves each a Poisson stream: an M/G/1 queue, whose server looks for work only when
a step begins and hands over all prompts of a chunk at once.

Against a simulation of the steps (chunks of half a prompt to eight, prompts of one length to those
as spread as an exponential distribution, readers 30 to 80 % busy) the mean time to first token is
within 12 % and mostly within 5 %; its 95th and 99th percentiles, of readers 8 to 80 % busy, are
between 6 % too short and 26 % too long. Without `joining_time` the mean was up to 45 % too short.
The ranks are independent here: where an engine makes all of them wait for the slowest, prompts of
one delay all.
"""

from formulas.algebra.notation import *

HALF = Rational(1, 2)
FIRST_COME = "requests are dealt to ranks at random and read first come, first served"
ASSUME_STEADY_STATE = "a steady state"
LITTLES_LAW = little_1961.at("the number served, of one server")

square_share = Equation.of(
    r_quad,
    minimum(
        (a_pf + a_idx * r_idx)
        * P_pairs
        * one_seq
        * f_stage
        / (F_sdpa * tp * cp * e_pf_a * pp * S_occ),
        1,
    ),
    "attention of new tokens to all before them; whatever hides behind it left out",
)

_SPREAD = 1 + v_in**2
occupancy_spread = Equation.of(
    v_occ,
    v_in
    * sqrt(
        (1 - r_quad) ** 2
        + 2 * r_quad * (1 - r_quad) * (_SPREAD + 1)
        + r_quad**2 * (_SPREAD + 1) * (_SPREAD**2 + 1)
    ),
    "lengths are log-normal, so that E[L^k] = mean^k (1 + v^2)^(k (k - 1)/2)",
    "a part of the time grows with the length, the other with its square",
    source=derived,
)

prompt_occupancy = Equation.of(
    S_occ,
    T_pf_busy * dp + s_mixed * L_new * T_dec / (c_chunk * pp),
    "chunks are filled across prompts, and each shares its step with the decoding sequences",
    "stages of a pipeline read several prompts at once",
)

reader_utilisation = Equation.of(
    rho_pf, x_load * S_occ / (dp * one_seq), FIRST_COME, source=LITTLES_LAW
)

reading_step = Equation.of(
    S_step,
    T_pf_busy * dp + s_mixed * T_dec / pp,
    "a step that reads one prompt beside the decoding sequences ends before the next begins",
)

reading_share = Equation.of(
    r_pf,
    x_load * T_pf_busy / one_seq,
    "stages and ranks work on prompts of their own",
    source=LITTLES_LAW,
)

line_time = Equation.of(
    T_line,
    rho_pf * S_occ * (1 + v_occ**2) / (2 * (1 - rho_pf)),
    FIRST_COME,
    "Poisson arrivals",
    when(rho_pf < 1),
    source=kleinrock_1975.at("section 5.6, the Pollaczek-Khinchine mean-value formula"),
)

joining_room = Equation.of(
    w_join, maximum(1 - L_new / c_chunk, 0), "chunks are filled across prompts"
)

joining_time = Equation.of(
    T_join,
    HALF * s_mixed * T_dec / pp
    + w_join
    * HALF
    * (
        3 * r_pf * s_mixed * T_dec / (pp * (1 - r_pf))
        + r_pf**2 * T_pf_busy * dp * (1 + v_occ**2) / (1 - r_pf**2)
    )
    + (1 - w_join) * HALF * rho_pf**2 * T_pf_busy * dp * minimum(c_chunk / L_new, 1),
    "a request joins when the step that runs has ended, on average half a decode step later",
    "prompts much shorter than a chunk are all read in the next step: gated service, whose "
    "mean step, as an arrival meets it, is T_dec/(1 - r) + r T_pf (1 + v^2)/(1 - r^2)",
    "the last chunk of a longer one is filled by those behind it, half of it on average",
    "between the two the room that a prompt leaves in a chunk is the weight",
    source=derived,
)

waiting_time = Equation(
    "mean time a request waits, beyond the reading of its own prompt",
    T_wait,
    T_line + T_join,
    assumes=(FIRST_COME, "Poisson arrivals", when(rho_pf < 1)),
)

heavy_line = Equation.of(
    x_heavy,
    sqrt(maximum(rho_pf + 2 * (1 - rho_pf) * (1 + v_occ**2) / 3, 1)),
    "E[W^2] = 2 E[W]^2 + x E[S^3]/(3 (1 - rho)), over that of an exponential wait, and its root",
    "times of prompts are log-normal: E[S^3] = S^3 (1 + v^2)^3",
    source=kleinrock_1975.at("section 5.7, moments of the waiting time by Takacs's recurrence"),
)

shared_step = Equation.of(
    r_both,
    w_join * x_load * (s_mixed * T_dec / pp + x_load * S_step**2 / (dp * one_seq)) / (dp * one_seq),
    "another comes in the decode step, or in the step of a prompt, that a request waits for",
)

waiting_quantile = Equation.of(
    T_tail,
    T_wait
    + sqrt(
        maximum(
            x_heavy * T_line * log(rho_pf / x_tail) / rho_pf + 2 * T_join - T_wait,
            log((1 - maximum(x_tail - r_both, 0)) / (1 - rho_pf)) * dp * one_seq / x_load
            + HALF * s_mixed * T_dec / pp
            - T_wait,
            0,
        )
        ** 2
        + (v_occ * S_occ * (log(1 / x_tail) - 1)) ** 2
    ),
    FIRST_COME,
    "those who wait in line at all do so for an exponentially distributed time, or where readers "
    "are mostly idle as prompts of one length let them, P(W <= t) = (1 - rho) exp(x t) up to the "
    "time of a prompt and never more than that, of any lengths; half a decode step later, and "
    "those who share their step with another for the whole of its prompt",
    "the delay by steps is evenly distributed, at most twice its mean",
    when(x_tail <= rho_pf, why="fewer wait in line otherwise"),
    "an own prompt longer than the mean, as exponentially spread ones are, comes on top; the "
    "two are independent, and what they lie beyond their means adds by squares",
    source=kleinrock_1975.at("section 3.2, the first part exact for exponential service"),
)

loop_waiting_time = Equation(
    "mean time a request of a closed loop waits before its prompt is read",
    T_wait,
    (1 - kappa) * (B / one_seq - x_own) * x_pf * T_pf_busy,
    assumes=(
        "the prompts of others that a request does not await while it decodes it awaits before: "
        "with B in flight, B/X is the time from its arrival to its end",
        "kappa = 1 for prompts read as they come, 1/2 where all are read before decoding goes on",
    ),
    source=little_1961.at("with the throughput identity"),
)

requests_waiting = Equation.of(
    n_wait, x_load * T_wait, ASSUME_STEADY_STATE, source=little_1961.at("the theorem, of the queue")
)

requests_in_flight = Equation.of(
    n_inside,
    x_load * (T_wait + T_ttft + L_dec * one_seq * T_tpot),
    ASSUME_STEADY_STATE,
    "those that wait are counted",
    source=little_1961.at("the theorem, of the whole replica"),
)

flight_spread = Equation.of(
    x_var,
    1 / (1 - e_T),
    "Poisson arrivals, each decoded at once; in steady state n of them are n/(x T(n)) times "
    "as rare as n - 1, whatever the spread of the outputs",
    "T(n), the time per output token, grows as a power of n between the n that occur; a time "
    "that does not grow leaves a Poisson number",
    source=derived,
)

decoding_sequences = Equation.of(
    n_dealt,
    x_load * L_dec * one_seq * T_tpot / dp,
    ASSUME_STEADY_STATE,
    "requests are dealt to ranks at random, and each takes the time that it takes among as many",
    source=little_1961.at("the theorem, of those that decode"),
)

flight_growth = Equation.of(
    e_T,
    n_dealt * dp / (n_dealt * dp + n_flat),
    "T(n) has a part that grows as n and one that does not; a negative binomial is exact then",
    source=derived,
)

context_spread = Equation.of(
    v_ctx,
    sqrt((L_in * v_in) ** 2 + L_out**2 * ((1 + v_out**2) ** 3 / 3 - (1 + v_out**2) ** 2 / 4))
    / L_ctx,
    "lengths are log-normal; those of a prompt and of its answer are independent",
    "a request is met at an even moment of its answer, and at a long answer the more often",
    source=derived,
)

reading_spread = Equation.of(
    x_read,
    1 + ((1 + (r_pf * v_in) ** 2) / (1 - r_pf) ** 2 - 1) / (1 + v_out / 2),
    "while prompts are read nothing decodes: n that come in the time of one answer lengthen it by "
    "n T_pf, so that more or fewer of them than the mean count 1/(1 - r) times, and the spread of "
    "their lengths counts as well",
    "times of prompts go as their lengths",
    "of two log-normal answers the shorter is on average at most 1/(1 + v/2) of the mean: only as "
    "far as answers overlap whatever delays one delays the other",
    source=derived,
)

reading_line = Equation.of(
    n_read,
    one_seq * r_pf**2 * (1 + (r_pf * v_in) ** 2) / ((1 - r_pf) ** 2 * (1 + r_pf)),
    "a step reads the prompts that came in the last, so that its time is correlated with those "
    "of the steps before; long steps are those among many, and count as long as they last",
    "times of prompts go as their lengths",
    source=derived,
)

met_sequences = Equation.of(
    n_met,
    n_dealt + one_seq * (x_var - 1) * (1 / dp + x_read - 1) + n_read,
    "steps among many last longer, and count as long: beyond the mean of the steps lies the "
    "elasticity times the variance over the mean; without prompts that is the negative binomial",
    "steps of ranks take one time, prompts of a rank delay that rank",
    source=derived,
)

room_spread = Equation.of(
    x_need,
    1 + (x_var - 1) / dp + x_var * (x_read - 1) + v_ctx**2,
    "contexts in flight are independent of each other and of how many there are",
    "each rank gets a random part of the requests",
    source=derived,
    where=(flight_spread, reading_spread, context_spread),
)

CAPACITY_EQUATIONS = (
    decoding_sequences, flight_growth, flight_spread, reading_spread, reading_line, met_sequences,
    context_spread, room_spread,
)  # fmt: skip

prefix_hits = Equation.of(
    x_hit,
    x_same * minimum(1, n_room * n_where / n_conv),
    "conversations are met alike, and the least recently used go first",
    "room is what memory holds at the mean context, of those that decode as well",
    source=derived,
)

QUEUE = (
    prompt_occupancy,
    square_share,
    occupancy_spread,
    reader_utilisation,
    reading_share,
    reading_step,
    heavy_line,
    line_time,
    joining_room,
    shared_step,
    joining_time,
    waiting_time,
)
