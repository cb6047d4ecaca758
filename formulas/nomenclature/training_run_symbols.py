"""Symbols of a training run: what a step is worth, failures, checkpoints, days and money.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

# what one optimiser step does
T_opt     = _symbol("T_opt",     "s",                  "time of one optimiser step")
D_opt_step = _symbol("D_opt_step", "token",              "tokens of one optimiser step")
D_run     = _symbol("D_run",     "token",              "tokens of a whole training run")
C_step    = _symbol("C_step",    "flop",               "arithmetic of the model in one optimiser step, the causal half of attention")
C_again   = _symbol("C_again",   "flop",               "arithmetic that one optimiser step runs forward again")
F_train   = _symbol("F_train",   "flop/(chip*s)",      "dense peak of one chip in the format of the matrix products")
n_train   = _symbol("n_train",   "chip",               "chips that a layout uses")
n_paid    = _symbol("n_paid",    "chip",               "chips that are paid, the idle ones too")
X_train   = _symbol("X_train",   "token/s",            "tokens trained on per second, without failures")
X_train_c = _symbol("X_train_c", "token/(chip*s)",     "tokens trained on per second and paid chip, without failures")
mfu       = _symbol("mfu",       "1",                  "model FLOP utilisation", r"\mathrm{MFU}")
hfu       = _symbol("hfu",       "1",                  "hardware FLOP utilisation", r"\mathrm{HFU}")

# failures and checkpoints
M_fail    = _symbol("M_fail",    "chip*s",             "mean time between failures of one chip")
M_run     = _symbol("M_run",     "s",                  "mean time between failures of all chips of a run")
t_save    = _symbol("t_save",    "s",                  "time that saving a checkpoint holds up training")
t_again   = _symbol("t_again",   "s",                  "time from a failure until training goes on")
tau_save  = _symbol("tau_save",  "s",                  "time between two checkpoints")
x_saving   = _symbol("x_saving",  "1",                  "share of the time that saving checkpoints takes")
x_redo    = _symbol("x_redo",    "1",                  "share of the time whose work a failure undoes")
x_restart = _symbol("x_restart", "1",                  "share of the time that restarts take")
x_failed  = _symbol("x_failed",  "1",                  "share of the time that failures and checkpoints take")
x_good    = _symbol("x_good",    "1",                  "goodput: share of the time that trains")

# what a run costs
T_run     = _symbol("T_run",     "s",                  "time of a whole training run, failures included")
P_train   = _symbol("P_train",   "J/(chip*s)",         "power of one chip that trains, cooling included")
E_run_all = _symbol("E_run_all", "J",                  "energy of a whole training run")
e_train   = _symbol("e_train",   "J/token",            "energy of training on one token")
K_run     = _symbol("K_run",     "USD",                "cost of a whole training run")
w_train   = _symbol("w_train",   "USD/token",          "cost of training on one token")
P_drawn   = _symbol("P_drawn",  "J/s",                "power of one chip that trains")

# reinforcement learning: answers of random length, and a step of two pools
theta_ans = _symbol("theta_ans", "token",              "mean length of an answer without a limit, lengths falling off exponentially")
L_ans     = _symbol("L_ans",     "token",              "mean length of an answer")
L_most    = _symbol("L_most",    "token",              "length at which an answer is cut off")
U_cap     = _symbol("U_cap",     "1",                  "share of the answers that end before they are cut off")
S_order   = _symbol("S_order",   "1",                  "sum of U^j/j over as many terms as there are answers", r"\sum_j U^j/j")
L_last    = _symbol("L_last",    "token",              "mean length of the longest of all answers of a step")
L_last_r  = _symbol("L_last_r",  "token",              "mean length of the longest answer of one replica")
I_alive   = _symbol("I_alive",   "1",                  "chance that an answer ends, of so many left, before any is cut off (incomplete beta function)")
n_alive   = _symbol("n_alive",   "1",                  "answers of a replica that are still written")
L_alive   = _symbol("L_alive",   "token",              "tokens of each answer written while so many are left")
T_ending  = _symbol("T_ending",  "s",                  "time in which a replica's last full batch of answers ends, one after another")
t_one     = _symbol("t_one",     "s/token",            "time of a decoding step with one answer left")
t_full    = _symbol("t_full",    "s/token",            "time of a decoding step with a full batch of answers")
n_ans_r   = _symbol("n_ans_r",   "1",                  "answers that one replica writes in a step")
B_ans     = _symbol("B_ans",     "1",                  "answers that one replica writes at a time")
T_roll    = _symbol("T_roll",    "s",                  "time of the rollouts of a step")
n_upd     = _symbol("n_upd",     "1",                  "optimiser steps of one step of reinforcement learning")
n_fwd     = _symbol("n_fwd",     "1",                  "forward passes that score the answers: of the policy, of a reference")
T_layers  = _symbol("T_layers",  "s",                  "time of an optimiser step in its passes: without optimiser and exposed reduction")
T_learn   = _symbol("T_learn",   "s",                  "time in which the training pool scores the answers and learns from them")
W_sent    = _symbol("W_sent",    "byte",               "weights that each replica of the rollout pool receives")
g_roll    = _symbol("g_roll",    "chip",               "chips of a replica of the rollout pool")
R_sent    = _symbol("R_sent",    "byte/(chip*s)",      "rate at which a chip receives weights")
T_synced  = _symbol("T_synced",  "s",                  "time in which new weights reach the rollout pool")
x_roll    = _symbol("x_roll",    "1",                  "time of rollouts in a framework over that of its serving engine alone")
x_learn   = _symbol("x_learn",   "1",                  "time of learning in a framework over that of its training stack alone")
T_beside  = _symbol("T_beside",  "s",                  "time of a step of reinforcement learning that neither pool has: rewards, data")
K_rl      = _symbol("K_rl",      "USD",                "cost of one step of reinforcement learning")
T_rl      = _symbol("T_rl",      "s",                  "time of one step of reinforcement learning")
# fmt: on
