"""Traffic of expert parallelism: bytes to the experts and back, and what leaving the rack costs.

Whether an expert group should leave its rack: fewer weights to read against a slower exchange.

Twice the chips hold half the experts each, which saves time whatever the batch; the exchange over
racks costs more for every position. Below a batch, or above a size of experts, crossing pays.
"""

from formulas.algebra.notation import *

UNIFORM = "experts lie evenly over chips, and tokens pick them evenly"
RACKS = lecture_hardware.at("section 3, why crossing rack boundaries is a problem")

expert_layer_bytes = Equation.of(
    V_layer,
    k_experts * h_exp * (b_disp + b_comb) * (1 - 1 / n_group),
    UNIFORM,
    "each of its experts lies on a chip of its own: an upper bound, which routing limited to "
    "a few nodes undercuts",
    source=deepseek_v3.at("section 3.2.2, dispatch and combine"),
)

expert_bytes = Equation.of(
    V_pos,
    n_moe * V_layer,
    "every layer with experts exchanges the same",
    source=lecture_notes.at("section 2, up- and down-projection halves"),
    where=(expert_layer_bytes,),
)

expert_exchange_time = Equation.of(
    T_moe,
    B * m_pos * V_pos / (n_group * r_up),
    UNIFORM,
    "every chip sends its share at the rate of its link; no latency, no overlap",
    source=lecture_notes.at("section 2, the all-to-all pattern"),
    where=(expert_bytes,),
)

experts_per_chip = Equation.of(
    n_held,
    n_experts / n_group,
    "experts lie evenly over chips; where this is no integer they cannot",
    source=RACKS,
)

fullest_chip = Equation.of(
    u_ep,
    ceiling(n_experts / n_group) * n_group / n_experts,
    "no expert in two copies",
    "tokens pick experts evenly",
    source=derived,
)

slowdown = Equation.of(x_slow, r_up / r_out, "rates of one chip, one way")

crossing_share = Equation.of(
    f_cross, (n_span - 1) / n_span, UNIFORM, when(n_span >= 1), source=RACKS
)

scale_out_penalty = derive(
    "time of an exchange over several racks, over that within one",
    begin(
        x_pen,
        maximum((1 - f_cross) / r_up, f_cross / r_out) * r_up,
        why="what stays in the rack, what leaves it, each at its rate",
    ),
    substitute(crossing_share),
    rewrite(
        maximum(1 / n_span, x_slow * (n_span - 1) / n_span),
        why="in terms of how much slower the outer network is",
        where=(slowdown,),
    ),
    source=RACKS,
    assumes=(
        UNIFORM,
        "both networks run at once, and the slower one decides",
        "the same bytes per chip as within one rack",
    ),
)

break_even_slowdown = derive(
    "slowdown up to which leaving the rack costs nothing",
    begin(
        x_slow * (n_span - 1) / n_span, 1, why="the exchange over racks takes as long as within one"
    ),
    solve(x_slow, n_span / (n_span - 1), named=x_even),
    source=RACKS,
    assumes=(*scale_out_penalty.assumes, when(n_span > 1)),
)

racks_that_recover = derive(
    "racks at which a layer spread over racks is as fast as within one",
    begin(
        x_slow * (n_span - 1) / n_span / n_span,
        1,
        why="each chip has less to send, most of it over the slower network",
    ),
    solve(n_span, (x_slow + sqrt(x_slow**2 - 4 * x_slow)) / 2, named=n_even),
    assumes=(
        "the batch of one rack, divided over n_span racks",
        when(x_slow >= 4, why="at a smaller slowdown two racks are as fast already"),
        when(n_span >= 2, why="with fewer the slower network carries less than half"),
    ),
)

READ = "every expert that a chip holds is read once per step, as at large batch"
LINEAR = "an exchange takes a floor and a time per position"

experts_spared = Equation.of(
    n_spare,
    n_experts / n_inner - n_experts / n_outer,
    "experts lie evenly over chips",
    when(n_outer > n_inner),
    source=RACKS,
)

reading_saved = Equation.of(T_saved, n_spare * s_expert / W_chip, READ, source=RACKS)

exchange_lost = Equation.of(T_lost, t_more + n_own * x_more, LINEAR, source=RACKS)

crossing_expert = derive(
    "weights of one expert from which leaving the rack pays",
    begin(
        n_spare * s_expert / W_chip,
        t_more + n_own * x_more,
        why="what is not read makes up for what is exchanged more slowly",
    ),
    solve(s_expert, W_chip * (t_more + n_own * x_more) / n_spare, named=s_even),
    assumes=(READ, LINEAR, "reading and exchange follow one another"),
)

crossing_batch = derive(
    "positions of a chip up to which leaving the rack pays",
    begin(
        crossing_expert.steps[0].lhs,
        crossing_expert.steps[0].rhs,
        why="the same balance",
        of=crossing_expert.steps[0].used,
    ),
    solve(n_own, (n_spare * s_expert / W_chip - t_more) / x_more, named=n_tie),
    assumes=(*crossing_expert.assumes, "the larger group's floor is below what it saves"),
)
