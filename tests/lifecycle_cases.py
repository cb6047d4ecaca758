"""The lifecycle that its tests change."""


def scenario(**changes):
    """Served on one server of H100, trained on the same chip, as good as a 30B model."""
    return {
        "problem": "lifecycle",
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
