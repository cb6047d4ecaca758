"""The train schedule: steps that depart at fixed intervals, what a request waits, what racks emit.

The wait is that of the first step alone: no prefill, no token after the first.
"""

from formulas.algebra.notation import *
from formulas.roofline.kvcache import largest_batch
from formulas.roofline.roofline import drain_time, latency_floor, memory_time

TRAIN = "a step departs every T_step, full or not, and takes T_step"
CAPACITY = "the next departure has room"
POISSON = "Poisson arrivals"
SCHEDULE = lecture_notes.at("section 1, the train schedule")

full_memory_step = derive(
    "time to read a memory that weights and caches fill",
    begin(memory_time),
    substitute(
        Equation("batch that fills the memory", B, largest_batch.rhs, largest_batch.assumes),
        why="weights and caches together are the whole memory",
    ),
    rewrite(T_drain, why="reading all of it once", where=(drain_time,)),
    source=SCHEDULE,
    assumes=("the batch fills the memory; each byte is read once per step",),
)

floor_over_drain = derive(
    "least time of a step over the drain time",
    begin(x_floor, T_floor / T_drain, why="how far below the drain time a step can go"),
    substitute(latency_floor),
    substitute(
        drain_time,
        why="the share of the memory that weights take: below one wherever caches have room",
    ),
    source=lecture_hardware.at("section 2, the train station metaphor"),
    assumes=(when(N_total * b_w <= M, why="the weights fit"),),
)

arrival_wait = Equation.of(
    T_arr, T_step * (1 - u_arr) + T_step, TRAIN, CAPACITY, when(u_arr <= 1), source=SCHEDULE
)

longest_wait = derive(
    "longest time from arrival to the end of the first step",
    begin(T_worst, T_arr, why="the longest such time"),
    substitute(arrival_wait),
    limit(u_arr, 0, 2 * T_step, why="the request arrives just after a departure"),
    source=SCHEDULE,
    assumes=(TRAIN, CAPACITY),
)

mean_wait = derive(
    "mean time from arrival to the end of the first step",
    begin(arrival_wait),
    mean(
        u_arr,
        Uniform(Integer(0), Integer(1)),
        3 * T_step / 2,
        "half an interval on the platform, one on the train",
        named=T_avg,
    ),
    source=SCHEDULE,
)

longest_wait_full = Equation(
    "longest time from arrival to the end of the first step, when departures are full",
    T_worst,
    (2 + j_full) * T_step,
    assumes=(TRAIN, "j_full departures in a row leave full"),
    source=SCHEDULE,
)

seats_taken = Equation.of(
    rho_seat, lam_arr * T_step / K_seats, "nobody gives up waiting", when(rho_seat < 1)
)

left_behind = Equation.of(
    Q_left,
    one_seq
    * (
        S_root
        - (K_seats / one_seq * (K_seats / one_seq - 1) - (rho_seat * K_seats / one_seq) ** 2)
        / (2 * K_seats / one_seq * (1 - rho_seat))
    ),
    POISSON,
    "who finds no seat is the first to board the next departure",
    when(rho_seat < 1),
    source=bailey_1954.at("the mean queue of bulk service"),
)

mean_time_seated = Equation(
    "mean time from arrival to the end of the ride, with so many seats",
    T_avg,
    3 * T_step / 2 + Q_left / lam_arr,
    assumes=(TRAIN, POISSON),
    source=little_1961.at("what is left behind, over what arrives, is a wait"),
)

trains_per_second = Equation.of(f_train, 1 / T_step, "one step follows the other without a pause")

rack_throughput = Equation.of(
    X_rack, B * g / T_step, "one step follows the other: no prefill on the rack", source=SCHEDULE
)

racks_of_service = Equation.of(
    n_racks,
    X_world / X_rack,
    "every rack is full all the time",
    source=SCHEDULE,
    where=(rack_throughput,),
)

rack_memory = Equation.of(
    M_rack,
    n_domain * M_each,
    "all chips alike, each with what the vendor lists",
    source=lecture_equations.at("one rack, one layer of experts"),
)
