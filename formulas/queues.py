"""Open arrivals: how busy the readers of prompts are, and how long a request waits for one.

A rank reads one prompt after the other, first come, first served; what is not yet read waits. In
one pool each chunk of a prompt shares its step with the decoding sequences, so reading takes the
prompt's own time and that of the decode steps it rides on. Requests are dealt to the ranks at
random, which leaves each a Poisson stream: an M/G/1 queue.
"""

from sympy import log

from formulas.equation import Equation
from formulas.sources import definition, kleinrock_1975, little_1961
from formulas.symbols_pools import (
    S_occ,
    T_tail,
    T_wait,
    n_inside,
    n_wait,
    rho_pf,
    v_occ,
    x_load,
    x_tail,
)
from formulas.symbols_serving import (
    L_dec,
    L_new,
    T_dec,
    T_pf_busy,
    T_tpot,
    T_ttft,
    c_chunk,
    dp,
    one_seq,
    pp,
    s_mixed,
)

__all__ = [
    "QUEUE",
    "prompt_occupancy",
    "reader_utilisation",
    "requests_in_flight",
    "requests_waiting",
    "waiting_quantile",
    "waiting_time",
]

FIRST_COME = "requests are dealt to ranks at random and read first come, first served"

prompt_occupancy = Equation(
    "time a prompt occupies the rank that reads it",
    S_occ,
    T_pf_busy * dp + s_mixed * L_new * T_dec / (c_chunk * pp),
    assumes=(
        "chunks are filled across prompts, and each shares its step with the decoding sequences",
        "stages of a pipeline read several prompts at once",
    ),
    source=definition,
)

reader_utilisation = Equation(
    "share of time a rank has a prompt to read",
    rho_pf,
    x_load * S_occ / (dp * one_seq),
    assumes=(FIRST_COME,),
    source=little_1961,
)

waiting_time = Equation(
    "mean time a request waits before its prompt is read",
    T_wait,
    rho_pf * S_occ * (1 + v_occ**2) / (2 * (1 - rho_pf)),
    assumes=(FIRST_COME, "Poisson arrivals", "rho_pf < 1"),
    source=kleinrock_1975.at("section 5.6, the Pollaczek-Khinchine mean-value formula"),
)

waiting_quantile = Equation(
    "waiting time that a given share of the requests exceed",
    T_tail,
    T_wait * log(rho_pf / x_tail) / rho_pf,
    assumes=(
        FIRST_COME,
        "those who wait at all do so for an exponentially distributed time",
        "x_tail <= rho_pf; fewer wait at all otherwise",
    ),
    source=kleinrock_1975.at("section 3.2, exact for exponential service"),
)

requests_waiting = Equation(
    "requests that wait, on average",
    n_wait,
    x_load * T_wait,
    assumes=("a steady state",),
    source=little_1961,
)

requests_in_flight = Equation(
    "requests in flight, on average",
    n_inside,
    x_load * (T_wait + T_ttft + L_dec * one_seq * T_tpot),
    assumes=("a steady state", "those that wait are counted"),
    source=little_1961,
)

QUEUE = (prompt_occupancy, reader_utilisation, waiting_time)
