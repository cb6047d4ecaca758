"""Two pools: one reads prompts, one decodes, and the caches move between them.

The slower pool sets the rate; with whole replicas one of the two always has room to spare. What a
plan of two pools gives is at the end: rates, prices, times, energy and bill.
"""

from formulas.algebra.notation import *
from formulas.serving import outputs
from formulas.serving.outputs import ASSUME_IDLE_CHIPS_PAID, BOTH

PEAK_LOAD = steiner_1957.at("sections I and II")
CITE_CACHE_TRANSFER = zhong_2024.at("disaggregation of prefill and decoding")

prompt_cache = Equation.of(
    V_prompt,
    (b_store * L_in + R_bnd_mem + R_state) * one_seq,
    "the whole prompt's cache is moved, found in a prefix cache or computed",
    source=CITE_CACHE_TRANSFER,
)

cache_transfer = Equation.of(
    T_move,
    t_send + V_prompt / (n_send * r_send),
    "chips that hold different parts of the cache send side by side",
    "nothing is sent before the prompt is read",
    source=CITE_CACHE_TRANSFER,
)

prompt_rate = Equation.of(
    X_pf, one_seq / T_pf_busy, "prompts wait for replicas, not replicas for prompts"
)

decode_rate = Equation.of(
    X_dec,
    g * B / (L_dec * T_dec),
    "slots are always full",
    "the first token comes from the first pool",
)

pools_rate = Equation.of(
    X_pools,
    minimum(n_pf * X_pf, n_dec * X_dec),
    "the slower pool sets the rate",
    source=CITE_CACHE_TRANSFER,
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


def _of_pools(
    single: Equation, rhs: Expr, *assumes: str, source: Citation = definition
) -> Equation:
    return Equation(
        f"{single.name}, two pools", single.symbol, rhs, assumes or single.assumes, source
    )


pools_bill = _of_pools(outputs.bill, p_chip_pf * n_chips_pf + p_chip_dec * n_chips_dec)
pools_power_bill = _of_pools(
    outputs.power_bill, p_power_pf * n_chips_pf + p_power_dec * n_chips_dec
)
pools_request_price = _of_pools(outputs.request_price, pools_bill.rhs / X_pools)
pools_price = Equation.of(C_pools, pools_bill.rhs / (X_pools * BOTH), ASSUME_IDLE_CHIPS_PAID)
pools_input_price = _of_pools(
    outputs.input_price,
    p_chip_pf * n_chips_pf / (X_pools * L_in),
    "input bears the pool that prefills",
)
pools_output_price = _of_pools(
    outputs.output_price,
    p_chip_dec * n_chips_dec / (X_pools * L_out),
    "output bears the pool that decodes",
)
# Marginal price of an input or an output token at the chosen layouts: long run (pools grow with
# the load) and short run (pools fixed).
LONG_RUN = ("replicas are many, so that fractions of one matter little", "no chip is idle")
long_run_input_price = Equation(
    "price of an input token more, pools sized anew",
    C_in,
    p_chip_pf * k_pf / (X_pf * L_in),
    assumes=(*LONG_RUN, "the pool that prefills grows by what its replicas read at their most"),
    source=PEAK_LOAD,
)
long_run_output_price = Equation(
    "price of an output token more, pools sized anew",
    C_out,
    p_chip_dec * k_dec / (X_dec * L_out),
    assumes=(*LONG_RUN, "the pool that decodes grows by what its replicas write at their most"),
    source=PEAK_LOAD,
)
SHORT_RUN = ("the pool of the other kind has room", "what no one waits for is free")
short_run_input_price = Equation(
    "price of an input token more, this fleet, the pool that prefills full",
    C_in,
    pools_bill.rhs / (X_pools * L_in),
    assumes=SHORT_RUN,
    source=PEAK_LOAD,
)
short_run_output_price = Equation(
    "price of an output token more, this fleet, the pool that decodes full",
    C_out,
    pools_bill.rhs / (X_pools * L_out),
    assumes=SHORT_RUN,
    source=PEAK_LOAD,
)
pools_request_energy = _of_pools(
    outputs.request_energy, (P_chip_pf * n_chips_pf + P_chip_dec * n_chips_dec) / X_pools
)
pools_energy = _of_pools(outputs.mixed_energy, pools_request_energy.rhs / BOTH)
pools_chip_power = Equation(
    "mean power of the chips of two pools, cooling included",
    P_chip,
    (P_chip_pf * n_chips_pf + P_chip_dec * n_chips_dec) / (n_chips_pf + n_chips_dec),
    assumes=("idle chips count",),
)
pools_tokens_per_chip = _of_pools(outputs.tokens_per_chip, X_out / (n_chips_pf + n_chips_dec))
moved_first_token = _of_pools(
    outputs.first_token,
    T_ttft + T_wait + T_move,
    "the first token is counted when the cache has reached the pool that decodes",
    source=CITE_CACHE_TRANSFER,
)


def two_pools(load: str) -> tuple[Equation, ...]:
    """Outputs of two pools under a load (`none` or `given`)."""
    alike = (outputs.requests_in_plan, outputs.output_token_rate, outputs.input_token_rate)
    return (
        POOLS_RATE[load], pools_bill, pools_power_bill, pools_request_price, pools_price,
        pools_input_price, pools_output_price, pools_request_energy, pools_energy,
        pools_chip_power, outputs.request_carbon, outputs.token_carbon, moved_first_token,
        outputs.request_latency, outputs.tokens_per_user,
        *(_of_pools(e, e.rhs.subs(X_seq, X_pools), source=e.source) for e in alike),
        pools_tokens_per_chip,
    )  # fmt: skip
