"""Where to keep a cache: the cost of holding it, of reading it back, of computing it again.

A byte occupies a share of a tier for as long as it is held, and the tier's bandwidth for as long as
it is read. The drain time of a tier, capacity over bandwidth, is the hold time at which the two
cost the same.
"""

from formulas.algebra.notation import *
from formulas.economics.prices import domain_price, input_token_cost
from formulas.roofline.batching import attention_context, balance_context
from formulas.roofline.roofline import drain_time

WHOLE = "a share of a tier costs that share of its price"
PLACE = "section 5, the cache tiers"
FULL = "the tier is full, and its price is paid by what it holds"

store_cost = Equation(
    "cost of holding the cache of one token",
    C_store,
    b_kv * t_hold * p_tier / M_tier,
    assumes=(WHOLE, FULL),
    source=lecture_notes.at(PLACE),
    tags=("C42",),
)

fetch_cost = Equation(
    "cost of reading the cache of one token back",
    C_fetch,
    b_kv * p_read / W_tier,
    assumes=("a read keeps what p_read pays for busy, and nothing else",),
    source=lecture_notes.at(PLACE),
    tags=("C43",),
)

tier_drain_time = Equation(
    "time to read a whole tier once",
    tau_tier,
    M_tier / W_tier,
    assumes=("the tier is read at its full rate, in long runs",),
    source=lecture_notes.at(PLACE),
    tags=("C45",),
)

drain_rule_prices = (
    Derivation(
        "hold time at which holding costs as much as reading back",
        source=lecture_notes.at(PLACE),
        tags=("C43", "C45"),
    )
    .begin(store_cost.rhs, fetch_cost.rhs, why="holding costs as much as reading back")
    .solve(t_hold, p_read / p_tier * M_tier / W_tier)
    .rewrite(
        p_read / p_tier * tau_tier,
        why="the drain time, times what a read keeps busy over the tier itself",
        where=(tier_drain_time,),
    )
)

drain_rule = (
    Derivation(
        "the drain-time rule",
        source=lecture_notes.at(PLACE),
        tags=("C43", "C45"),
        assumes=("a read keeps the tier busy and nothing else: p_read = p_tier",),
        where=(tier_drain_time,),
    )
    .begin(drain_rule_prices.equation())
    .substitute(Equation("one price for both", p_read, p_tier))
    .rewrite(tau_tier, why="hold a cache for the drain time of its tier")
)

remake_cost = Equation(
    "cost of computing the cache of one token again",
    C_remake,
    D_step * (N_active * c_fwd + a_kv * L_in / 2) / (F * e_pf),
    assumes=(
        "prefill is arithmetic-bound, at the share e_pf of the peak",
        "the whole prefix of L_in tokens is computed; its mean context is half of it",
    ),
    source=lecture_notes.at(PLACE),
    tags=("C44",),
    where=(domain_price,),
)

remake_over_prompt = (
    Derivation(
        "computing a cache again is what a prompt token costs",
        source=lecture_notes.at(PLACE),
        tags=("C44",),
        assumes=("attention is small beside the weights", "prefill at the arithmetic roof"),
    )
    .begin(C_remake, D_step * N_active * c_fwd / F, why="prefill at its roof, attention aside")
    .rewrite(
        input_token_cost.symbol,
        why="a miss costs a prompt token; a hit is priced against it",
        where=(input_token_cost,),
    )
)

break_even_hold = (
    Derivation(
        "hold time in HBM after which computing again is cheaper",
        tags=("C44", "result 4"),
        assumes=(
            "a hit pays no retrieval: the cache lies in the HBM that decodes it",
            "storage pays the price of the whole chip, as its share of the memory",
        ),
    )
    .begin(
        b_kv * t_hold * D_step / M,
        remake_cost.rhs,
        why="holding a share of the chip's memory costs as much as computing again",
    )
    .solve(t_hold, M * (N_active * c_fwd + a_kv * L_in / 2) / (b_kv * F * e_pf))
    .rewrite(
        T_drain * L_star * (1 + L_in / (2 * L_a)) / e_pf,
        why="drain time times balance context: the edge of the tier and the context cliff are "
        "one number",
        where=(drain_time, balance_context, attention_context),
    )
)

break_even_hold_in_tier = (
    Derivation(
        "hold time in a tier after which computing again is cheaper",
        source=gray_1987.at("the five-minute rule"),
        tags=("C44", "result 4"),
        assumes=("negative where reading back alone costs more than computing again",),
    )
    .begin(C_remake, store_cost.rhs + fetch_cost.rhs, why="a held cache is also read back")
    .solve(t_hold, (C_remake - b_kv * p_read / W_tier) * M_tier / (b_kv * p_tier))
    .rewrite(
        (C_remake - C_fetch) * M_tier / (b_kv * p_tier),
        why="the tier pays for itself out of what a hit saves",
        where=(fetch_cost,),
    )
)

hit_chance_needed = (
    Derivation(
        "chance of a hit from which holding pays",
        tags=("C42", "C43", "C44"),
        assumes=("C_fetch < C_remake", "never where the result exceeds one"),
    )
    .begin(
        C_store + p_hit * C_fetch,
        p_hit * C_remake,
        why="holding is paid for always; reading back and computing again only at a return",
    )
    .solve(p_hit, C_store / (C_remake - C_fetch))
)

fetch_over_remake = Equation(
    "cost of a hit over the cost of a miss",
    x_hold,
    (C_store + C_fetch) / C_remake,
    assumes=("every held cache is read once",),
    source=lecture_notes.at(PLACE),
    tags=("C44",),
)

hold_cost = Equation(
    "cost of holding one byte in a tier and reading it back",
    c_hold,
    q_byte * (t_hold + tau_tier),
    assumes=("a read keeps the tier busy and nothing else", WHOLE, FULL),
    source=derived,
    tags=("C43", "result 5"),
)

tier_edge = (
    Derivation(
        "hold time at which the slower of two tiers becomes the cheaper",
        tags=("C45", "result 5"),
        assumes=("q_1 > q_2 and q_2*tau_2 > q_1*tau_1; else one tier is always better",),
    )
    .begin(q_1 * (t_hold + tau_1), q_2 * (t_hold + tau_2), why="both tiers cost the same")
    .solve(t_hold, (q_2 * tau_2 - q_1 * tau_1) / (q_1 - q_2))
)

byte_price_by_drain_time = Equation(
    "price of a byte in a family of tiers",
    q_byte,
    one_price * (one_second / tau_tier) ** n_fall,
    assumes=("a continuum of devices, cheaper per byte the longer they take to drain",),
    tags=("result 5",),
)

best_drain_time = (
    Derivation(
        "drain time of the cheapest tier for a hold time",
        tags=("C45", "result 5"),
        assumes=(*byte_price_by_drain_time.assumes, "0 < n_fall < 1; else the slowest is best"),
    )
    .begin(
        -diff(byte_price_by_drain_time.rhs, tau_tier) * (t_hold + tau_tier),
        byte_price_by_drain_time.rhs,
        why="what a slower tier saves in price it loses in reading: the derivative is zero",
    )
    .solve(tau_tier, t_hold * n_fall / (1 - n_fall))
)

drain_rule_exponent = (
    Derivation(
        "fall of prices at which the drain-time rule is optimal",
        tags=("C45", "result 5"),
        assumes=best_drain_time.assumes,
    )
    .begin(t_hold, best_drain_time.rhs, why="the rule: drain time equals hold time")
    .solve(n_fall, Rational(1, 2))
)
