"""The equations of a training step and their outputs: SymPy is loaded with them."""

from collections.abc import Mapping

import sympy as sp

from formulas.algebra.notation import *
from formulas.training.step_memory import STEP_MEMORY
from formulas.training.step_time import STEP

# Terms of the step time by their names in the answer; their sum is the step time.
RUNS = n_micro * n_full
TERMS: Mapping[str, sp.Expr] = {
    "matrix": RUNS * (T_mat + T_expert), "attention": RUNS * T_att, "element_wise": RUNS * T_elt,
    "quantisation": RUNS * T_quant, "tp": RUNS * T_tp, "cp": RUNS * T_cp_lay,
    "ep": RUNS * T_ep_lay, "pp": n_micro * T_hop_st, "launch": RUNS * (T_layer - T_chip_l),
    "head": n_micro * T_over_hd, "bubble": T_wait_pp, "dp_exposed": T_dp_out, "optimizer": T_optim,
    "offload_exposed": T_offload, "constant": t_fixed,
}  # fmt: skip
STAGES = ("first", "middle", "last")
OF_STAGE: Mapping[str, tuple[sp.Expr, sp.Expr, sp.Expr, sp.Expr]] = {
    # states, activations, logits, whole
    "first": (S_first, A_first, x_alone * M_logits, M_first),
    "middle": (S_middle, A_middle, Integer(0), M_second),
    "last": (S_last, A_last, M_logits, M_last),
}


def equation_table(table: str) -> tuple[tuple[Equation, ...], Mapping[str, sp.Expr]]:
    """The equations and the outputs of a kernel: `step`, `used`, `terms` or `memory`."""
    if table == "step":
        return STEP, {"step": T_train}
    if table == "used":
        return STEP_MEMORY, {"used": M_train}
    if table == "both":
        return (*STEP, *STEP_MEMORY[3:]), {"step": T_train, "used": M_train}
    if table == "terms":
        hidden = {"hidden.dp": T_dp - T_dp_out}
        return STEP, {"step": T_train, "busy": n_micro * T_slow, **TERMS, **hidden}
    stages = {
        f"{stage}.{part}": value
        for stage, values in OF_STAGE.items()
        for part, value in zip(("states", "activations", "logits", "used"), values, strict=True)
    }
    shares = {
        "weights": b_weight * (1 - x_params + x_params / n_dp) / V_dense,
        "gradients": b_grad * (1 - x_grads + x_grads / n_dp) / V_dense,
        "expert_weights": b_weight * (1 - x_params + x_params / n_edp) / V_expert,
        "expert_gradients": b_grad * (1 - x_grads + x_grads / n_edp) / V_expert,
    }
    routed = V_expert * x_moe * P_routed / (ep * etp)
    experts = {"first.experts": n_first * routed, "middle.experts": n_full * routed,
               "last.experts": n_last * routed}  # fmt: skip
    base = {"used": M_train, "state_factor": k_state, "base": M_base}
    return STEP_MEMORY, {**base, **stages, **shares, **experts}
