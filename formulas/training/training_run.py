"""What a training layout is worth: tokens per second, MFU, days, energy and money of a run.

Each follows from the time of one optimiser step; the goodput is one where no failures are counted.
"""

from formulas.algebra.notation import *

CAUSAL = "of attention the causal half is counted"
ALL_PAID = "idle chips are paid as well"

trained_rate = Equation.of(X_train, D_opt_step / T_opt)

trained_rate_per_chip = Equation.of(X_train_c, D_opt_step / (T_opt * n_paid), ALL_PAID)

model_utilisation = Equation.of(
    mfu,
    C_step / (T_opt * n_train * F_train),
    CAUSAL,
    "of the chips that the layout uses",
    source=chowdhery_2022.at("section 4.1"),
)

hardware_utilisation = Equation.of(
    hfu,
    (C_step + C_again) / (T_opt * n_train * F_train),
    CAUSAL,
    "what runs forward again counts",
    source=korthikanti_2022.at("section 6.3"),
)

training_run_time = Equation.of(
    T_run, T_opt * D_run / (D_opt_step * x_good), "failures and checkpoints leave the goodput"
)

training_power = Equation.of(
    P_train,
    x_site * minimum(P_most, P_idle + hfu * P_peak) / one_chip,
    "a chip draws what it does idle, and arithmetic in proportion, up to what it is rated for",
    "memory and network draw no more than when idle",
)

training_token_energy = Equation.of(
    e_train, P_train * n_paid * T_opt / (D_opt_step * x_good), ALL_PAID
)

training_run_energy = Equation.of(E_run_all, e_train * D_run)

training_token_cost = Equation.of(
    w_train,
    n_paid * p_chip * T_opt / (D_opt_step * x_good) + e_train * p_joule,
    ALL_PAID,
    "electricity is paid on top of the rent where it has a price",
    where=(training_token_energy,),
)

training_run_cost = Equation.of(K_run, w_train * D_run, where=(training_token_cost,))
