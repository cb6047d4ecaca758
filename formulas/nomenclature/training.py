"""The nomenclature, continued: scaling laws of other forms, routed models, allocation by rule.

Same registry and same rules as `formulas.nomenclature.symbols`. A prefactor that ends in "at one FLOP" is what
a power law gives there: a number to be multiplied, not a model that anyone trained.
"""

from formulas.nomenclature.symbols import SYMBOLS, symbol

_BEFORE = set(SYMBOLS)

# fmt: off
# ruff: noqa: E501  (a table reads better whole)
# --- size and data together, as Kaplan et al. write it --------------------------------------
N_c       = symbol("N_c",       "param",        "parameters at which the size alone would leave a loss of one")
D_c       = symbol("D_c",       "token",        "tokens at which the data alone would leave a loss of one")
C_c       = symbol("C_c",       "flop",         "arithmetic at which the best model would have a loss of one")
alpha_D   = symbol("alpha_D",   "1",            "exponent of the loss in tokens, and outside the sum", r"\alpha_{D}")
alpha_C   = symbol("alpha_C",   "1",            "exponent of the loss in arithmetic", r"\alpha_{C}")

# --- routed models --------------------------------------------------------------------------
d_route   = symbol("d_route",   "1",            "decimal logarithm of the loss that one parameter and one saturated expert would leave", "d")
x_routed  = symbol("x_routed",  "1",            "share of a dense model's parameters that routing multiplies by the experts")
N_cut     = symbol("N_cut",     "param",        "parameters beyond which more experts no longer lower the loss")
G_fine    = symbol("G_fine",    "1",            "granularity: feed-forward width of the dense model over that of an expert", "G")
A_fine    = symbol("A_fine",    "1",            "loss that coarse experts add to a model of one parameter", "g")
gamma_G   = symbol("gamma_G",   "1",            "exponent of the granularity", r"\gamma_{G}")
A_sigma   = symbol("A_sigma",   "1",            "loss that sparsity removes, at a sparsity of one", "c")
lambda_S  = symbol("lambda_S",  "1",            "exponent with which sparsity removes it", r"\lambda")
A_mix     = symbol("A_mix",     "1",            "loss that a model of one parameter adds by being sparse, at a sparsity of one", "d")
delta_S   = symbol("delta_S",   "1",            "exponent of the sparsity in it", r"\delta")
gamma_S   = symbol("gamma_S",   "1",            "exponent of the parameters in it", r"\gamma")

delta_E   = symbol("delta_E",   "1",            "exponent with which experts lower the term of the size", r"\delta_{E}")
gamma_E   = symbol("gamma_E",   "1",            "what experts take from the exponent of the parameters", r"\gamma_{E}")
omega_E   = symbol("omega_E",   "1",            "exponent with which experts raise the term of the data", r"\omega_{E}")
zeta_E    = symbol("zeta_E",    "1",            "what experts add to the exponent of the tokens", r"\zeta_{E}")

# --- repeated data --------------------------------------------------------------------------
D_seen    = symbol("D_seen",    "token",        "distinct tokens that a training run sees")
n_pass    = symbol("n_pass",    "1",            "passes over the distinct tokens")
x_worth   = symbol("x_worth",   "1",            "worth of the passes, in fresh data sets")
r_bend    = symbol("r_bend",    "1",            "percent of worth per percent of passes")
k_convex  = symbol("k_convex",  "1",            "how fast that ratio falls with the logarithm of the passes")

# --- reinforcement learning in a loss -------------------------------------------------------
B_rl      = symbol("B_rl",      "1",            "loss that one token of reinforcement learning would leave", r"B_{\mathrm{rl}}")
beta_rl   = symbol("beta_rl",   "1",            "exponent of the tokens of reinforcement learning", r"\beta_{\mathrm{rl}}")

# --- allocation by rule ---------------------------------------------------------------------
k_size    = symbol("k_size",    "1",            "optimal parameters at one FLOP")
a_size    = symbol("a_size",    "1",            "exponent of the arithmetic in the optimal parameters")
k_tokens  = symbol("k_tokens",  "1",            "optimal tokens at one FLOP")
a_tokens  = symbol("a_tokens",  "1",            "exponent of the arithmetic in the optimal tokens")
k_model   = symbol("k_model",   "1",            "optimal arithmetic per token at one FLOP [FLOP/token]")
M_tok     = symbol("M_tok",     "flop/token",   "arithmetic of training one token")
K_ratio   = symbol("K_ratio",   "1",            "optimal parameters per token, both in the units of the fit, where their product is one", "K^2")
eta_ratio = symbol("eta_ratio", "1",            "exponent with which parameters per token fall with the arithmetic", r"\eta")
N_unit    = symbol("N_unit",    "param",        "unit of the parameters in a fit")
D_unit    = symbol("D_unit",    "token",        "unit of the tokens in a fit")
# fmt: on

__all__ = [name for name in SYMBOLS if name not in _BEFORE]
