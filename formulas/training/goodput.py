"""How often to save, and what failures cost a training run.

A failure of any chip stops all of them: the work since the last checkpoint is done again, after a
restart. What is lost is taken to first order in the losses, which is where runs are.
"""

from formulas.algebra.notation import *

ASSUME_RARE_FAILURES = "failures are rare: at most one between two checkpoints"
ANY_CHIP = "chips fail independently, at a constant rate, and one failure stops all of them"

time_between_failures = Equation.of(M_run, M_fail / n_train, ANY_CHIP)

saving_share = Equation.of(x_saving, t_save / tau_save, "a save holds up training")

repeated_share = Equation.of(
    x_redo,
    tau_save / (2 * M_run),
    ASSUME_RARE_FAILURES,
    "a failure is as likely at any time, so that half of an interval is lost on average",
)

restart_share = Equation.of(x_restart, t_again / M_run, ASSUME_RARE_FAILURES)

failure_loss = Equation.of(
    x_failed,
    t_save / tau_save + tau_save / (2 * M_run) + t_again / M_run,
    ASSUME_RARE_FAILURES,
    source=young_1974.at("equation 1"),
)

best_checkpoint_interval = derive(
    "time between checkpoints that loses least",
    begin(failure_loss),
    stationary(tau_save, "saving more often costs as much as it rescues"),
    solve(tau_save, sqrt(2 * t_save * M_run)),
    source=young_1974.at("equation 2"),
    assumes=(ASSUME_RARE_FAILURES,),
)

least_failure_loss = derive(
    "share of the time that failures and checkpoints take, at the best interval",
    begin(failure_loss),
    substitute(best_checkpoint_interval, why="saving and repeating lose equally much"),
    rewrite(
        (t_again + sqrt(2 * t_save * M_run)) / M_run, why="what one failure costs, and how often"
    ),
    source=young_1974.at("equation 2"),
    assumes=(ASSUME_RARE_FAILURES,),
)

goodput_share = Equation.of(
    x_good,
    1 - least_failure_loss.rhs,
    ASSUME_RARE_FAILURES,
    "checkpoints are saved at the best interval",
    where=(time_between_failures,),
)
