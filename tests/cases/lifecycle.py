"""The lifecycle that its tests change, and lifecycles drawn at random."""

import random


def scenario(**changes):
    """Served on one server of H100, trained on the same chip, as good as a 30B model."""
    return {
        "problem": "lifecycle",
        "units": "base",
        "quality": {"like": {"n_active": 30e9}},
        "inference": {"tokens": 2e13},
        "serving": {
            "system": "hgx-h100",
            "chips": [1, 2, 4, 8],
            "workload": {"input_tokens": 3000, "output_tokens": 600},
            "promises": {"tpot": "40 ms", "ttft": "2 s"},
            "choose": {"weights": "fp8", "mode": "aggregated"},
        },
        "phases": {"pretrain": {"system": "hgx-h100"}},
        "draws": 60,
    } | changes


SYSTEMS = (
    ("hgx-h100", [1, 2, 4, 8]), ("hgx-h200", [1, 2, 4, 8]), ("hgx-h100", [1]), ("hgx-h100", [8]),
    ("hgx-b200", [1, 2, 4, 8]), ("gb200-nvl72", [4, 8, 16]), ("hgx-a100", [2, 4, 8]),
)  # fmt: skip
LAWS = (
    "besiroglu-2024", "besiroglu-2024", "hoffmann-2022-approach-3", "sardana-2024",
    "muennighoff-2023", "besiroglu-2024 + clark-2022-s-base", "ludziejewski-2025",
)  # fmt: skip
LIKE = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "deepseek-v3")


def drawn(rng: random.Random):
    """A lifecycle on machines, by a law, with a demand and promises that somebody might have."""
    system, chips = rng.choice(SYSTEMS)
    law = rng.choice(LAWS)
    sparse = law in LAWS[-2:]
    found = {
        "problem": "lifecycle", "units": "base",
        "law": law,
        "draws": 0,
        "quality": {"like": {"n_active": 10 ** rng.uniform(9.3, 11.2)}},
        "inference": _demand(rng),
        "serving": _serving(rng, system, chips),
        "phases": {"pretrain": {"system": rng.choice(("hgx-h100", "hgx-b200")),
                                "mfu": rng.uniform(0.25, 0.5)}},
    }  # fmt: skip
    if rng.random() < 0.25:
        reward = {"needed": 0.5, "start": 0.2, "middle": 10 ** rng.uniform(20, 23),
                  "steepness": 1.7}  # fmt: skip
        tokens = {"tokens": 10 ** rng.uniform(9, 12), "k": rng.uniform(2, 6)}
        found["rl"] = rng.choice((tokens, {"reward": reward}))
        found["phases"]["rl"] = {"system": "hgx-h100", "mfu": 0.15}
    if sparse:
        found["choose"] = {"sparsity": rng.choice((4, 8, 16))}
        found["family"] = {"attention": rng.choice(("gqa", "mla"))}
    elif rng.random() < 0.35:
        found["family"] = rng.choice(({"attention": "mla"}, {"like": rng.choice(LIKE)}))
    if rng.random() < 0.15:
        found["data"] = {"unique": 10 ** rng.uniform(11.5, 13.5)}
    return found


def _demand(rng):
    if rng.random() < 0.5:
        return {"tokens": 10 ** rng.uniform(11, 15)}
    return {"rate": 10 ** rng.uniform(5, 7.5), "lifetime": 10 ** rng.uniform(6.5, 8),
            "growth": rng.choice((0, rng.uniform(-0.5, 2))),
            "discount": rng.choice((0, 0.1))}  # fmt: skip


def _serving(rng, system, chips):
    promises = {"tpot": rng.choice((0.01, 0.02, 0.03, 0.05, 0.1)),
                "ttft": rng.choice((0.3, 0.5, 1, 2, 5))}  # fmt: skip
    weights = rng.choice(("bf16", "int8") if system == "hgx-a100" else ("fp8", "bf16", None))
    return {
        "system": system,
        "chips": chips,
        "workload": {"input_tokens": round(10 ** rng.uniform(2, 4.3)),
                     "output_tokens": round(10 ** rng.uniform(1.5, 3.6))},
        "promises": {key: value for key, value in promises.items() if rng.random() < 0.6},
        "choose": {"mode": rng.choice(("aggregated", "aggregated", "disaggregated"))}
        | ({} if weights is None else {"weights": weights}),
        "utilisation": rng.choice((1, rng.uniform(0.1, 1))),
    }  # fmt: skip
