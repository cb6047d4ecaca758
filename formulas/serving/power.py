"""What a chip draws: idle power, and energy for the bytes and the arithmetic of its steps.

Bytes and arithmetic are those that the times are made of. An operator class takes as much energy at
the peak of its own dtype as any other, so a FLOP costs P_peak/F: half as much where twice as many
run per second. Power does not reach beyond what the chip is rated for: clocks give way before.
"""

from formulas.algebra.notation import *

ASSUME_ENERGY_COUNTED = (
    "energy follows bytes and FLOP, whatever else a kernel does goes with them",
    "matrices of few positions are multiplied as if they had n_tile more",
)
ASSUME_FULLEST_RANK = "every rank works as much as the fullest one"

step_work = Equation.of(
    T_tiled,
    T_math_bound
    + c_fwd
    * n_tile
    * (
        (N_attn / F_attn + N_ffn / F_ffn + N_head / F_head) / tp
        + N_exp * (n_experts / k_experts) * coverage / (F_routed * ep * xtp)
    ),
    ASSUME_ENERGY_COUNTED[1],
    ASSUME_FULLEST_RANK,
)

weight_energy = Equation.of(
    E_w,
    L_dec * one_seq / (g * B) * j_byte * (n_half * V_w + n_draft * V_draft),
    ASSUME_ENERGY_COUNTED[0],
    "weights are read by every step, however few slots are in use; again for the other of two "
    "halves, and a drafter's for every draft",
    ASSUME_FULLEST_RANK,
)

_PROMPT = x_pf * (j_byte * n_half * n_shared * V_pass / (pp * dp) + P_peak * T_pf_math_bound)
_STEPS = L_dec * one_seq / (g * B) * (j_byte * V_kv_dec + P_peak * T_tiled)

RUN = {
    "prefill": Equation(
        "energy of one chip for what one prompt reads and multiplies",
        E_run,
        _PROMPT,
        ASSUME_ENERGY_COUNTED[:1],
    ),
    "aggregated": Equation.of(E_run, _PROMPT + _STEPS, *ASSUME_ENERGY_COUNTED, ASSUME_FULLEST_RANK),
    "decode": Equation(
        "energy of one chip for what the steps of one request read and multiply, weights apart",
        E_run,
        _STEPS,
        (*ASSUME_ENERGY_COUNTED, ASSUME_FULLEST_RANK),
    ),
}

asked_power = Equation.of(
    P_asked,
    P_idle + (r_fill * E_run + E_w) / T_slot,
    "replicas run steps all the time, however few slots are in use",
)
reading_power = Equation(
    "power that the work of one chip asks for while it reads prompts",
    P_asked,
    P_idle + E_run / T_slot,
    assumes=("nothing is decoded",),
)

working_power = Equation.of(
    P_work,
    P_asked / (1 + (P_asked / P_most) ** q_soft) ** (1 / q_soft),
    "clocks give way before the rated power is reached, and times as measured hold that",
)

_BUSY = n_rep * tp * dp * cp * pp * one_chip / n_chips
_AS_LONG = "chips of no replica draw what a chip at work does before it reads"


def _mean(whose: str, share: Expr, *assumes: str) -> Equation:
    rhs = x_site * (P_idle + share * (P_work - P_idle)) / one_chip
    return Equation(f"power of one chip{whose}, cooling included", P_chip, rhs, assumes)


chip_power = _mean("", _BUSY, _AS_LONG)
reading_chip_power = _mean(
    " that reads prompts", _BUSY * r_fill, _AS_LONG, "and so do replicas that have no prompt"
)

flop_energy = Equation(
    "energy of one FLOP with dense weights",
    j_flop,
    P_peak / F_ffn,
    assumes=("energy per FLOP falls as the peak of the dtype rises",),
)

# Electricity billed in addition to the rent.
paid_power = Equation.of(
    p_power, p_joule * P_chip, "electricity is paid for what chips draw, cooling included"
)
rented_chip = Equation.of(p_chip, p_rent + p_power, "rent is due for all chips all the time")
BILLED_POWER_EQUATIONS = (paid_power, rented_chip)

# Energy of the work, and power drawn for it, by the phases that a pool runs.
WORK_EQUATIONS = {
    "prefill": (RUN["prefill"],),
    "aggregated": (step_work, weight_energy, RUN["aggregated"]),
    "decode": (step_work, weight_energy, RUN["decode"]),
}
DRAW_EQUATIONS = {
    "prefill": (reading_power, working_power, reading_chip_power),
    "aggregated": (asked_power, working_power, chip_power),
    "decode": (asked_power, working_power, chip_power),
}
