"""The physical column of the claims, and the table that `planner derive claims` prints."""

import json

import pytest

from formulas.claims import all_claims
from planner.claims import physical, physical_ids
from planner.claims.physical_column import edge_of_arithmetic
from planner.report.text.derivations import claims_rows, claims_text

ROWS = {row["id"]: row for row in claims_rows()}
SERVING = [f"C{number}" for number in range(1, 29)]

# Published or recomputed elsewhere: {claim: {part of the label: (number, tolerance)}}.
PUBLISHED = {
    "C2": {"deepseek-v3": (4400, 0.03), "llama-3.1-70b": (54_000, 0.03)},
    "C5": {"deepseek-v3 on h100": (5361, 0.02)},
    "C9": {
        "a100, bf16": (153, 0.03), "a100, int8": (153, 0.03), "h100, bf16": (295, 0.01),
        "h100, fp8": (295, 0.01), "h200, fp8": (206, 0.01), "b200, fp4": (281, 0.01),
        "gb200, fp4": (312, 0.01), "gb300, fp4": (469, 0.01), "rubin, fp4": (398, 0.01),
        "rubin, bf16": (182, 0.01),
    },
    "C10": {"deepseek-v3, total": (17.87, 0.03), "deepseek-v4-flash, total": (20.6, 0.05)},
    "C12": {"in flight": (12_690, 0.01), "over the critical": (2.4, 0.03)},
    "C13": {
        "minimax-m2": (290, 0.05), "qwen3-235b": (768, 0.03), "llama-3.1-70b": (1435, 0.01),
        "deepseek-v3 on h100, fp8, attention aside": (3562, 0.02), "kimi-k3": (25_000, 0.05),
        "nemotron-3-ultra": (30_000, 0.05), "deepseek-v4-pro": (34_000, 0.05),
    },
    "C14": {
        "a100": (39, 0.02), "h100": (23.9, 0.01), "h200": (29.4, 0.01), "gb200": (23.25, 0.05),
        "gb300": (36, 0.01),
    },
    "C18": {
        "s-base": (1.369, 1e-3), "rl-r": (0.998, 1e-3), "hash": (1.116, 1e-3),
        "refit": (1.391, 2e-2), "total over active": (20.4, 0.01), "exponent": (0.434, 0.01),
    },
    "C19": {"hgx": (8, 0), "gb200": (72, 0), "vera": (72, 0), "ultra": (144, 0)},
    "C20": {"layer": (172, 0.02), "per token:": (9.98, 0.02), "scale-up": (0.36, 0.02),
            "scale-out": (6.6, 0.02)},
    "C21": {"gb200-nvl72:": (18, 0), "gb300-nvl72:": (9, 0)},
    "C24": {"as deployed": (22, 0.02), "evenly": (4.7, 0.02)},
    "C27": {"72 ports": (0.0096, 0.01), "1 port": (0.69, 0.01)},
    "C28": {"gb200": (13.4, 0.01)},
}  # fmt: skip
CASES = [(claim, *item) for claim, numbers in PUBLISHED.items() for item in numbers.items()]


@pytest.mark.parametrize(("claim", "label", "expected"), CASES)
def test_physical_numbers(claim, label, expected):
    """Catalogue figures through the lecture's equations, beside numbers found elsewhere."""
    number, tolerance = expected
    found = [each.value for each in physical(claim) if label in each.text]
    assert found[0] == pytest.approx(number, rel=tolerance)


@pytest.mark.parametrize("claim", physical_ids())
def test_every_physical_number_names_what_it_comes_from(claim):
    """An equation that the claim rests on, and catalogue entries."""
    for each in physical(claim):
        assert each.source
        assert not each.equation or each.equation in ROWS[claim]["equations"]


def test_hopper_and_blackwell_drain_more_slowly_than_the_lecture_says():
    """C14: 22 to 36 ms, none in the lecture's 15 to 20."""
    drains = {each.what: each.value for each in physical("C14")}
    recent = [drains[name] for name in ("h100", "h200", "b200", "b300", "gb200", "gb300")]
    assert min(recent) > 22
    assert max(recent) <= 36
    assert drains["rubin"] < 15


@pytest.mark.parametrize(("chip", "exists"), [("h20", False), ("h200", False), ("h100", True)])
def test_absorbed_latent_attention_has_an_edge_on_some_chips_only(chip, exists):
    """Result 1: 484 FLOP per cached byte of DeepSeek-V3 in FP8, beside F/W of the chip."""
    found = edge_of_arithmetic("deepseek-v3", chip, "fp8")
    assert (found.value is not None) == exists
    assert exists or "no such context" in found.text


def test_grouped_queries_have_an_edge_on_every_chip():
    """Result 1: Llama does 16 FLOP per cached byte, less than any chip's ratio."""
    for chip in ("h20", "h200", "h100", "b200"):
        assert edge_of_arithmetic("llama-3.1-70b", chip, "fp8").value > 1000


def test_coverage_moves_the_menu():
    """Result 3: the share that 6 times at 2.5 times implies falls to 5/14 as batches grow."""
    shares = [each.value for each in physical("C6")]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(5 / 14, rel=0.01)
    assert shares[0] > 0.9


def test_a_claim_without_figures_has_none():
    """Nothing is made up where the catalogues have nothing to add."""
    assert physical("C1") == ()


# -- the table -------------------------------------------------------------------------------------


def test_every_row_is_checked_and_sourced():
    """C1 to C51 once, with equations that check, a source and a verdict."""
    assert list(ROWS) == [f"C{number}" for number in range(1, 52)]
    for row in ROWS.values():
        assert row["checked"]
        assert row["source"]
        assert row["verdict"]


def test_rows_are_plain_data():
    """They survive JSON unchanged."""
    rows = claims_rows()
    assert json.loads(json.dumps(rows)) == rows


def test_the_table_shows_both_sides():
    """The lecture's number, ours, the physical ones and a verdict."""
    text = claims_text([claim for claim in all_claims() if claim.id == "C27"])
    for part in ("10 ms; 50 %", "three hops: 6 ms", "2400 vectors over 72 ports", "Three hops are"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_table_counts_what_reproduces():
    """The last line says how many claims give numbers and how many of them agree."""
    claims = [claim for claim in all_claims() if claim.id in SERVING]
    assert "28 claims; 17 give numbers, of which 10 come out" in claims_text(claims)
