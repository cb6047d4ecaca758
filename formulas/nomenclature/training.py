"""Symbols of training: arithmetic, pipelines, scaling laws, token budgets, activations.

Registered in the one nomenclature, see `formulas.nomenclature.symbols`. Arithmetic is in FLOP; that of
phases that run below the efficiency of pre-training is what pre-training would have done in their
time. A prefactor that ends in "at one FLOP" is what a power law gives there: a number to be
multiplied, not a model that anyone trained.
"""

from formulas.nomenclature.symbols import symbol as _symbol

# fmt: off
# ruff: noqa: E501  (a table reads better whole)

# training: arithmetic
c_bwd     = _symbol("c_bwd",     "flop/(param*token)", "arithmetic per active parameter and token, backward")
c_rl      = _symbol("c_rl",      "flop/(param*token)", "arithmetic of reinforcement learning per active parameter and token")
D_pt      = _symbol("D_pt",      "token",              "tokens of pre-training")
D_rl      = _symbol("D_rl",      "token",              "tokens of reinforcement learning")
D_inf     = _symbol("D_inf",     "token",              "tokens served over a model's life")
q_pull    = _symbol("q_pull",    "1",                  "what one percent of size takes off the loss, over what one percent of tokens does")
L_train   = _symbol("L_train",   "token/seq",          "length of the sequences trained on")
x_causal  = _symbol("x_causal",  "1",                  "share of the query-key pairs that is computed")
C_pt      = _symbol("C_pt",      "flop",               "arithmetic of pre-training")
C_rl      = _symbol("C_rl",      "flop",               "arithmetic of reinforcement learning, in the worth of pre-training")
C_inf     = _symbol("C_inf",     "flop",               "arithmetic of serving, in the worth of pre-training")
C_all     = _symbol("C_all",     "flop",               "arithmetic of all phases, in the worth of pre-training")
eta_rl    = _symbol("eta_rl",    "1",                  "efficiency of reinforcement learning over that of pre-training", r"\eta_{\mathrm{rl}}")
eta_inf   = _symbol("eta_inf",   "1",                  "efficiency of serving over that of pre-training", r"\eta_{\mathrm{inf}}")

# training: a pipeline
n_micro   = _symbol("n_micro",   "1",                  "microbatches of one optimiser step")
n_virtual = _symbol("n_virtual", "1",                  "virtual stages per pipeline stage")
t_fwd     = _symbol("t_fwd",     "s",                  "forward pass of one microbatch through one stage")
t_bwd     = _symbol("t_bwd",     "s",                  "gradients of the inputs, one microbatch and stage")
t_wgt     = _symbol("t_wgt",     "s",                  "gradients of the weights, one microbatch and stage")
T_busy    = _symbol("T_busy",    "s",                  "time a stage works in one optimiser step")
T_bubble  = _symbol("T_bubble",  "s",                  "time a stage waits in one optimiser step")
x_bubble  = _symbol("x_bubble",  "1",                  "share of the optimiser step that a stage waits")
y_bubble  = _symbol("y_bubble",  "1",                  "waiting over working time of a stage")

# scaling laws
loss      = _symbol("loss",      "1",                  "loss per token [nat]", r"\mathcal{L}")
loss_min  = _symbol("loss_min",  "1",                  "loss that no size and no data removes", r"\mathcal{L}_{\infty}")
loss_data = _symbol("loss_data", "1",                  "loss that is left to the data to remove", r"\mathcal{L}_{D}")
A_N       = _symbol("A_N",       "1",                  "loss a model of one parameter would add", "A")
B_D       = _symbol("B_D",       "1",                  "loss a training set of one token would add", r"B_{D}")
alpha_N   = _symbol("alpha_N",   "1",                  "exponent of the parameters", r"\alpha")
beta_D    = _symbol("beta_D",    "1",                  "exponent of the tokens", r"\beta")
one_param = _symbol("one_param", "param",              "one parameter")
N_opt     = _symbol("N_opt",     "param",              "parameters that make the loss least for the arithmetic")
D_opt     = _symbol("D_opt",     "token",              "tokens that make the loss least for the arithmetic")
r_opt     = _symbol("r_opt",     "token/param",        "tokens per parameter of a compute-optimal model")
D_unique  = _symbol("D_unique",  "token",              "tokens that differ from each other")
D_eff     = _symbol("D_eff",     "token",              "fresh tokens worth as much as the repeated ones")
R_half    = _symbol("R_half",    "1",                  "repetitions after which a token has lost all but 1/e of its worth", r"R_{*}")
N_fed     = _symbol("N_fed",     "param",              "parameters for which the distinct tokens are compute-optimal")
N_worth   = _symbol("N_worth",   "param",              "parameters worth as much as those beyond what the data feeds")
R_excess  = _symbol("R_excess",  "1",                  "multiples of N_fed after which a parameter has lost all but 1/e of its worth", r"R_{N*}")
R_pass    = _symbol("R_pass",    "1",                  "reward on held-out tasks")
R_start   = _symbol("R_start",   "1",                  "reward before reinforcement learning")
R_most    = _symbol("R_most",    "1",                  "reward that no amount of reinforcement learning exceeds")
C_mid     = _symbol("C_mid",     "flop",               "arithmetic at which half of the possible gain is reached")
gamma_rl  = _symbol("gamma_rl",  "1",                  "steepness of the gain over the arithmetic", r"\gamma")

# token budgets
q_pt      = _symbol("q_pt",      "1",                  "percent of quality per percent of pre-training")
q_rl      = _symbol("q_rl",      "1",                  "percent of quality per percent of reinforcement learning")
quality   = _symbol("quality",   "1",                  "quality, on any scale that rises with it")
one_flop  = _symbol("one_flop",  "flop",               "one floating-point operation")
knob      = _symbol("knob",      "1",                  "what is chosen", "x")
A_up      = _symbol("A_up",      "flop",               "cost that rises, where the choice is 1", "A")
B_down    = _symbol("B_down",    "flop",               "cost that falls, where the choice is 1", "B")
p_up      = _symbol("p_up",      "1",                  "exponent of the cost that rises", "p")
q_down    = _symbol("q_down",    "1",                  "exponent of the cost that falls", "q")
r_terms   = _symbol("r_terms",   "1",                  "falling cost over rising cost")
eps_pt    = _symbol("eps_pt",    "1",                  "percent of pre-training per percent of model size", r"\varepsilon_{\mathrm{pt}}")
eps_rl    = _symbol("eps_rl",    "1",                  "percent of reinforcement learning per percent of model size", r"\varepsilon_{\mathrm{rl}}")
eps_inf   = _symbol("eps_inf",   "1",                  "percent of serving per percent of model size", r"\varepsilon_{\mathrm{inf}}")
x_over    = _symbol("x_over",    "1",                  "training tokens over the compute-optimal tokens of the same size")
n_pools   = _symbol("n_pools",   "1",                  "pools of equal cost, pre-training among them")
r_all     = _symbol("r_all",     "1",                  "arithmetic of all phases over that of pre-training")
x_shift   = _symbol("x_shift",   "1",                  "percent of training tokens per percent of served tokens, at equal quality")
X_tok     = _symbol("X_tok",     "token/s",            "tokens served by one model per second, everywhere")
t_life    = _symbol("t_life",    "s",                  "time a model is served")
p_ahead   = _symbol("p_ahead",   "1",                  "chance that the model is worth serving")
delta_t   = _symbol("delta_t",   "1/s",                "rate at which later tokens count less", r"\delta")

# activations, and what to keep
x_right   = _symbol("x_right",   "1",                  "right half of a Feistel round's input", "y")
f_left    = _symbol("f_left",    "1",                  "any function of the left half", "f(x)")
y_right   = _symbol("y_right",   "1",                  "half of a Feistel round's output that was changed", "z")
x_1       = _symbol("x_1",       "1",                  "first half of a reversible layer's input")
x_2       = _symbol("x_2",       "1",                  "second half of a reversible layer's input")
y_1       = _symbol("y_1",       "1",                  "first half of a reversible layer's output")
y_2       = _symbol("y_2",       "1",                  "second half of a reversible layer's output")
f_x2      = _symbol("f_x2",      "1",                  "attention, or any function, of the second half of the input", "F(x_2)")
g_y1      = _symbol("g_y1",      "1",                  "feed-forward, or any function, of the first half of the output", "G(y_1)")
A_layer   = _symbol("A_layer",   "byte",               "activations of one layer that its backward pass needs")
A_act     = _symbol("A_act",     "byte",               "activations held at once")
n_seg     = _symbol("n_seg",     "1",                  "layers between two checkpoints")
x_compute = _symbol("x_compute", "1",                  "arithmetic of training over that with every activation kept")
x_memory  = _symbol("x_memory",  "1",                  "activations held over those of a reversible network")
b_made    = _symbol("b_made",    "byte",               "bytes of an intermediate result")
f_made    = _symbol("f_made",    "flop",               "arithmetic that makes the result again")
D_batch   = _symbol("D_batch",   "token",              "tokens of one microbatch")

# size and data together, as Kaplan et al. write it
N_c       = _symbol("N_c",       "param",              "parameters at which the size alone would leave a loss of one")
D_c       = _symbol("D_c",       "token",              "tokens at which the data alone would leave a loss of one")
C_c       = _symbol("C_c",       "flop",               "arithmetic at which the best model would have a loss of one")
alpha_D   = _symbol("alpha_D",   "1",                  "exponent of the loss in tokens, and outside the sum", r"\alpha_{D}")
alpha_C   = _symbol("alpha_C",   "1",                  "exponent of the loss in arithmetic", r"\alpha_{C}")

# routed models
d_route   = _symbol("d_route",   "1",                  "decimal logarithm of the loss that one parameter and one saturated expert would leave", "d")
x_routed  = _symbol("x_routed",  "1",                  "share of a dense model's parameters that routing multiplies by the experts")
N_cut     = _symbol("N_cut",     "param",              "parameters beyond which more experts no longer lower the loss")
G_fine    = _symbol("G_fine",    "1",                  "granularity: feed-forward width of the dense model over that of an expert", "G")
A_fine    = _symbol("A_fine",    "1",                  "loss that coarse experts add to a model of one parameter", "g")
gamma_G   = _symbol("gamma_G",   "1",                  "exponent of the granularity", r"\gamma_{G}")
A_sigma   = _symbol("A_sigma",   "1",                  "loss that sparsity removes, at a sparsity of one", "c")
lambda_S  = _symbol("lambda_S",  "1",                  "exponent with which sparsity removes it", r"\lambda")
A_mix     = _symbol("A_mix",     "1",                  "loss that a model of one parameter adds by being sparse, at a sparsity of one", "d")
delta_S   = _symbol("delta_S",   "1",                  "exponent of the sparsity in it", r"\delta")
gamma_S   = _symbol("gamma_S",   "1",                  "exponent of the parameters in it", r"\gamma")

delta_E   = _symbol("delta_E",   "1",                  "exponent with which experts lower the term of the size", r"\delta_{E}")
gamma_E   = _symbol("gamma_E",   "1",                  "what experts take from the exponent of the parameters", r"\gamma_{E}")
omega_E   = _symbol("omega_E",   "1",                  "exponent with which experts raise the term of the data", r"\omega_{E}")
zeta_E    = _symbol("zeta_E",    "1",                  "what experts add to the exponent of the tokens", r"\zeta_{E}")

# repeated data
D_seen    = _symbol("D_seen",    "token",              "distinct tokens that a training run sees")
n_pass    = _symbol("n_pass",    "1",                  "passes over the distinct tokens")
x_worth   = _symbol("x_worth",   "1",                  "worth of the passes, in fresh data sets")
r_bend    = _symbol("r_bend",    "1",                  "percent of worth per percent of passes")
k_convex  = _symbol("k_convex",  "1",                  "how fast that ratio falls with the logarithm of the passes")

# reinforcement learning in a loss
B_rl      = _symbol("B_rl",      "1",                  "loss that one token of reinforcement learning would leave", r"B_{\mathrm{rl}}")
beta_rl   = _symbol("beta_rl",   "1",                  "exponent of the tokens of reinforcement learning", r"\beta_{\mathrm{rl}}")

# allocation by rule
k_size    = _symbol("k_size",    "1",                  "optimal parameters at one FLOP")
a_size    = _symbol("a_size",    "1",                  "exponent of the arithmetic in the optimal parameters")
k_tokens  = _symbol("k_tokens",  "1",                  "optimal tokens at one FLOP")
a_tokens  = _symbol("a_tokens",  "1",                  "exponent of the arithmetic in the optimal tokens")
k_model   = _symbol("k_model",   "1",                  "optimal arithmetic per token at one FLOP [FLOP/token]")
M_tok     = _symbol("M_tok",     "flop/token",         "arithmetic of training one token")
K_ratio   = _symbol("K_ratio",   "1",                  "optimal parameters per token, both in the units of the fit, where their product is one", "K^2")
eta_ratio = _symbol("eta_ratio", "1",                  "exponent with which parameters per token fall with the arithmetic", r"\eta")
N_unit    = _symbol("N_unit",    "param",              "unit of the parameters in a fit")
D_unit    = _symbol("D_unit",    "token",              "unit of the tokens in a fit")

# what the phases of a life cost
u_peak    = _symbol("u_peak",    "1",                  "share of the peak that is used")
u_pt      = _symbol("u_pt",      "1",                  "share of the peak that pre-training uses")
u_rl      = _symbol("u_rl",      "1",                  "share of the peak that reinforcement learning uses")
u_inf     = _symbol("u_inf",     "1",                  "share of the peak that serving uses")
v_chip    = _symbol("v_chip",    "flop/(chip*s)",      "arithmetic that one chip delivers")
v_pt      = _symbol("v_pt",      "flop/(chip*s)",      "arithmetic that one chip of pre-training delivers")
v_rl      = _symbol("v_rl",      "flop/(chip*s)",      "arithmetic that one chip of reinforcement learning delivers")
v_inf     = _symbol("v_inf",     "flop/(chip*s)",      "arithmetic that one chip of serving delivers")
w_flop    = _symbol("w_flop",    "USD/flop",           "price of a FLOP")
w_pt      = _symbol("w_pt",      "USD/flop",           "price of a FLOP of pre-training")
w_rl      = _symbol("w_rl",      "USD/flop",           "price of a FLOP of reinforcement learning")
w_inf     = _symbol("w_inf",     "USD/flop",           "price of a FLOP of serving")
C_done    = _symbol("C_done",    "flop",               "arithmetic of all phases, as it is done")
C_paid    = _symbol("C_paid",    "flop",               "arithmetic of the peak that is paid for in all phases")
t_chips   = _symbol("t_chips",   "chip*s",             "time of one chip that all phases take")
K_life    = _symbol("K_life",    "USD",                "cost of a model's whole life")
K_phase   = _symbol("K_phase",   "USD",                "cost of one phase of it")
y_phase   = _symbol("y_phase",   "1",                  "share of the cost that a phase bears")
loss_rl   = _symbol("loss_rl",   "1",                  "loss that reinforcement learning leaves", r"\mathcal{L}_{\mathrm{rl}}")
r_tokens  = _symbol("r_tokens",  "token/param",        "tokens of pre-training per active parameter")
# fmt: on
