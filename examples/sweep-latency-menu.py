"""A menu of speeds: what a slow, a normal and a fast mode cost, for one model on three systems.

Run with `python examples/sweep-latency-menu.py`; it prints `sweep-latency-menu.txt`. Every line is
the cheapest plan on 32 chips that gives each user at least so many tokens per second. The same as
a command, with the whole table in a file and as a picture:

    planner sweep menu.yaml --over system=hgx-h200,hgx-b200,gb200-nvl72 \
        --over promises.tokens_per_s_per_user=10,20,40,80,160 --out menu.csv --plot menu.svg
"""

import planner

SCENARIO = {
    "problem": "serving",
    "model": "deepseek-v3",
    "system": "hgx-h200",
    "chips": 32,
    "workload": {"input_tokens": 4000, "output_tokens": 1000},
    "promises": {"ttft": "5 s"},
    "choose": {"mode": "aggregated"},
}
OVER = {
    "system": ["hgx-h200", "hgx-b200", "gb200-nvl72"],
    "promises.tokens_per_s_per_user": [10, 20, 40, 80, 160],
}

table = planner.sweep(SCENARIO, OVER)
for system in OVER["system"]:
    rows = table.rows(system=system)
    print(f"{system}\n  tokens/s   price  against   tokens/s         layout")
    print("  per user  $/Mtok  slowest   per chip")
    slowest = next(row["usd_per_mtok"] for row in rows if row["status"] == "optimal")
    for row in rows:
        speed, price = row["promises.tokens_per_s_per_user"], row["usd_per_mtok"]
        if row["status"] == "optimal":
            ratio, pace = price / slowest, row["tokens_per_s_per_chip"]
            print(f"{speed:>10,.0f} {price:7.3f} {ratio:7.1f}x {pace:10,.0f}   {row['layout']}")
        else:
            print(f"{speed:>10,.0f}       -        -          -   {row['status']}: {row['reason']}")
    print()

cheapest = {
    speed: min(
        (row for row in table.rows(**{"promises.tokens_per_s_per_user": speed}) if
         row["status"] == "optimal"),
        key=lambda row: row["usd_per_mtok"],
        default=None,
    )
    for speed in OVER["promises.tokens_per_s_per_user"]
}  # fmt: skip
print("the cheapest at each speed: " + ", ".join(
    f"{speed} tokens/s {row['system'] if row else 'none'}" for speed, row in cheapest.items()
))  # fmt: skip
