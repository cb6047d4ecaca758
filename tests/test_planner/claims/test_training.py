"""The physical column of claims C29 to C51: laws, chips, models and storage of the catalogues."""

import pytest

from planner.claims import physical, physical_ids
from tests.loops import for_all

# Published or recomputed elsewhere: {claim: {part of the label: (number, tolerance)}}.
PUBLISHED = {
    "C35": {
        "approach-3-rounded, tokens": (118, 0.01), "approach-3-rounded, 200T": (17, 0.01),
        "muennighoff-2023, tokens": (19.6, 0.01),
    },
    "C36": {"besiroglu": (20.15, 1e-3), "approach-3:": (47.28, 1e-3), "rounded": (50.58, 1e-3)},
    "C38": {"h100, fp8": (1693, 0.01)},
    "C39": {"v4-pro": (4.9, 0.02), "v4-flash": (3.44, 0.02), "nano": (3.1, 0.02)},
    "C45": {
        "h100": (23.9e-3, 0.01), "gb300": (36e-3, 0.01), "host-dram": (4.06, 0.01),
        "6550": (85.3 * 60, 0.01), "exos": (31.7 * 3600, 0.01),
    },
    "C46": {"limit": (0.2, 0.01)},
    "C53": {"deepseek-v3": (4311, 1e-3), "llama-3.1-70b": (53_030, 1e-3)},
    "C52": {"a100 to h100": (3.35 / 2.039, 0.01)},
    "C54": {"four racks": (58 / 4 * 8 * 3 / 2, 1e-9)},
    "C57": {"8 h200": (59.5, 0.01)},
    "C47": {"deepseek-v3: holds": (152_000, 0.01), "2 kB per token: holds": (2.6e6, 0.03)},
}  # fmt: skip
CASES = [(claim, *item) for claim, numbers in PUBLISHED.items() for item in numbers.items()]


@for_all(("claim", "label", "expected"), CASES)
def test_physical_numbers(claim, label, expected):
    """Catalogue figures through the claims' equations, beside numbers found elsewhere."""
    number, tolerance = expected
    found = [each.value for each in physical(claim) if label in each.text]
    assert found[0] == pytest.approx(number, rel=tolerance)


def test_which_claims_have_physical_numbers():
    """Where a real chip, model, law or device has something to say."""
    mine = [name for name in physical_ids() if int(name[1:]) >= 29]
    assert mine == ["C30", "C35", "C36", "C37", "C38", "C39", "C44", "C45", "C46", "C47"] + [
        f"C{number}" for number in range(52, 58)
    ]


def test_attention_is_counted_on_top():
    """C30: sequences of 8192, half of the pairs, 4·layers·heads·width per pair, MLA expanded."""
    llama, deepseek = (each.value for each in physical("C30"))
    assert llama == pytest.approx(6 * (1 + 4 * 80 * 64 * 128 * 4096 / (2 * 69.5e9)), rel=1e-2)
    pair = 2 * 61 * 128 * (192 + 128)
    assert deepseek == pytest.approx(6 * (1 + pair * 4096 / (2 * 36.6e9)), rel=1e-2)


def test_two_kilobytes_are_less_than_most_models_hold():
    """C39: of the models shown only compressed caches come near the lecture's 2 kB."""
    sizes = [each.value for each in physical("C39")]
    assert min(sizes) > 2
    assert max(sizes) > 100


def test_a_longer_prefix_is_kept_longer():
    """C44: attention adds to what computing again costs; minutes in HBM, not milliseconds."""
    short, long = (each.value for each in physical("C44"))
    assert 60 < short < long < 3600
