"""Claims C38 to C48: what prices say of caches, where they are kept, and how far contexts go."""

from fractions import Fraction

from formulas.claims.claim import Claim, Worked, named
from formulas.nomenclature.sources import (
    lecture_equations,
    lecture_hardware,
    lecture_notes,
    lecture_summary,
)

CLIFF = {"b_kv": Fraction(5000, 3)}  # bytes per token that put the cliff at 200 000 tokens
CHIP = {"M_tier": 288 * 10**9, "W_tier": 20 * 10**12}
TIERS = lecture_notes.at("section 5, the cache tiers")
WALL = lecture_notes.at("section 5, why context length stalled")

CLAIMS = (
    Claim(
        "C38",
        "A price cliff at 200 000 tokens means 1.7 kB of cache per token.",
        lecture_notes.at("section 5, the 200k context cliff"),
        "1/300 * 1e11 / 2e5 = 1667 byte, about 2 kB",
        "Holds with one byte per weight (833 in FP4, 3333 in BF16) and far above the critical "
        "batch; with the weights' own traffic it is less, and a cliff may lie after the kink.",
        equations=("cache_bytes_from_cliff", "cache_bytes_from_kink"),
        worked=(
            Worked(
                "one byte per weight", "cache_bytes_from_cliff", says=Fraction(5000, 3), unit="B"
            ),
            Worked(
                "half a byte", "cache_bytes_from_cliff", unit="B", inputs={"F": 600 * 20 * 10**12}
            ),
            Worked(
                "two bytes", "cache_bytes_from_cliff", unit="B", inputs={"F": 150 * 20 * 10**12}
            ),
        ),
    ),
    Claim(
        "C39",
        "Eight key-value heads of width 128 and a modest number of layers fit 2 kB.",
        lecture_notes.at("section 5, the 200k context cliff"),
        "2 kB falls right in range",
        "Does not hold: 2 kB is one layer in one byte per element. It takes one unshared layer, "
        "latent or compressed caches.",
        equations=("grouped_cache_bytes", "latent_cache_bytes"),
        lecture={"n_kv": 8, "d_head": 128, "b_el": 1, "n_layers": 80},
        worked=(
            Worked("80 layers", "grouped_cache_bytes", says=2, unit="kB"),
            Worked("one layer", "grouped_cache_bytes", unit="kB", inputs={"n_layers": 1}),
        ),
    ),
    Claim(
        "C40",
        "The cliff is where reading caches takes as long as reading weights, or as the arithmetic.",
        lecture_summary.at("key takeaways, KV cache; notes, section 5"),
        "B*L*b = weights in one place, L*b/bandwidth = N_active/FLOPs in another",
        "The two readings coincide at the critical batch and nowhere else; with both terms the "
        "kink lies at L_star*(1 - B_0/B), so the same cliff means fewer bytes.",
        equations=named(
            "cliff_readings cliff_context cache_bytes_by_weights cache_bytes_from_kink"
        ),
        worked=(
            Worked("read against weights", "cache_bytes_by_weights", unit="B"),
            Worked(
                "against weights, at 2.5 times the batch",
                "cache_bytes_by_weights",
                unit="B",
                inputs={"B": 6000},
            ),
            Worked("with both terms, there", "cache_bytes_from_kink", unit="B", inputs={"B": 6000}),
        ),
    ),
    Claim(
        "C41",
        "Beyond the cliff the price is 50 % higher.",
        lecture_notes.at("section 5, the 200k context cliff"),
        "1.5 times, chosen so that the provider stays profitable",
        "A price, not derivable: 1.5 times covers the step only to 1.5 balance contexts; the mean "
        "from the cliff to a million tokens is three times the floor.",
        kind="data",
        equations=("cliff_surcharge", "surcharge_context"),
        lecture=CLIFF | {"B": 10**12, "x_cliff": Fraction(3, 2)},
        worked=(
            Worked("covered up to, tokens", "surcharge_context"),
            Worked("mean from 200 000 to 1 000 000", "cliff_surcharge", inputs={"L_ctx": 600_000}),
        ),
    ),
    Claim(
        "C42",
        "Holding a cache costs its share of the tier, for as long as it is held.",
        TIERS,
        "bytes/token / capacity * price",
        "Holds where the tier is full and what it holds pays its price.",
        equations=("store_cost",),
        lecture=CLIFF | CHIP | {"p_tier": 1, "t_hold": 3600},
        worked=(Worked("an hour in HBM, in seconds of one chip", "store_cost"),),
    ),
    Claim(
        "C43",
        "Reading a cache back costs its share of the tier's bandwidth; the best tier for a hold "
        "time is the one that drains in it.",
        TIERS,
        "drain time = hold time",
        "Holds if a read keeps the tier busy and nothing else; otherwise the drain time is "
        "multiplied by what it keeps busy, and along a continuum of tiers the rule is optimal only "
        "where prices fall as the root of the drain time.",
        equations=named(
            "fetch_cost drain_rule drain_rule_prices tier_edge best_drain_time drain_rule_exponent"
        ),
        lecture=CHIP | {"p_tier": 1, "p_read": 1, "t_hold": 300},
        worked=(
            Worked("hold time of HBM", "drain_rule", unit="ms"),
            Worked("fall of prices that makes the rule optimal", "drain_rule_exponent"),
            Worked(
                "best drain time for 300 s if prices fall as the cube root",
                "best_drain_time",
                unit="s",
                inputs={"n_fall": Fraction(1, 3)},
            ),
        ),
    ),
    Claim(
        "C44",
        "A miss costs a forward pass; a hit is ten times cheaper.",
        TIERS,
        "10 times",
        "A price; the break-even is derivable: in HBM it is the drain time times the balance "
        "context, so the edge of that tier and the context cliff are one number.",
        equations=named(
            "remake_cost break_even_hold break_even_hold_in_tier fetch_over_remake "
            "hit_chance_needed keep_cache"
        ),
        lecture=CLIFF | {"a_kv": 0, "L_in": 200_000, "e_pf": 1},
        worked=(
            Worked("break-even hold in HBM", "break_even_hold", unit="s"),
            Worked("as an exchange of bytes for arithmetic", "keep_cache", unit="s"),
        ),
    ),
    Claim(
        "C45",
        "Tiers drain in 20 ms (HBM), 1 to 10 s (DDR), a minute (flash), an hour (disk).",
        TIERS,
        "20 ms, 1-10 s, 1 min, 1 h",
        "Holds for DDR and nearly for HBM; flash drives take minutes to hours and a disk more than "
        "a day, so an hour is large flash.",
        kind="data",
        equations=("tier_drain_time", "drain_rule"),
        lecture=CHIP,
        worked=(Worked("HBM of the lecture's chip", "tier_drain_time", says=20, unit="ms"),),
    ),
    Claim(
        "C46",
        "Sparse attention reads the root of the context.",
        lecture_equations.at("KV cache, the irreducible cost"),
        "reads grow as sqrt(L)",
        "Holds for two levels of selection with blocks that grow with the context; an index of "
        "every token, as in DeepSeek's, and packed entries stay linear with a smaller slope.",
        equations=named(
            "block_reads block_size block_reads_least wide_context top_reads top_share top_slope "
            "packed_reads packed_slope"
        ),
        lecture=CLIFF | {"k_block": 16, "L_window": 128},
        worked=(
            Worked("two levels, entries of 200 000", "block_reads_least"),
            Worked("of 20 000 000", "block_reads_least", inputs={"L_ctx": 2 * 10**7}),
            Worked("packed by four, entries of 200 000", "packed_reads", inputs={"c_pack": 4}),
            Worked("of 20 000 000", "packed_reads", inputs={"c_pack": 4, "L_ctx": 2 * 10**7}),
        ),
    ),
    Claim(
        "C47",
        "Contexts of 100 million tokens are out of reach: bandwidth is the wall.",
        lecture_hardware.at("section 6, the long context wall"),
        "no path to 100M tokens",
        "Holds, but capacity is the first wall wherever a step may last longer than draining the "
        "memory that the weights leave.",
        equations=named(
            "longest_context readable_context readable_over_stored kv_time_per_sequence"
        ),
        lecture=CLIFF
        | {"M": 72 * 288 * 10**9, "W": 72 * 20 * 10**12, "T_kv_max": Fraction(20, 1000)},
        worked=(
            Worked("a rack holds, tokens per sequence", "longest_context"),
            Worked("it reads in 20 ms", "readable_context"),
            Worked(
                "100M tokens, one sequence on one chip",
                "kv_time_per_sequence",
                unit="ms",
                inputs={"L_ctx": 10**8, "W": 20 * 10**12},
            ),
        ),
    ),
    Claim(
        "C48",
        "The cache is the one cost that no batch shares out.",
        lecture_equations.at("KV cache, the irreducible cost"),
        "unique per sequence",
        "Holds except for shared prefixes: one read serves the group.",
        equations=("kv_time_per_sequence", "kv_time_shared", "shared_by_all", "time_per_sequence"),
        lecture=CLIFF | {"L_share": 160_000, "n_share": 100},
        worked=(
            Worked("per sequence of 200 000 tokens", "kv_time_per_sequence", unit="us"),
            Worked("four fifths of them shared by all", "shared_by_all", unit="us"),
        ),
    ),
)
