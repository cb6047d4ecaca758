"""Where to keep a cache: the cost of holding it, of reading it back, of computing it again.

A byte occupies a share of a tier for as long as it is held, and the tier's bandwidth for as long as
it is read. The drain time of a tier, capacity over bandwidth, is the hold time at which the two
cost the same.
"""

from formulas.algebra.notation import *
from formulas.economics.prices import domain_price, input_token_cost
from formulas.roofline.batching import attention_context, balance_context
from formulas.roofline.roofline import drain_time

PRO_RATA = "a share of a tier costs that share of its price"
TIERS = lecture_notes.at("section 5, the cache tiers")
FULL_TIER = "the tier is full, and its price is paid by what it holds"

store_cost = Equation.of(
    C_store, b_kv * t_hold * p_tier / M_tier, PRO_RATA, FULL_TIER, source=TIERS
)

fetch_cost = Equation.of(
    C_fetch,
    b_kv * p_read / W_tier,
    "a read keeps what p_read pays for busy, and nothing else",
    source=TIERS,
)

tier_drain_time = Equation.of(
    tau_tier, M_tier / W_tier, "the tier is read at its full rate, in long runs", source=TIERS
)

drain_rule_prices = derive(
    "hold time at which holding costs as much as reading back",
    begin(store_cost, fetch_cost, why="holding costs as much as reading back"),
    solve(t_hold, p_read / p_tier * M_tier / W_tier),
    rewrite(
        p_read / p_tier * tau_tier,
        why="the drain time, times what a read keeps busy over the tier itself",
        where=(tier_drain_time,),
    ),
    source=TIERS,
)

drain_rule = derive(
    "the drain-time rule",
    begin(drain_rule_prices),
    substitute(
        Equation("one price for both", p_read, p_tier),
        why="one price for both: hold a cache for the drain time of its tier",
    ),
    source=TIERS,
    assumes=("a read keeps the tier busy and nothing else: p_read = p_tier",),
    where=(tier_drain_time,),
)

remake_cost = Equation.of(
    C_remake,
    D_step * (N_active * c_fwd + a_kv * L_in / 2) / (F * e_pf),
    "prefill is arithmetic-bound, at the share e_pf of the peak",
    "the whole prefix of L_in tokens is computed; its mean context is half of it",
    source=TIERS,
    where=(domain_price,),
)

remake_over_prompt = derive(
    "computing a cache again is what a prompt token costs",
    begin(C_remake, D_step * N_active * c_fwd / F, why="prefill at its roof, attention aside"),
    rewrite(
        input_token_cost.symbol,
        why="a miss costs a prompt token; a hit is priced against it",
        where=(input_token_cost,),
    ),
    source=TIERS,
    assumes=("attention is small beside the weights", "prefill at the arithmetic roof"),
)

break_even_hold = derive(
    "hold time in HBM after which computing again is cheaper",
    begin(
        b_kv * t_hold * D_step / M,
        remake_cost,
        why="holding a share of the chip's memory costs as much as computing again",
    ),
    solve(t_hold, M * (N_active * c_fwd + a_kv * L_in / 2) / (b_kv * F * e_pf)),
    rewrite(
        T_drain * L_star * (1 + L_in / (2 * L_a)) / e_pf,
        why="drain time times balance context: the edge of the tier and the context cliff are "
        "one number",
        where=(drain_time, balance_context, attention_context),
    ),
    assumes=(
        "a hit pays no retrieval: the cache lies in the HBM that decodes it",
        "storage pays the price of the whole chip, as its share of the memory",
    ),
)

break_even_hold_in_tier = derive(
    "hold time in a tier after which computing again is cheaper",
    begin(
        C_remake,
        store_cost.rhs + fetch_cost.rhs,
        why="a held cache is also read back",
        of=(store_cost, fetch_cost),
    ),
    solve(t_hold, (C_remake - b_kv * p_read / W_tier) * M_tier / (b_kv * p_tier)),
    rewrite(
        (C_remake - C_fetch) * M_tier / (b_kv * p_tier),
        why="the tier pays for itself out of what a hit saves",
        where=(fetch_cost,),
    ),
    source=gray_1987.at("the five-minute rule"),
    assumes=("negative where reading back alone costs more than computing again",),
)

hit_chance_needed = derive(
    "chance of a hit from which holding pays",
    begin(
        C_store + p_hit * C_fetch,
        p_hit * C_remake,
        why="holding is paid for always; reading back and computing again only at a return",
    ),
    solve(p_hit, C_store / (C_remake - C_fetch)),
    assumes=(when(C_fetch < C_remake), "never where the result exceeds one"),
)

held_during_answer = Equation.of(
    C_occ,
    b_kv * t_ans * D_step / M,
    "the cache lies in HBM from the first token to the last, at the price of the whole chip",
    where=(domain_price,),
)

cached_token_floor = Equation.of(
    C_hit,
    (C_store / p_hit + C_occ) / n_share + C_fetch,
    "who reads pays for what is held in vain; a prefix that sequences share is held once",
    when(p_hit <= 1),
    source=derived,
)

price_at_margin = Equation.of(C_ask, C_hit / (1 - w_margin), when(w_margin < 1))

fetch_over_remake = Equation.of(
    x_hold, (C_store + C_fetch) / C_remake, "every held cache is read once", source=TIERS
)

hold_cost = Equation.of(
    c_hold,
    q_byte * (t_hold + tau_tier),
    "a read keeps the tier busy and nothing else",
    PRO_RATA,
    FULL_TIER,
    source=derived,
)

tier_edge = derive(
    "hold time at which the slower of two tiers becomes the cheaper",
    begin(q_1 * (t_hold + tau_1), q_2 * (t_hold + tau_2), why="both tiers cost the same"),
    solve(t_hold, (q_2 * tau_2 - q_1 * tau_1) / (q_1 - q_2)),
    assumes=(
        when(q_1 > q_2),
        when(q_2 * tau_2 > q_1 * tau_1, why="else one tier is always better"),
    ),
)

byte_price_by_drain_time = Equation(
    "price of a byte in a family of tiers",
    q_byte,
    one_price * (one_second / tau_tier) ** n_fall,
    assumes=("a continuum of devices, cheaper per byte the longer they take to drain",),
)

best_drain_time = derive(
    "drain time of the cheapest tier for a hold time",
    begin(hold_cost),
    substitute(byte_price_by_drain_time),
    stationary(tau_tier, "what a slower tier saves in price it loses in reading"),
    solve(tau_tier, t_hold * n_fall / (1 - n_fall)),
    assumes=(*byte_price_by_drain_time.assumes, when(n_fall < 1, why="else the slowest is best")),
)

drain_rule_exponent = derive(
    "fall of prices at which the drain-time rule is optimal",
    begin(t_hold, best_drain_time, why="the rule: drain time equals hold time"),
    solve(n_fall, Rational(1, 2)),
    assumes=best_drain_time.assumes,
)
