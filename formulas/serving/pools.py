"""Two pools: one reads prompts, one decodes, and the caches move between them.

The slower pool sets the rate; with whole replicas one of the two always has room to spare. What a
plan of two pools gives is at the end: rates, prices, times, energy and bill.
"""

from formulas.algebra.notation import *
from formulas.serving.outputs import (
    BOTH,
    PAID,
    input_token_rate,
    output_token_rate,
    request_latency,
    requests_in_plan,
    tokens_per_user,
)

prompt_cache = Equation.of(
    V_prompt,
    (b_store * L_in + R_bnd_mem + R_state) * one_seq,
    assumes=("the whole prompt's cache is moved, found in a prefix cache or computed",),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
)

cache_transfer = Equation.of(
    T_move,
    t_send + V_prompt / (n_send * r_send),
    assumes=(
        "chips that hold different parts of the cache send side by side",
        "nothing is sent before the prompt is read",
    ),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
)

prompt_rate = Equation.of(
    X_pf, one_seq / T_pf_busy, assumes=("prompts wait for replicas, not replicas for prompts",)
)

decode_rate = Equation.of(
    X_dec,
    g * B / (L_dec * T_dec),
    assumes=("slots are always full", "the first token comes from the first pool"),
)

pools_rate = Equation(
    "requests that two pools serve",
    X_pools,
    minimum(n_pf * X_pf, n_dec * X_dec),
    assumes=("the slower pool sets the rate",),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
    where=(prompt_rate, decode_rate),
)

balance = derive(
    "replicas that prefill for each one that decodes",
    begin(n_pf * X_pf, n_dec * X_dec, why="neither pool waits for the other"),
    solve(n_pf, n_dec * X_dec / X_pf),
    assumes=("replicas are many, so that fractions of one matter little",),
)

POOLS = (prompt_cache, cache_transfer)

# --- what two pools give: rates, prices, times, energy, bill --------------------------------------

# At the rates of the replicas, or under a load.
POOLS_RATE = {
    "none": Equation(
        "requests that two pools serve at the rates of their replicas",
        X_pools,
        pools_rate.rhs,
        assumes=(*pools_rate.assumes, "n_pf and n_dec are replicas that run; spare ones are down"),
        source=pools_rate.source,
    ),
    "given": Equation(
        "requests that two pools serve under a load",
        X_pools,
        X_arr,
        assumes=("both pools carry it",),
    ),
}

pools_bill = Equation(
    "rent of all chips, two pools",
    C_bill,
    p_chip_pf * n_chips_pf + p_chip_dec * n_chips_dec,
    assumes=(PAID,),
)

pools_power_bill = Equation(
    "what of the rent pays for power, two pools",
    C_power,
    p_power_pf * n_chips_pf + p_power_dec * n_chips_dec,
    assumes=(PAID,),
)

pools_request_price = Equation(
    "rent of all chips per request, two pools", C_seq, pools_bill.rhs / X_pools, assumes=(PAID,)
)

pools_price = Equation.of(C_pools, pools_bill.rhs / (X_pools * BOTH), assumes=(PAID,))

pools_input_price = Equation(
    "price of an input token, two pools",
    C_in,
    p_chip_pf * n_chips_pf / (X_pools * L_in),
    assumes=("input bears the pool that prefills",),
)

pools_output_price = Equation(
    "price of an output token, two pools",
    C_out,
    p_chip_dec * n_chips_dec / (X_pools * L_out),
    assumes=("output bears the pool that decodes",),
)

pools_request_energy = Equation(
    "energy of all chips per request, two pools",
    E_seq,
    (P_chip_pf * n_chips_pf + P_chip_dec * n_chips_dec) / X_pools,
    assumes=("chips draw their rated power all the time",),
)

pools_energy = Equation(
    "energy of a token at the scenario's mix, two pools",
    E_tok,
    pools_request_energy.rhs / BOTH,
    assumes=pools_request_energy.assumes,
)

moved_first_token = Equation(
    "time from arrival to first token, two pools",
    T_first,
    T_ttft + T_wait + T_move,
    assumes=("the first token is told when the cache has reached the pool that decodes",),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
)

pools_tokens_per_chip = Equation(
    "generated tokens per second and chip, two pools",
    X_chip,
    X_out / (n_chips_pf + n_chips_dec),
    assumes=("idle chips count",),
)


def two_pools(load: str) -> tuple[Equation, ...]:
    """Outputs of two pools under a load (`none` or `given`)."""
    return (
        POOLS_RATE[load], pools_bill, pools_power_bill, pools_request_price, pools_price,
        pools_input_price, pools_output_price, pools_request_energy, pools_energy,
        moved_first_token, request_latency, tokens_per_user,
        *(_of_pools(e) for e in (requests_in_plan, output_token_rate, input_token_rate)),
        pools_tokens_per_chip,
    )  # fmt: skip


def _of_pools(equation: Equation) -> Equation:
    """The same at the rate of two pools."""
    return Equation(
        f"{equation.name}, two pools", equation.symbol, equation.rhs.subs(X_seq, X_pools),
        equation.assumes, equation.source,
    )  # fmt: skip
