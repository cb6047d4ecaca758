"""Two pools: one reads prompts, one decodes, and the caches move between them.

The slower pool sets the rate; with whole replicas one of the two always has room to spare.
"""

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.nomenclature.lecture import *
from formulas.nomenclature.pools import *
from formulas.nomenclature.serving import *
from formulas.nomenclature.sources import definition, derived, zhong_2024
from formulas.numerics.expressions import minimum

prompt_cache = Equation(
    "cache bytes of one prompt",
    V_prompt,
    (b_store * L_in + R_bnd_mem + R_state) * one_seq,
    assumes=("the whole prompt's cache is moved, found in a prefix cache or computed",),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
)

cache_transfer = Equation(
    "moving a prompt's cache between two pools",
    T_move,
    t_send + V_prompt / (n_send * r_send),
    assumes=(
        "chips that hold different parts of the cache send side by side",
        "nothing is sent before the prompt is read",
    ),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
)

prompt_rate = Equation(
    "prompts one replica of the first pool reads",
    X_pf,
    one_seq / T_pf_busy,
    assumes=("prompts wait for replicas, not replicas for prompts",),
    source=definition,
)

decode_rate = Equation(
    "requests one replica of the second pool decodes",
    X_dec,
    g * B / (L_dec * T_dec),
    assumes=("slots are always full", "the first token comes from the first pool"),
    source=definition,
)

pools_rate = Equation(
    "requests that two pools serve",
    X_pools,
    minimum(n_pf * X_pf, n_dec * X_dec),
    assumes=("the slower pool sets the rate",),
    source=zhong_2024.at("disaggregation of prefill and decoding"),
    where=(prompt_rate, decode_rate),
)

pools_price = Equation(
    "price of a token at the scenario's mix, two pools",
    C_pools,
    (p_chip_pf * n_chips_pf + p_chip_dec * n_chips_dec) / (X_pools * (L_in + L_out)),
    assumes=("idle chips are paid too",),
    source=definition,
)

balance = (
    Derivation(
        "replicas that prefill for each one that decodes",
        source=derived,
        assumes=("replicas are many, so that fractions of one matter little",),
    )
    .begin(n_pf * X_pf, n_dec * X_dec, why="neither pool waits for the other")
    .solve(n_pf, n_dec * X_dec / X_pf)
)

POOLS = (prompt_cache, cache_transfer)
