"""Arrivals: how busy the readers of prompts are, and how long a request waits for one.

A rank reads one prompt after the other, first come, first served; what is not yet read waits. In
one pool each chunk of a prompt shares its step with the decoding sequences, so reading takes the
prompt's own time and that of the decode steps it rides on. Requests are dealt to the ranks at
random, which leaves each a Poisson stream: an M/G/1 queue, whose server looks for work only when
a step begins and hands over all prompts of a chunk at once.

Against a simulation of the steps (chunks of half a prompt to eight, prompts of one length to those
as spread as an exponential distribution, readers 30 to 80 % busy) the mean time to first token is
within 12 % and mostly within 5 %; its 95th and 99th percentiles are between 7 % too short and 26 %
too long. Without `joining_time` the mean was up to 45 % too short. The ranks are independent here:
where an engine makes all of them wait for the slowest, prompts of one delay all.
"""

from formulas.algebra.notation import *

HALF = Rational(1, 2)
FIRST_COME = "requests are dealt to ranks at random and read first come, first served"
STEADY = "a steady state"
SERVED = little_1961.at("the number served, of one server")

prompt_occupancy = Equation.of(
    S_occ,
    T_pf_busy * dp + s_mixed * L_new * T_dec / (c_chunk * pp),
    "chunks are filled across prompts, and each shares its step with the decoding sequences",
    "stages of a pipeline read several prompts at once",
)

reader_utilisation = Equation.of(rho_pf, x_load * S_occ / (dp * one_seq), FIRST_COME, source=SERVED)

reading_share = Equation.of(
    r_pf,
    x_load * T_pf_busy / one_seq,
    "stages and ranks work on prompts of their own",
    source=SERVED,
)

line_time = Equation.of(
    T_line,
    rho_pf * S_occ * (1 + v_occ**2) / (2 * (1 - rho_pf)),
    FIRST_COME,
    "Poisson arrivals",
    "rho_pf < 1",
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
    assumes=(FIRST_COME, "Poisson arrivals", "rho_pf < 1"),
)

waiting_quantile = Equation.of(
    T_tail,
    sqrt(
        (T_line * log(rho_pf / x_tail) / rho_pf + 2 * T_join) ** 2
        + (v_occ * S_occ * (log(1 / x_tail) - 1)) ** 2
    ),
    FIRST_COME,
    "those who wait in line at all do so for an exponentially distributed time",
    "the delay by steps is evenly distributed, at most twice its mean",
    "x_tail <= rho_pf; fewer wait in line otherwise",
    "an own prompt longer than the mean, as exponentially spread ones are, comes on top; the "
    "two are independent, and their squares add",
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
    n_wait, x_load * T_wait, STEADY, source=little_1961.at("the theorem, of the queue")
)

requests_in_flight = Equation.of(
    n_inside,
    x_load * (T_wait + T_ttft + L_dec * one_seq * T_tpot),
    STEADY,
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

QUEUE = (
    prompt_occupancy,
    reader_utilisation,
    reading_share,
    line_time,
    joining_room,
    joining_time,
    waiting_time,
)
