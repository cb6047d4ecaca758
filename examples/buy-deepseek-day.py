"""DeepSeek's published day: what its tokens should have cost, and the margin at its list prices.

27 to 28 February 2025: 226.75 nodes of eight H800 on average, at $2 a chip and hour, read 608
billion input tokens (342 of them from a cache) and wrote 168 billion. A unit of its fleet was four
nodes that read prompts and eighteen that decode, at 20 to 22 tokens per second and user.
"""

import planner

INPUT, CACHED, OUTPUT = 608e9, 342e9, 168e9  # tokens of the day
NODES, PEAK, RENT = 226.75, 278, 2.0  # nodes on average and at most; USD per chip and hour
CONTEXT = 4989  # tokens of cache of an output token, on average
ANSWER = CONTEXT / (INPUT / OUTPUT + 0.5)  # a prompt is followed by half its answer, on average
LIST = {"input": "$0.55/Mtok", "cached": "$0.14/Mtok", "output": "$2.19/Mtok"}
NIGHT = {"input": "$0.135/Mtok", "cached": "$0.035/Mtok", "output": "$0.55/Mtok"}
HOURS = 8 / 24  # of the day at night prices, 16:30 to 00:30 UTC


def scenario(prices: list[dict[str, object]]) -> dict[str, object]:
    """One unit of the fleet, and a host whose prices these are."""
    return {
        "problem": "serving", "model": "deepseek-v3", "system": "hgx-h800", "chips": 176,
        "price": f"${RENT}/hour",
        "workload": {"input_tokens": ANSWER * INPUT / OUTPUT, "output_tokens": ANSWER,
                     "cached_input": CACHED / INPUT},
        "promises": {"tpot": "50 ms"},
        "choose": {"weights": "fp8"},
        "buy": {"prices": prices},
    }  # fmt: skip


day = planner.solve(scenario([{"host": "deepseek", **LIST}])).answer.plan.buy
night = planner.solve(
    scenario([
        {"host": "deepseek", **LIST, "share": 1 - HOURS},
        {"host": "deepseek", **NIGHT, "share": HOURS},
    ])
).answer.plan.buy  # fmt: skip

tokens = (INPUT + OUTPUT) / 1e6
published = NODES * 8 * 24 * RENT
low, high = (tokens * end for end in day.ours.band)
print(f"{'cost of the day':<34}{'USD':>10}{'per Mtok':>12}")
for name, usd in (
    ("published, 226.75 nodes", published),
    ("planned, units that are full", tokens * day.ours.full),
    ("  band, from", low), ("  band, to", high),
    ("published, 278 nodes all day", published * PEAK / NODES),
):  # fmt: skip
    print(f"{name:<34}{usd:>10,.0f}{usd / tokens:>12.3f}")
print(f"\n{'planned over published':<34}{tokens * day.ours.full / published:>10.2f}")
print(f"\n{'revenue at':<34}{'USD':>10}{'cost of it':>12}{'mark-up':>10}")
for name, buy in (("list prices, all day", day), ("with night prices for 8 hours", night)):
    revenue = tokens * buy.hosts.median
    print(f"{name:<34}{revenue:>10,.0f}{buy.break_even.utilisation:>12.1%}"
          f"{buy.offers[0].markup:>10.2f}")  # fmt: skip
