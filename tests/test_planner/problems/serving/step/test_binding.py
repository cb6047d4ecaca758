"""The values of a step's symbols, by hand: of a model, a chip, a workload and a layout."""

from dataclasses import replace
from math import comb, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from planner.architecture import model_sizes
from planner.architecture.layers import CacheKind
from planner.catalogue.chips import Chip, ChipPower
from planner.catalogue.models import load
from planner.network.layout_collectives import DECODE, PREFILL, Exchange, Reduction, rounds
from planner.problems.serving.advice.grounds import imbalance
from planner.problems.serving.profiled import LECTURE
from planner.problems.serving.step import binding
from planner.problems.serving.step.binding import (
    contexts,
    copies_to_domains,
    engine_values,
    expert_imbalance,
    layout_values,
    peaks,
    shared_values,
)
from tests.cases.serving import columns, dense, question, sparse
from tests.loops import for_all
from topologies import group_rate

SPARSE, DENSE = sparse(layers=5, experts=8, active=2), dense(layers=6)
# tp, pp, cp, dp, ep, expert tp, replicas, chips, halves
ROWS = [
    (1, 1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 2, 4, 1, 3, 25, 2),
    (4, 3, 1, 1, 2, 2, 1, 12),
    (2, 4, 2, 2, 1, 4, 1, 32),
]
LAYOUTS = columns(ROWS)
NAMES = ("tp", "pp", "cp", "dp", "ep", "xtp", "n_rep", "n_chips", "n_half")


def at(task, layouts=LAYOUTS, **options):
    """Values of all symbols that a layout fixes, as lists."""
    values = layout_values(task, layouts, layouts.replica_chips, **options)
    assert all(each.dtype.kind == "f" for name, each in values.items())
    return {name: each.tolist() for name, each in values.items()}


def test_a_layout_of_a_model_with_experts_by_hand():
    """Five layers of eight experts, two KV heads, each symbol counted."""
    values = at(question(SPARSE, positions_per_step=3.0))
    for place, name in enumerate(NAMES):
        assert values[name] == [(*row, 1)[place] for row in ROWS]
    # After attention and after experts, but beside an exchange of copies after attention alone.
    assert values["n_ar"] == [0, 5, 10, 5]
    assert values["n_a2a"] == [0, 5, 0, 5]
    assert values["n_ep"] == [0, 0, 5, 0]
    assert values["n_hop"] == [0, 1, 2, 3]
    # Of 2, 3 and 4 stages the fullest has 3, 2 and 2 of the five layers.
    assert values["f_stage"] == pytest.approx([1, 3 * 2 / 5, 2 * 3 / 5, 2 * 4 / 5])
    assert values["f_heads"] == [1, 1 / 2, 1 / 2, 1 / 2]  # two heads on four chips are copied
    assert values["q_ar"] == pytest.approx([0, 1, 1.5, 1])
    ends = [sqrt(2 * log(ep) * ep / (2 * 3)) for ep in (1, 4, 2, 1)]
    assert values["c_imb"] == pytest.approx(ends)
    assert values["c_rank"] == [0, 0, 0, 0]
    assert values["u_ep"] == values["x_ep"] == [1, 1, 1, 1]


def test_rates_of_a_layout_are_those_of_its_groups():
    """All-reduces of tp chips; hops by the slowest pair of a replica."""
    task = question(SPARSE)
    values = at(task)
    groups = [group_rate(task.machine, tp) for tp in (1, 2, 4, 2)]
    assert values["r_ar"] == [group.all_gather for group in groups]
    replicas = [group_rate(task.machine, chips) for chips in (1, 8, 12, 32)]
    assert values["r_hop"] == [group.send for group in replicas]
    assert values["t_hop_net"] == [group.step_latency for group in replicas]
    assert len(set(values["r_hop"])) > 1


def test_a_layout_of_a_dense_model_by_hand():
    """Copies of attention share the feed-forward parts of six layers, in an exchange."""
    values = at(question(DENSE), columns([(2, 1, 1, 1, 1, 1, 1, 2), (2, 1, 1, 4, 1, 1, 1, 8)]))
    assert values["n_ar"] == [12, 6]
    assert values["n_a2a"] == [0, 6]
    assert values["n_ep"] == [0, 0]
    mixed = replace(SPARSE, n_dense_ffn_layers=2, n_moe_layers=3)
    values = at(question(mixed), columns([(2, 1, 1, 1, 2, 1, 1, 2), (2, 1, 1, 4, 8, 1, 1, 8)]))
    assert values["n_ar"] == [10, 5 + 2]  # dense layers of a model with experts follow attention
    assert values["n_a2a"] == [0, 3]
    assert values["n_ep"] == [3, 0]


@pytest.mark.parametrize(
    ("changes", "alone", "copied"),
    [({}, 12, 6), ({"n_parallel_layers": 2}, 10, 6),
     # Of ten blocks six are feed-forward parts, the others mixers.
     ({"n_layers": 10}, 4 + 6, 4)],
)  # fmt: skip
def test_all_reduces_of_parallel_and_hybrid_blocks(changes, alone, copied):
    """Parts side by side are added up first; a hybrid's block is a mixer or a feed-forward part."""
    layouts = columns([(2, 1, 1, 1, 1, 1, 1, 2), (2, 1, 1, 2, 1, 1, 1, 4)])
    assert at(question(replace(DENSE, **changes)), layouts)["n_ar"] == [alone, copied]


@pytest.mark.parametrize("ideal", ["lecture", "ideal"])
def test_what_is_split_evenly_is_split_over_any_number(ideal):
    """Heads over four chips and layers over three stages leave nothing uneven."""
    values = at(question(SPARSE, **{ideal: True}, skew=1.5))
    assert values["f_stage"] == values["u_ep"] == [1, 1, 1, 1]
    assert values["f_heads"] == [1, 1 / 2, 1 / 4, 1 / 2]
    assert values["x_ep"] == values["f_skew"] == [1, 1.5, 1.5, 1]


def test_ranks_are_dealt_unevenly_where_a_pool_decodes():
    """The fullest of dp ranks by chance; the bound takes them as even."""
    task = question(SPARSE, mode="decode", pooled=True)
    fullest = [0, sqrt(2 * log(2)), 0, sqrt(2 * log(2))]
    assert at(task)["c_rank"] == pytest.approx(fullest)
    for other in (replace(task, pooled=False), replace(task, mode="prefill")):
        assert at(other)["c_rank"] == [0, 0, 0, 0]
    assert at(task, bound=True)["c_rank"] == [0, 0, 0, 0]


def test_fullest_expert_rank_by_hand():
    """8 experts and 3 copies on 4 ranks: three on the fullest, of 11/4 on the mean."""
    layouts = columns([(1, 1, 1, 4, 4, 1, 1, 4), (1, 1, 1, 1, 1, 1, 1, 1)])
    values = expert_imbalance(question(SPARSE, redundant=3, skew=1.25), layouts)
    assert values["u_ep"].tolist() == [3 * 4 / 8, 11 / 8]
    assert values["x_ep"] == pytest.approx([12 / 11 * 1.25, 1.0])
    values = expert_imbalance(question(DENSE), layouts)
    assert (values["u_ep"][1], values["x_ep"][1]) == (1, 1)


@pytest.mark.parametrize(("ep", "said"), [(7, True), (5, False), (8, True), (1, False)])
def test_uneven_experts_are_a_word_from_five_percent_on(ep, said):
    """Of 20 experts the fullest of 7 ranks has 3, 5 % more than the mean; one copy evens them."""
    pool = SimpleNamespace(layout=SimpleNamespace(ep=ep), redundant_experts=None, phases={})
    warnings = imbalance(pool, 20)
    assert bool(warnings) is said
    if ep == 7:
        assert "has 3, 5% more than the mean" in warnings[0]
        assert "choose.redundant_experts: 1 would" in warnings[0]
    half = replace_pool(pool, redundant_experts=1)
    assert not imbalance(half, 20) if ep == 7 else True
    alone = SimpleNamespace(layout=None, redundant_experts=None)
    assert imbalance(SimpleNamespace(layout=None, phases={"decode": alone}), 20) == ()


def replace_pool(pool, **changes):
    """The same stand-in of a pool with other figures."""
    return SimpleNamespace(**{**vars(pool), **changes})


def test_parts_of_contexts_by_hand():
    """Two parts have two chunks; what passes between them is that of two halves of a stage."""
    task = question(SPARSE)
    values = contexts(task, LAYOUTS)
    assert values["cp"].tolist() == [1, 1, 1, 2]
    assert values["n_cp"].tolist() == [0, 0, 0, 5]
    assert values["c_chunk"].tolist() == [512, 512, 512, 1024]
    for term, within in (("cp", DECODE), ("ring", PREFILL)):
        law = rounds(task.machine, task.chip.name, LAYOUTS.cp, LAYOUTS.stage, within)
        columns_ = [values[f"{letter}_{term}"] for letter in "awg"]
        assert [c.tolist() for c in columns_] == [x.tolist() for x in
                                                  (law.floor, law.rate, law.root)]  # fmt: skip
        assert [c[0] for c in columns_] == [0, 1, 0]
        assert columns_[0][3] > 0
    nothing = contexts(replace(task, lecture=True), LAYOUTS)
    for term in ("cp", "ring"):
        assert [nothing[f"{letter}_{term}"].tolist() for letter in "awg"] == [
            [0] * 4, [1] * 4, [0] * 4
        ]  # fmt: skip


def met(places, *, experts=8, picked=2):
    """Places that hold at least one of the experts picked, of so many with equal parts."""
    group = experts // places
    return places * (1 - comb(experts - group, picked) / comb(experts, picked))


def laws(monkeypatch, per_expert, domains):
    """Collectives that are told; what was asked for is kept in the list."""
    asked = []

    def reduced(of, chip, sizes, within):
        asked.append(("reduced", sizes.tolist(), within))
        return Reduction(*(np.full(sizes.size, x + within[0]) for x in (1.0, 2.0, 3.0)))

    def exchanged(of, chip, sizes, within, there):
        asked.append(("exchanged", sizes.tolist(), within, there))
        law = (np.full(sizes.size, x + within[0]) for x in (4.0, 5.0, 6.0))
        return Exchange(*law, np.full(sizes.size, per_expert), np.full(sizes.size, domains))

    monkeypatch.setattr(binding, "reductions", reduced)
    monkeypatch.setattr(binding, "exchanges", exchanged)
    return asked


def test_copies_that_a_token_sends_by_hand(monkeypatch):
    """To the ranks that it meets, each cut over expert tp; of dense models to all of a stage."""
    asked = laws(monkeypatch, per_expert=False, domains=1)
    values = at(question(SPARSE))
    sent = [1.0 * 1, met(4), 2 * met(2), 4 * 1.0]
    assert values["k_copies"] == values["k_copies_pf"] == pytest.approx(sent)
    assert met(2) == pytest.approx(11 / 7)
    for phase, within in (("", DECODE), ("_pf", PREFILL)):
        for place, letter in enumerate("awg"):
            assert values[f"{letter}_ar{phase}"] == [1 + place + within[0]] * 4
            assert values[f"{letter}_x{phase}"] == [4 + place + within[0]] * 4
        assert ("reduced", [1, 2, 4, 2], within) in asked
        # Tokens go out in bf16 as they come back: half of the bytes each.
        assert ("exchanged", [1, 4, 4, 4], within, 0.5) in asked
    asked.clear()
    narrow = replace(SPARSE, weight_dtype={**SPARSE.weight_dtype, "routed": "fp8"})
    at(question(narrow))
    byte = 1 + 4 / 128
    assert {row[3] for row in asked if row[0] == "exchanged"} == {byte / (byte + 2)}
    values = at(question(DENSE), columns([(2, 1, 1, 1, 1, 1, 1, 2), (2, 1, 1, 3, 1, 1, 1, 6)]))
    assert values["k_copies"] == values["k_copies_pf"] == [1, 6]


def test_copies_for_each_expert_or_each_domain_by_hand(monkeypatch):
    """A copy for each expert, parts on one chip sharing one; or one for each domain in prefill."""
    laws(monkeypatch, per_expert=True, domains=2)
    values = at(question(SPARSE))
    # Two experts in one, one, two and four parts: no more copies than chips, or experts.
    assert values["k_copies"] == values["k_copies_pf"] == [2, 2, 4, 4]
    laws(monkeypatch, per_expert=False, domains=2)
    values = at(question(SPARSE))
    assert values["k_copies"] == pytest.approx([1, met(4), 2 * met(2), 4])
    assert values["k_copies_pf"] == pytest.approx([met(2), met(2), 2 * met(2), 4 * met(2)])
    nothing = at(question(SPARSE, lecture=True))
    assert nothing["k_copies"] == nothing["k_copies_pf"] == [0] * 4
    for term in ("ar", "ar_pf", "x", "x_pf"):
        assert [nothing[f"{letter}_{term}"] for letter in "awg"] == [[0] * 4, [1] * 4, [0] * 4]


def test_domains_of_a_token_under_limited_routing_by_hand():
    """Two of four groups of two experts: those of a token lie on two of four domains."""
    sizes = replace(SPARSE, expert_groups=4, expert_groups_active=2)
    two = 2 * (1 - comb(2, 2) / comb(4, 2))  # two of the four experts of two domains
    four = 4 * (1 - comb(3, 2) / comb(4, 2))  # eight domains of one expert each, four in reach
    values = copies_to_domains(sizes, np.array([1, 2, 4, 8]))
    assert values == pytest.approx([1, met(2), two, four])
    assert copies_to_domains(replace(SPARSE, n_experts=0), np.array([2, 3])).tolist() == [0, 0]
    assert copies_to_domains(SPARSE, np.array([4])) == pytest.approx(met(4))


def test_peaks_by_hand():
    """The wider of weights and activations; the bound takes the narrowest that the chip has."""
    rates = {"bf16": 1.0, "fp8": 2.0, "fp4": 4.0}
    chip = Chip("a", "NVIDIA A", rates, 1e11, 1e12)
    kinds = dict(zip(("attention", "dense_ffn", "shared", "routed", "head"),
                     ("bf16", "bf16", "fp8", "nvfp4", "fp8"), strict=True))  # fmt: skip
    model = replace(SPARSE, weight_dtype=kinds, activation_dtype="fp8", kv_dtype="fp8")
    task = replace(question(SPARSE), sizes=model, chip=chip)
    names = ("F_attn", "F_ffn", "F_routed", "F_head", "F_draft", "F_sdpa")
    assert [peaks(task, bound=False)[name] for name in names] == [1, 1, 2, 2, 1, 1]
    assert [peaks(task, bound=True)[name] for name in names] == [1, 1, 4, 2, 1, 2]
    shared = replace(task, sizes=replace(model, n_shared_experts=1),
                     drafter=SimpleNamespace(dtype="fp8"))  # fmt: skip
    assert [peaks(shared, bound=False)[name] for name in names] == [1, 2, 2, 2, 2, 1]


def hybrid():
    """A model of few round numbers: a full cache, a window that is dropped, one that is not."""
    caches = (
        CacheKind("full", 3, 10.0, 20.0, None, True, 100.0, 50.0, 2, 7.0),
        CacheKind("window", 2, 3.0, 6.0, 400, False, 30.0, 15.0, 2, 4.0),
        CacheKind("sparse", 1, 2.0, 5.0, 200, True, 9.0, 8.0, 2, 1.0),
    )
    groups = ("attention", "dense_ffn", "shared", "routed", "embedding", "head", "router", "other")
    weights = dict(zip(groups, (1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3, 128e3), strict=True))
    return replace(
        SPARSE, caches=caches, n_attention_layers=6, n_layers=9, n_moe_layers=4,
        state_bytes_per_sequence=77.0, state_flop_per_token=33, expert_width=50, hidden=64,
        active={name: int(count / 4) for name, count in weights.items()}, weight_bytes=weights,
        streamed_bytes={**weights, "embedding": 0.0}, vocab=1234,
    )  # fmt: skip


def test_a_model_by_hand():
    """Counts, bytes and arithmetic of one whose caches are full, windowed and sparse."""
    values = shared_values(replace(question(SPARSE), sizes=hybrid()))
    counted = {
        "N_attn": 250 + 16e3 + 32e3, "N_ffn": 500 + 1000, "N_exp": 2000, "N_head": 8000,
        "S_fixed": 231e3, "S_routed": 8e3, "M_fixed": 247e3, "M_routed": 8e3,
    }  # fmt: skip
    assert {name: values[name] for name in counted} == counted
    # Of a context of 1100 and a prompt of 1000 tokens; the mean token of a prompt sees less.
    seen, sparse_seen = 400 - 400**2 / 2000, 200 - 200**2 / 2000
    assert values["b_kv"] == 20
    assert values["R_bnd"] == 6 * 400 + 5 * 200
    assert values["b_store"] == 20 + 5
    assert values["R_bnd_mem"] == 6 * 400
    assert values["R_state"] == 77
    assert values["a_kv"] == 100
    assert values["A_bnd"] == 30 * 400 + 9 * 200
    assert values["A_state"] == 33
    assert values["a_pf"] == 50
    assert values["A_bnd_pf"] == 33 + 15 * seen + 8 * sparse_seen
    assert values["h_part"] == (7 + 4 + 1) / 6
    plain = {"n_experts": 8, "k_experts": 2, "h_act": 64, "h_exp": 50,
             "vocab": 1234, "n_blocks": 9, "n_moe": 4, "n_ctx": 6, "b_act": 2, "b_logit": 4,
             "b_comb": 2, "b_disp": 2}  # fmt: skip
    assert {name: values[name] for name in plain} == plain
    # Three matrices of 50 rows in two experts of each of four layers have 2000 entries.
    assert values["h_mid"] == 2000 / (3 * 4 * 2 * 50)
    dense_ = shared_values(question(replace(DENSE, n_attention_layers=0, caches=())))
    assert [dense_[x] for x in ("n_experts", "k_experts", "h_mid", "n_ctx", "h_part")] == [
        2, 1, 0, 1, 0
    ]  # fmt: skip
    for kind in ("fp8", "fp4", "nvfp4", "mxfp4"):
        narrow = replace(SPARSE, weight_dtype={**SPARSE.weight_dtype, "routed": kind})
        assert shared_values(question(narrow))["b_disp"] == 1 + 4 / 128


def test_the_lecture_reads_all_weights_and_nothing_else():
    """All experts of one, no attention, no network, one operation for each weight."""
    task = replace(question(SPARSE, lecture=True), sizes=hybrid())
    values = shared_values(task)
    absent = ("R_bnd", "A_bnd", "A_state", "A_bnd_pf", "h_part", "a_kv", "a_pf", "h_act", "h_exp",
              "h_mid", "vocab", "M_sram")  # fmt: skip
    assert {values[name] for name in absent} == {0.0}
    assert (values["n_experts"], values["k_experts"], values["c_fwd"]) == (1, 1, 1)
    assert values["S_fixed"] == 231e3
    assert task.profile is LECTURE


WORKLOADS = {
    "aggregated": ({}, {"L_dec": 199, "x_pf": 1, "s_mixed": 1}),
    "decode": ({"mode": "decode"}, {"L_dec": 200, "x_pf": 0, "s_mixed": 0}),
    "decode of two pools": ({"mode": "decode", "pooled": True}, {"L_dec": 199, "x_pf": 0}),
    "prefill": ({"mode": "prefill"}, {"x_pf": 1, "s_mixed": 0}),
    "kernel by kernel": ({"engine": "trtllm-2024"}, {"x_eager": 1}),
    "a recorded graph": ({"engine": "vllm"}, {"x_eager": 0}),
    "even lengths": ({"even": True}, {"x_cohort": 1}),
    "a load": ({"arrivals": 3.0}, {"x_own": 0}),
    "plain": ({}, {"x_cohort": 0, "x_own": 1, "x_hit": 0, "x_eager": 0}),
    "numbers": (
        {"cached_input": 0.25, "kappa": 0.5, "input_spread": 1.5, "output_spread": 0.7,
         "tokens_per_step": 2.5, "positions_per_step": 4.0},
        {"x_hit": 0.25, "kappa": 0.5, "v_in": 1.5, "v_out": 0.7, "g": 2.5, "m_pos": 4.0},
    ),
}  # fmt: skip


@for_all("case", WORKLOADS)
def test_a_workload_by_hand(case):
    """Prompts of 1000 tokens, answers of 200, the first of them by the prompt."""
    changes, expected = WORKLOADS[case]
    values = shared_values(question(SPARSE, **changes))
    assert {name: values[name] for name in expected} == expected
    assert (values["L_in"], values["L_out"], values["L_ctx"]) == (1000, 200, 1100)


def test_a_chip_and_its_bill_by_hand():
    """Electricity is a part of the price: joules cost it over the power it is paid for."""
    task = question(SPARSE, sram=5e7, price=3e-3, electricity=1e-3, power=500.0)
    values = shared_values(task)
    chip = task.chip
    plain = {"W_chip": chip.memory_bandwidth, "M_cap": chip.memory, "M_sram": 5e7, "x_mem": 0.9,
             "p_chip": 3e-3, "p_power": 1e-3, "p_rent": 2e-3, "p_joule": 1e-3 / 500, "m_grid": 1,
             "P_chip": 500, "one_seq": 1, "one_token": 1, "c_fwd": 2}  # fmt: skip
    assert {name: values[name] for name in plain} == pytest.approx(plain)
    assert shared_values(replace(task, chip=replace(chip, sram=None)))["M_sram"] == 0
    without = shared_values(replace(task, power=None, electricity=0.0, carbon=2.5e-4))
    assert (without["p_joule"], without["m_grid"]) == (0, 2.5e-4)
    assert "P_chip" not in without
    assert "P_idle" not in without
    draw = ChipPower(idle=1, least=2, byte=3, peak=4, rated=5, tile=6, soft=7, low=8, high=9,
                     coverage=0.8, measured=True, source="", as_of="")  # fmt: skip
    drawn = shared_values(replace(task, draw=draw, site=1.2))
    named = {"P_idle": 1, "j_byte": 3, "P_peak": 4, "P_most": 5, "n_tile": 6, "q_soft": 7,
             "x_site": 1.2, "one_chip": 1}  # fmt: skip
    assert {name: drawn[name] for name in named} == named
    assert engine_values({"t_hop": 1.0, "e_w": 2.0}) == {"t_hop_sw": 1.0, "e_w": 2.0}


def test_an_indexer_is_whole_on_every_rank():
    """Its scores stand apart from the attention that ranks share: tp times their part of them."""
    cards = {name: model_sizes(load(name)) for name in ("glm-5", "glm-5.2", "deepseek-v3")}
    layers = {name: shared_values(question(card))["n_idx"] for name, card in cards.items()}
    assert layers == {"glm-5": 78, "glm-5.2": 21, "deepseek-v3": 0}
    task = question(cards["glm-5"])
    values = shared_values(task)
    assert values["a_idx"] == 78 * 2 * 32 * 128  # heads and width of an indexer, a product a pair
    assert values["a_kv"] == 0  # all else is of the chosen entries
    assert at(task)["r_idx"] == [1, 2, 4, 2]
    assert at(task, bound=True)["r_idx"] == [1, 1, 1, 1]
