"""DeepSeek's published day: what its tokens should have cost, and the margin at its list prices.

27 to 28 February 2025: 226.75 nodes of eight H800 on average, at $2 a chip and hour, read 608
billion input tokens (342 of them from a cache) and wrote 168 billion. A unit of its fleet was four
nodes that read prompts and eighteen that decode, at 20 to 22 tokens per second and user.

Of the hours only the average and the most of the nodes were published. They are taken as one wave a
day that has both, lowest in the middle of the night prices: so that fewer tokens are sold at night
than hours are night, and the fleet follows the load in whole units.
"""

import math

import planner

INPUT, CACHED, OUTPUT = 608e9, 342e9, 168e9  # tokens of the day
NODES, PEAK, RENT = 226.75, 278, 2.0  # nodes on average and at most; USD per chip and hour
CONTEXT = 4989  # tokens of cache of an output token, on average
ANSWER = CONTEXT / (INPUT / OUTPUT + 0.5)  # a prompt is followed by half its answer, on average
LIST = {"input": "$0.55/Mtok", "cached": "$0.14/Mtok", "output": "$2.19/Mtok"}
NIGHT = {"input": "$0.135/Mtok", "cached": "$0.035/Mtok", "output": "$0.55/Mtok"}
NIGHT_HOURS = 8  # at night prices, 16:30 to 00:30 UTC
SWING = PEAK / NODES - 1  # of the load around its mean
AT_NIGHT = NIGHT_HOURS / 24 - SWING * math.sin(math.pi * NIGHT_HOURS / 24) / math.pi


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


def sold(at_night: float):
    """The plan beside its own list prices, a share of the tokens sold at those of the night."""
    prices = [{"host": "deepseek", **LIST, "share": 1 - at_night}]
    prices += [{"host": "deepseek", **NIGHT, "share": at_night}] if at_night else []
    return planner.solve(scenario(prices)).answer.plan.buy


day, by_hours, by_load = (sold(share) for share in (0.0, NIGHT_HOURS / 24, AT_NIGHT))
tokens = (INPUT + OUTPUT) / 1e6
published = NODES * 8 * 24 * RENT
low, high = (tokens * end for end in day.ours.band)

# The load of every hour in whole units, its middle counted from the middle of the night.
hourly = [1e6 * tokens / 24 * (1 - SWING * math.cos(math.tau * (h + 0.5) / 24)) for h in range(24)]
units = [math.ceil(load / (day.ours.tokens_per_day / 24)) for load in hourly]
unit_hour = day.ours.usd_per_day / 24
followed, at_peak = unit_hour * sum(units), unit_hour * max(units) * 24

print(f"{'cost of the day':<38}{'USD':>10}{'per Mtok':>12}")
for name, usd in (
    ("published, 226.75 nodes", published),
    ("planned, units that are full", tokens * day.ours.full),
    ("  band, from", low), ("  band, to", high),
    (f"planned by the hour, {min(units)} to {max(units)} units", followed),
    (f"planned for the peak, {max(units)} units all day", at_peak),
    ("published, 278 nodes all day", published * PEAK / NODES),
):  # fmt: skip
    print(f"{name:<38}{usd:>10,.0f}{usd / tokens:>12.3f}")
print(f"\n{'planned over published':<38}{tokens * day.ours.full / published:>10.2f}")
print(f"{'planned by the hour over published':<38}{followed / published:>10.2f}")
print(f"\n{'revenue at':<38}{'USD':>10}{'cost of it':>12}{'mark-up':>10}")
for name, buy in (
    ("list prices, all day", day),
    (f"night prices, {AT_NIGHT:.1%} by the load", by_load),
    (f"night prices, {NIGHT_HOURS / 24:.1%} by the clock", by_hours),
):  # fmt: skip
    revenue = tokens * buy.hosts.median
    print(f"{name:<38}{revenue:>10,.0f}{followed / revenue:>12.1%}{revenue / followed:>10.2f}")
