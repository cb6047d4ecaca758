"""A step of reinforcement learning: rollouts with the tail of the longest answer, then training.

Answers end at random: a token ends one with the same chance whatever its length, and what is longer
than a limit is cut off there. On policy the two pools wait for each other; off policy by a step
they work side by side.
"""

from formulas.algebra.notation import *

MEMORYLESS = "any token is the last one with the same chance, up to a limit"
INDEPENDENT = "answers end independently of each other"

ended_share = Equation.of(U_cap, 1 - exp(-L_most / theta_ans), MEMORYLESS)

mean_answer = Equation.of(L_ans, theta_ans * U_cap, MEMORYLESS)

longest_answer = Equation.of(
    L_last,
    theta_ans * S_order,
    MEMORYLESS,
    INDEPENDENT,
    "without a limit the sum is the harmonic number of the answers",
    source=renyi_1953.at("section 1, spacings of exponential variables"),
)

tokens_with_so_many_left = Equation.of(
    L_alive,
    theta_ans * I_alive / n_alive,
    MEMORYLESS,
    INDEPENDENT,
    "of j answers left the next one ends j times as soon",
    source=renyi_1953.at("section 1, spacings of exponential variables"),
)

rollout_time = Equation.of(
    T_roll,
    (n_ans_r / B_ans - 1) * L_ans * t_full + T_ending + (L_last - L_last_r) * t_one,
    "an answer that ends makes room for the next one until none is left",
    "the replica with the longest answer of all writes it alone at the end",
    "prompts are short beside the answers",
)

steady_rollout_time = Equation(
    "time of the rollouts of a step, several steps in flight",
    T_roll,
    n_ans_r / B_ans * L_ans * t_full,
    ("answers of several steps are in flight, and begin as others end: no replica runs empty",),
    definition,
)

learning_time = Equation.of(
    T_learn,
    n_upd * (T_opt + n_fwd * T_layers / 3),
    "a forward pass is a third of the passes of a training step",
)

weight_transfer = Equation.of(
    T_synced, W_sent / (g_roll * R_sent), "all weights to every replica, its chips side by side"
)

FRAMEWORK = "a framework slows each pool by a factor, and adds a time that neither has"

step_in_turn = Equation.of(
    T_rl,
    x_roll * T_roll + x_learn * T_learn + T_beside + T_synced,
    "on policy: rollouts wait for the weights that they are of",
    FRAMEWORK,
)

step_side_by_side = Equation(
    "time of one step of reinforcement learning, off policy by a step",
    T_rl,
    maximum(x_roll * T_roll, x_learn * T_learn + T_beside) + T_synced,
    (
        "off policy by a step: rollouts of the next step run beside all that is done with these",
        FRAMEWORK,
    ),
    definition,
)

step_in_flight = Equation(
    "time of one step of reinforcement learning, several steps in flight",
    T_rl,
    maximum(x_roll * T_roll, x_learn * T_learn) + T_synced,
    (
        "off policy by several steps: rewards and data of other steps are behind both pools",
        FRAMEWORK,
    ),
    definition,
)

step_cost = Equation.of(K_rl, n_paid * p_chip * T_rl, "chips of both pools are paid, idle or not")
