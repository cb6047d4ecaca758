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
# fmt: on
