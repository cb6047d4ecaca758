"""What is one percent of memory bandwidth worth? Five models, one H200 machine, the same promise.

Run with `python examples/sensitivity-one-percent.py`; it prints `sensitivity-one-percent.txt`. Cost
is proportional to the rent, so what one percent saves could be paid on top of the rent instead.
"""

import planner

MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-235b-a22b", "gpt-oss-120b", "glm-4.5-air")
RENT = 3.50  # USD per chip and hour

print("one percent more of       bandwidth   arithmetic  fast network  bandwidth is worth")
for model in MODELS:
    found = planner.sensitivity(
        {
            "problem": "serving",
            "model": model,
            "system": "hgx-h200",
            "chips": 8,
            "price": f"${RENT}/hour",
            "workload": {"input_tokens": 3000, "output_tokens": 1000},
            "promises": {"ttft": "2 s", "tpot": "40 ms"},
            "choose": {"mode": "aggregated"},
        },
        output="cost",
    )
    bandwidth, arithmetic = found["system.memory_bandwidth"], found["system.flops"]
    network, worth = found["system.scale_up"], -found["system.memory_bandwidth"] * RENT
    print(
        f"{model:<22} {bandwidth:+10.2f} % {arithmetic:+10.2f} % {network:+11.2f} %"
        f"   {worth:10.2f} cents per chip and hour"
    )
