"""The price of speed: what a faster answer costs, on the lecture's own chips and model.

Run with `python examples/price-of-speed.py`; it prints `price-of-speed.txt`. A rack of 72 chips
reads 100 G of 800 G parameters for every token, and 20 kB of cache for each of 8,000 tokens before.
"""

import planner

RACK = {
    "problem": "serving",
    "assumptions": "lecture",
    "model": {
        "total_params": "800B", "active_params": "100B", "bytes_per_weight": "1 byte/param",
        "kv_bytes_per_token": "20 kB/token",
    },
    "system": {
        "memory": "288 GB", "memory_bandwidth": "20 TB/s", "chips_per_domain": 72,
        "flops": {"bf16": "6000 TFLOP/s", "fp8": "6000 TFLOP/s"},
    },
    "chips": 72,
    "price": "$10/hour",
    "workload": {"input_tokens": 8000, "output_tokens": 1000},
    "choose": {"mode": "decode", "tp": 72},
}  # fmt: skip

found = planner.pareto(RACK, points=15)
print(found)

# Time that no batch shortens is a share w of the normal step; then s times the speed costs
# (1 - w)/(1 - s w) times the price, and no more than 1/w times the speed can be had.
rows, marks = found.rows, found.marks
normal = rows[marks["normal"]]
step, alone = normal["tpot"], rows[0]["tpot"]
w = (normal["batch"] * alone - step) / ((normal["batch"] - 1) * step)
print(f"\nreading the weights is {w:.0%} of a normal step; the limit is {1 / w:.2f}x its speed")
print("speed  price  (1 - w)/(1 - s w)")
for row in rows[1 : marks["normal"] + 1 : 2]:
    s, price = step / row["tpot"], row["usd_per_mtok"] / normal["usd_per_mtok"]
    print(f"{s:5.2f}x {price:5.2f}x {(1 - w) / (1 - s * w):9.2f}x")
