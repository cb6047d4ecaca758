"""Claims C14 to C28: the train schedule, racks, sparsity, expert traffic, prices, pipelines."""

from fractions import Fraction

from formulas.claims.claim import Claim, Worked, named
from formulas.nomenclature.sources import lecture_equations, lecture_hardware, lecture_notes

CLIFF = {"b_kv": Fraction(5000, 3)}  # bytes per token that put the cliff at 200 000 tokens
MS = Fraction(1, 1000)

CLAIMS = (
    Claim(
        "C14",
        "The natural step is capacity over bandwidth, 15 to 20 ms on every generation.",
        lecture_notes.at("section 1, the train schedule"),
        "288 GB / 20 TB/s = 15 ms; Hopper and Blackwell in the same range",
        "Holds as arithmetic for the Rubin figures stated; Hopper and Blackwell take 22 to 36 ms, "
        "and one summary gives Rubin's figures as Blackwell's.",
        equations=("drain_time", "full_memory_step", "floor_over_drain"),
        worked=(Worked("drain time", "drain_time", says=15, unit="ms"),),
    ),
    Claim(
        "C15",
        "A request waits at most two intervals for its first step to end.",
        lecture_notes.at("section 1, the train schedule"),
        "40 ms; running faster than the drain time is impossible",
        "Holds while departures have room (mean 1.5 intervals); it is not end-to-end latency. "
        "Faster steps are possible: the floor is the weights' share of the drain time.",
        equations=named("arrival_wait longest_wait mean_wait longest_wait_full floor_over_drain"),
        worked=(
            Worked("longest", "longest_wait", says=40, unit="ms"),
            Worked("mean", "mean_wait", unit="ms"),
            Worked(
                "floor over drain time, a rack of 72",
                "floor_over_drain",
                unit="%",
                inputs={"M": 72 * 288 * 10**9},
            ),
        ),
    ),
    Claim(
        "C16",
        "A rack emits its batch once per step: about 128 000 tokens per second.",
        lecture_notes.at("section 1, the train schedule"),
        "B * 1/(20 ms) = 64 * B = 128k tokens/s",
        "The formula holds, the numbers do not meet: 1/(20 ms) is 50; 64 steps per second belong "
        "to 15.6 ms and 128k to a batch of 2000.",
        equations=("trains_per_second", "rack_throughput"),
        worked=(
            Worked("steps per second", "trains_per_second", says=64),
            Worked("tokens per second", "rack_throughput", says=128_000),
            Worked(
                "at batch 2000 and 1/64 s",
                "rack_throughput",
                says=128_000,
                inputs={"B": 2000, "T_step": Fraction(1, 64)},
            ),
        ),
    ),
    Claim(
        "C17",
        "Hundreds of millions of tokens per second are about a thousand racks.",
        lecture_notes.at("section 1, the train schedule"),
        "1000 racks",
        "Holds for 128 million tokens per second, the bottom of the range; two or three hundred "
        "million need 1600 to 2300 racks.",
        equations=("racks_of_service",),
        lecture={"X_rack": 128_000},
        worked=(
            Worked("100M/s", "racks_of_service", inputs={"X_world": 100 * 10**6}),
            Worked("128M/s", "racks_of_service", says=1000, inputs={"X_world": 128 * 10**6}),
            Worked("200M/s", "racks_of_service", inputs={"X_world": 200 * 10**6}),
            Worked("300M/s", "racks_of_service", inputs={"X_world": 300 * 10**6}),
        ),
    ),
    Claim(
        "C18",
        "64 times the total parameters buy four times the active ones.",
        lecture_notes.at("section 1, the diminishing returns of sparsity"),
        "64-expert 370M model = dense 1.3B model: 64 times total for 4 times",
        "64 experts are not 64 times the parameters: that model holds 20 times as many, as half "
        "the blocks are routed; it equals a dense model 3.5 to 3.7 times larger, so the exponent "
        "is 0.43, not 1/3.",
        equations=named(
            "effective_parameters saturated_experts parameter_gain sparsity_return sparsity"
        ),
        worked=(
            Worked(
                "1.3B over 370M",
                "parameter_gain",
                says=4,
                inputs={"N_eff": 13 * 10**8, "N_active": 37 * 10**7},
            ),
            Worked("exponent as stated", "sparsity_return", inputs={"x_gain": 4, "sigma": 64}),
        ),
    ),
    Claim(
        "C19",
        "Scale-up domains grow from 8 to 72 to over 500 chips; a rack of 64 holds four of 256 "
        "experts a chip.",
        lecture_notes.at("section 2, table of scale-up domains; hardware, section 3"),
        "8, 72, 500+; 4 experts a chip",
        "Counts packages in one place and dies in another: by package 8, 72, 72 and, for the "
        "576-die rack announced for 2027, 144. Racks hold 72, not 64, and 256 experts do not "
        "divide by 72: the fullest chip has an eighth more than the mean.",
        kind="data",
        equations=("experts_per_chip", "fullest_chip"),
        lecture={"n_experts": 256, "n_group": 72},
        worked=(
            Worked("experts a chip, 64 chips", "experts_per_chip", says=4, inputs={"n_group": 64}),
            Worked("72 chips", "experts_per_chip"),
            Worked("fullest of 72 over the mean", "fullest_chip"),
        ),
    ),
    Claim(
        "C20",
        "Every token travels to its experts and back, a factor of two.",
        lecture_notes.at("section 2, up- and down-projection halves"),
        "factor 2",
        "Holds, weighted by the formats of the two ways (FP8 out, BF16 back is three bytes, not "
        "two or four); routing limited to few nodes sends less.",
        equations=("expert_layer_bytes", "expert_bytes", "expert_exchange_time"),
        note="k_experts*h_exp*(b_disp + b_comb)*(1 - 1/n_group) bytes per position and layer",
    ),
    Claim(
        "C21",
        "Leaving the rack is eight times slower, so a layer of experts stays within one.",
        lecture_hardware.at("section 3, why crossing rack boundaries is a problem"),
        "8 times slower; half the tokens cross at two racks",
        "Holds: half the traffic crosses and the exchange takes four times as long per chip. It "
        "bounds cost, not latency: spread over seven racks or more the same batch is faster "
        "again; and networks differ (9 to 18 times).",
        equations=named(
            "slowdown crossing_share scale_out_penalty break_even_slowdown racks_that_recover"
        ),
        lecture={"n_span": 2, "x_slow": 8},
        worked=(
            Worked("share that crosses", "crossing_share", says=50, unit="%"),
            Worked("exchange over two racks", "scale_out_penalty"),
            Worked("over four", "scale_out_penalty", inputs={"n_span": 4}),
            Worked("racks that recover the speed", "racks_that_recover"),
        ),
    ),
    Claim(
        "C22",
        "An output token costs five times an input token because decode is memory-bound.",
        lecture_notes.at("section 5, decode against prefill"),
        "5 times; 3 to 5 times",
        "Not together with C7 and C12: at twice the critical batch and the context cliff the "
        "roofline ratio is at most 1.5. Five needs a batch of 480, or four times the cliff's "
        "context; a price ratio measures utilisation, not the roofline alone.",
        equations=named("price_ratio batch_for_ratio context_for_ratio ratio_at_twice_critical"),
        lecture=CLIFF | {"rho_price": 5},
        worked=(
            Worked(
                "at twice the critical batch and the cliff",
                "price_ratio",
                says=5,
                inputs={"B": 4800},
            ),
            Worked(
                "batch for a ratio of five, short context", "batch_for_ratio", inputs={"L_ctx": 0}
            ),
            Worked("context for a ratio of five at 2400", "context_for_ratio", unit="tokens"),
        ),
    ),
    Claim(
        "C23",
        "Cost per token falls with the tokens of a pass until arithmetic takes over.",
        lecture_notes.at("section 5, cost per token against tokens per pass"),
        "memory-bound at 1, arithmetic-bound at large L_pass",
        "Holds; the two meet where batch times tokens per pass is the critical batch.",
        equations=("pass_time_per_position", "crossover_pass"),
        worked=(
            Worked("tokens per pass, one sequence", "crossover_pass", inputs={"B": 1}),
            Worked("tokens per pass, 480 sequences", "crossover_pass", inputs={"B": 480}),
        ),
    ),
    Claim(
        "C24",
        "Weights and caches divide over all chips of all stages.",
        lecture_notes.at("section 3, the microbatch math"),
        "c = (N_total + B * L_ctx * bytes/token) / (E * P)",
        "Holds for ideal sharding; deployments keep copies of the weights outside the experts, "
        "and several times as many bytes per chip.",
        equations=("memory_per_chip", "memory_with_copies"),
        lecture=CLIFF | {"n_chips": 72},
        worked=(Worked("one rack", "memory_per_chip", unit="GB"),),
    ),
    Claim(
        "C25",
        "Pipelining divides the weights of a chip but not its caches.",
        lecture_notes.at("section 3, the microbatch math"),
        "P cancels from the cache term",
        "Holds exactly with as many microbatches in flight as stages; fewer leave stages idle and "
        "hold less, more hold more.",
        equations=("pipeline_memory", "pipeline_memory_in_flight", "busy_stages"),
        lecture=CLIFF | {"n_domain": 72, "B_micro": 2400, "n_stages": 4},
        worked=(
            Worked("one stage", "pipeline_memory", unit="GB", inputs={"n_stages": 1}),
            Worked("four stages", "pipeline_memory", unit="GB"),
            Worked(
                "four stages, two microbatches",
                "pipeline_memory_in_flight",
                unit="GB",
                inputs={"n_flight": 2},
            ),
        ),
    ),
    Claim(
        "C26",
        "A larger scale-up domain reads the weights faster, by eight from Hopper to Blackwell.",
        lecture_notes.at("section 3, why scale-up size still matters"),
        "8 times",
        "The formula holds; from 8 to 72 chips the factor is 9.",
        equations=("domain_weight_time", "domain_speedup"),
        lecture={"W_each": 20 * 10**12, "n_domain": 72, "n_before": 8},
        worked=(
            Worked("factor", "domain_speedup", says=8),
            Worked("weights in 72 chips", "domain_weight_time", unit="ms"),
        ),
    ),
    Claim(
        "C27",
        "Four stages at 2 ms a hop add about 10 ms, half of a step.",
        lecture_equations.at("pipeline parallelism; notes, section 3, practical conclusion"),
        "10 ms; 50 %",
        "Three hops are 6 ms (30 %) and four, with the way back, 8 ms (40 %); 10 ms need 2.5 ms "
        "a hop. Bandwidth accounts for well under a millisecond of it: the rest is software.",
        equations=("hops_time", "hop_share", "shipping_time"),
        lecture={"t_hop": 2 * MS, "n_hop": 3},
        worked=(
            Worked("three hops", "hops_time", says=10, unit="ms"),
            Worked("four hops", "hops_time", says=10, unit="ms", inputs={"n_hop": 4}),
            Worked("share of the step", "hop_share", says=50, unit="%"),
            Worked("with four hops", "hop_share", says=50, unit="%", inputs={"n_hop": 4}),
        ),
    ),
    Claim(
        "C28",
        "A rack of 72 holds 13.5 TB, where a trillion weights need one.",
        lecture_equations.at("one rack, one layer of experts; pipeline parallelism"),
        "13.5 TB against 1 TB",
        "Holds: 13.0 to 13.8 TB by the listing; weights of one byte take a fourteenth.",
        equations=("rack_memory", "floor_over_drain"),
        lecture={"n_domain": 72, "M_each": 192 * 10**9, "N_total": 10**12},
        worked=(
            Worked("72 chips of 192 GB", "rack_memory", says=Fraction(27, 2), unit="TB"),
            Worked("weights", "floor_over_drain", unit="%", inputs={"M": Fraction(27, 2) * 10**12}),
        ),
    ),
)
