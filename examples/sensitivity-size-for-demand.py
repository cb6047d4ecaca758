"""Which model size for which demand? The same quality, from a few users to very many.

Run with `python examples/sensitivity-size-for-demand.py`; it prints
`sensitivity-size-for-demand.txt`. The more is served, the smaller the model that is worth its
longer training; the last columns say what one percent more demand, or the quality of a model one
percent larger, adds to the cost of the whole life.
"""

import planner

LIFE = {
    "problem": "lifecycle",
    "quality": {"like": {"n_active": "30B"}},
    "serving": {
        "system": "hgx-h200",
        "chips": 1,
        "workload": {"input_tokens": 3000, "output_tokens": 600},
        "promises": {"ttft": "3 s", "tpot": "50 ms"},
        "choose": {"weights": "fp8"},
    },
    "phases": {"pretrain": {"system": "hgx-h100"}},
    "draws": 0,
}

print("tokens served   size     trained on   over-training   cost      demand    quality")
for demand in ("100 B", "1 T", "10 T", "100 T"):
    plan = planner.solve({**LIFE, "inference": {"tokens": f"{demand} tokens"}})
    best, worth = plan.chosen, planner.sensitivity(plan)
    print(
        f"{demand:>13} {best['n_active'] / 1e9:5.1f} B {best['tokens']['pretrain'] / 1e12:9.2f} T"
        f" {best['over_training']:14.1f}x {best['cost']['total']['usd'] / 1e6:9.2f} M$"
        f" {worth['inference.tokens']:+7.2f} % {worth['quality.like.n_active']:+8.2f} %"
    )
