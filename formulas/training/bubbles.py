"""How long a stage of a training pipeline waits, under each of four schedules.

A stage works the same time under all of them: `n_micro` forward passes, gradients of the inputs and
gradients of the weights. What differs is what fills the time until the pipeline is full and after
it has begun to drain.
"""

from formulas.algebra.notation import *

ASSUME_EQUAL_STAGES = "stages take equal time; sending between them takes none"
FLUSH = "no microbatch of the next optimiser step starts before all of this one are done"

pipeline_work = Equation.of(T_busy, n_micro * (t_fwd + t_bwd + t_wgt), ASSUME_EQUAL_STAGES)

bubble_time = Equation(
    "wait of a stage, GPipe and 1F1B",
    T_bubble,
    (n_stages - 1) * (t_fwd + t_bwd + t_wgt),
    assumes=(ASSUME_EQUAL_STAGES, FLUSH),
    source=gpipe_2018.at("section 2.3"),
)

bubble_time_interleaved = Equation(
    "wait of a stage, interleaved 1F1B",
    T_bubble,
    (n_stages - 1) * (t_fwd + t_bwd + t_wgt) / n_virtual,
    assumes=(ASSUME_EQUAL_STAGES, FLUSH, "n_micro is a multiple of n_stages"),
    source=narayanan_2021.at("section 2.2.2"),
)

bubble_time_zb_h1 = Equation(
    "wait of a stage, zero-bubble ZB-H1",
    T_bubble,
    (n_stages - 1) * (t_fwd + t_bwd - t_wgt),
    assumes=(
        ASSUME_EQUAL_STAGES,
        when(n_micro >= n_stages),
        when(t_wgt <= t_fwd),
        when(t_wgt <= t_bwd),
        "gradients of the weights wait until the stage has nothing else to do; memory as 1F1B",
    ),
    source=qi_2023.at("table 2"),
)

bubble_time_zb_h2 = Equation(
    "wait of a stage, zero-bubble ZB-H2",
    T_bubble,
    (n_stages - 1) * (t_fwd + t_bwd - 2 * t_wgt),
    assumes=(
        ASSUME_EQUAL_STAGES,
        when(n_micro >= 2 * n_stages - 1),
        when(2 * t_wgt <= t_fwd + t_bwd),
        "the optimiser step is checked afterwards, not waited for; about twice the activations",
    ),
    source=qi_2023.at("table 2"),
)

bubble_share = derive(
    "share of an optimiser step that a stage waits, GPipe and 1F1B",
    begin(x_bubble, T_bubble / (T_bubble + T_busy), why="waiting over waiting and working"),
    substitute(bubble_time),
    substitute(pipeline_work),
    rewrite(
        (n_stages - 1) / (n_micro + n_stages - 1),
        why="what a microbatch costs cancels: only how many there are counts",
    ),
    source=lecture_hardware.at("section 4, the bubble problem"),
    assumes=bubble_time.assumes,
)

bubble_share_interleaved = derive(
    "share of an optimiser step that a stage waits, interleaved 1F1B",
    begin(x_bubble, T_bubble / (T_bubble + T_busy), why="waiting over waiting and working"),
    substitute(bubble_time_interleaved),
    substitute(pipeline_work),
    rewrite(
        (n_stages - 1) / (n_virtual * n_micro + n_stages - 1),
        why="as many virtual stages as if there were that many times the microbatches",
    ),
    source=narayanan_2021.at("section 2.2.2"),
    assumes=bubble_time_interleaved.assumes,
)

bubble_to_work = derive(
    "waiting over working time of a stage, GPipe and 1F1B",
    begin(y_bubble, T_bubble / T_busy, why="relative to the work, not to the whole step"),
    substitute(bubble_time),
    substitute(pipeline_work),
    source=gpipe_2018.at("section 2.3"),
    assumes=bubble_time.assumes,
)

bubble_to_work_interleaved = derive(
    "waiting over working time of a stage, interleaved 1F1B",
    begin(y_bubble, T_bubble / T_busy, why="relative to the work, not to the whole step"),
    substitute(bubble_time_interleaved),
    substitute(pipeline_work),
    source=narayanan_2021.at("section 2.2.2"),
    assumes=bubble_time_interleaved.assumes,
)

zero_bubble = derive(
    "gradient time of the weights at which ZB-H2 leaves no bubble",
    begin(t_fwd + t_bwd, 2 * t_wgt, why="the wait of ZB-H2 is zero"),
    solve(t_wgt, (t_fwd + t_bwd) / 2),
    source=qi_2023.at("section 2"),
    assumes=bubble_time_zb_h2.assumes,
)
