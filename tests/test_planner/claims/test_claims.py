"""The physical column of the claims, and the table that `planner derive claims` prints."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

from formulas.claims import all_claims
from formulas.claims.claim import RULE
from formulas.export import FORMATS
from formulas.registry import tags
from planner.claims import physical, physical_ids
from planner.claims.physical_column import (
    acceptance_row,
    chip_case,
    edge_of_arithmetic,
    model_case,
    rounds_until_mixed,
)
from planner.report.text.derivations import claims_document, claims_rows, claims_text
from tests.loops import for_all

CLAIMS = {claim.id: claim for claim in all_claims()}

# Published or recomputed elsewhere: {claim: {part of the label: (number, tolerance)}}.
PUBLISHED = {
    "C2": {"deepseek-v3": (4400, 0.03), "llama-3.1-70b": (54_000, 0.03)},
    "C5": {"deepseek-v3 on h100": (303, 0.005)},
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


@pytest.fixture(scope="module")
def rows():
    """Every claim as plain data, by its name: proved once, when a test first asks."""
    return {row["id"]: row for row in claims_rows()}


@for_all(("claim", "label", "expected"), CASES)
def test_physical_numbers(claim, label, expected):
    """Catalogue figures through the lecture's equations, beside numbers found elsewhere."""
    number, tolerance = expected
    found = [each.value for each in physical(claim) if label in each.text]
    assert found[0] == pytest.approx(number, rel=tolerance)


@for_all("claim", physical_ids())
def test_every_physical_number_names_what_it_comes_from(claim, rows):
    """An equation that the claim rests on, and catalogue entries."""
    for each in physical(claim):
        assert each.source
        assert not each.equation or each.equation in rows[claim]["equations"]


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


def test_every_row_is_checked_and_sourced(rows):
    """C1 to C57 once, with equations that check, a source, a verdict and a reason."""
    assert list(rows) == [f"C{number}" for number in range(1, 58)]
    for row in rows.values():
        assert row["checked"]
        assert row["source"]
        assert row["verdict"] in {"holds", "near", "off", "far", "unnumbered"}
        assert row["why"].endswith(".")


# The word of the rule, and the largest factor between a number of the lecture and ours.
JUDGED = {
    "C4": ("far", 18.3), "C5": ("off", 3.33), "C8": ("near", 1.455), "C9": ("off", 8.1),
    "C12": ("holds", 1), "C14": ("off", 1.96), "C17": ("off", 2.34), "C27": ("off", 1.67),
    "C28": ("holds", 1.02), "C34": ("near", 1.296), "C36": ("off", 4.96), "C45": ("far", 277),
    "C52": ("near", 1.375), "C53": ("far", 232), "C54": ("near", 1.5), "C55": ("near", 1.07),
    "C57": ("far", 25.9),
}  # fmt: skip


@for_all("claim", JUDGED)
def test_one_rule_judges_all_claims_alike(claim, rows):
    """A month too many is near, a disk thirty and flash 277 times off is far."""
    word, factor = JUDGED[claim]
    verdict = acceptance_row(CLAIMS[claim]).verdict
    assert (verdict.word, verdict.farthest.factor) == (word, pytest.approx(factor, rel=0.01))
    assert rows[claim]["verdict"] == word


def test_no_sentence_passes_a_verdict_of_its_own():
    """The word is computed; the sentence beside it says why."""
    for claim in CLAIMS.values():
        assert not re.search(r"\b[Hh]olds\b|[Dd]oes not hold", claim.why), claim.id


CODES = re.compile(
    r"\b[A-Z]*\d*[A-Z]+\d+\w*|\b\d+[A-Z]\w*|\{\w+\}|\b[A-Za-z]_\w+"
)  # C22, FP8, 6ND, B_0
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:/\d+)?")


def stands_for(number, value):
    """Whether a value rounds to a printed number, in some power of ten or as a percentage."""
    digits = len(number.replace(".", "").strip("0")) or 1
    shown = float(Fraction(number))
    powers = (10.0**power for power in (0, 2, -2, 3, -3, 6, -6, 9, -9, 12, -12))
    off = 0.5 * 10 ** (1 - digits)
    return any(value * power / shown == pytest.approx(1, rel=off) for power in powers)


@for_all("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_every_number_of_a_reason_is_stated_or_computed(claim):
    """A figure that changes in the catalogue is not left standing in a sentence."""
    row = acceptance_row(claim)
    compared = (*row.verdict.stated, *row.verdict.catalogue)
    values = [*claim.values(), *(each.low for each in compared)]
    values += [each.value for each in row.physical if each.value is not None]
    inputs = [claim.lecture, *(each.inputs for each in claim.worked)]
    values += [float(value) for case in inputs for value in case.values()]
    labels = [each.what for each in (*claim.worked, *row.physical)]
    stated = NUMBER.findall(" ".join([claim.statement, claim.lecture_says, *labels]))
    for number in NUMBER.findall(CODES.sub("", claim.why)):
        known = number in stated or any(stands_for(number, value) for value in values)
        assert known, f"{claim.id} says {number}, which nothing gives"


@pytest.mark.parametrize(("claim", "words"), [("C9", "3 of 15 pairs"), ("C14", "0 of 8 chips")])
def test_claims_of_all_chips_say_how_many_agree(claim, words, rows):
    """Counted by the rule, not typed."""
    assert words in rows[claim]["why"]
    assert sum(each["factor"] <= 1.05 for each in rows[claim]["judged"][1:]) == int(words[0])


def test_alone_on_deepseek_a_user_costs_what_a_dense_model_would():
    """C5 by C3 and C4: only the picked experts are read, so it is near the chip's ratio."""
    alone, sixteen, many = (each.value for each in physical("C5"))
    touched, floor = (physical("C3")[0].value, chip_case("h100", "fp8"))
    active = model_case("deepseek-v3")["N_active"] / 1e9
    ratio = floor["F"] / (2 * floor["W"])
    assert alone == pytest.approx(ratio * touched / active, rel=1e-9)
    assert alone > sixteen > many > 1


def test_rounds_until_everything_depends_on_everything():
    """C56: three rounds of Feistel, six of a butterfly of 64; shifting alone never mixes."""
    assert [each.value for each in physical("C56")] == [3, 6]
    assert rounds_until_mixed([np.eye(4, dtype=bool)] * 9) is None
    assert rounds_until_mixed([np.ones((4, 4), dtype=bool)]) == 1


def test_rows_are_plain_data():
    """They survive JSON unchanged."""
    rows = claims_rows()
    assert json.loads(json.dumps(rows)) == rows


def test_the_table_shows_both_sides():
    """The lecture's number, ours, the physical ones and a verdict."""
    text = claims_text([claim for claim in all_claims() if claim.id == "C27"])
    parts = (
        "10 ms; 50 %",
        "three hops: 6 ms",
        "2400 vectors over 72 ports",
        "off: 0 of 4 from its",
    )
    for part in (*parts, "Three hops are", RULE[:40]):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_table_counts_its_verdicts():
    """The last line: how many claims hold, and how many the other words are for."""
    assert claims_text(all_claims()).splitlines()[-1] == (
        "57 claims: holds 18, near 9, off 19, far 6, unnumbered 5."
    )


def test_claims_and_derivations_name_each_other():
    """What a claim rests on bears its tag, so the page of a derivation can name the claim."""
    for claim in CLAIMS.values():
        for name in claim.equations:
            assert claim.id in tags(name), f"{claim.id} rests on {name}"


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "text"])
def test_the_table_and_what_it_rests_on_in_every_format(form):
    """Rule, tally, every claim; the notes of a derivation name the claims with their verdicts."""
    written = claims_document(form)
    for claim in CLAIMS:
        assert f"{claim}. " in written
    assert "One rule gives every verdict" in written
    assert "57 claims" in written
    assert written.count("derived in") >= 50
