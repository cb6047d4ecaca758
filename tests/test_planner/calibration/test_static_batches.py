"""Times of static batches: their prompts are read together, and engines differ in how."""

from dataclasses import replace

import pytest

from planner.catalogue.profile import COEFFICIENTS
from planner.measurements.prediction import features
from planner.measurements.published_names import BadRow
from planner.measurements.readers.steady_batches import steady_batch

PLAIN = {
    "source": "trtllm-0.9.0-static",
    "model": "Llama-2-70B",
    "phase": "prefill",
    "chip": "H100-SXM",
    "n_chips": "4",
    "layout": "TP4",
    "weight_dtype": "fp16",
    "kv_dtype": "fp16",
    "batch": "1",
    "context_or_isl": "100",
    "osl": "",
    "metric": "ttft_ms",
    "value": "50",
    "quality": "clean",
}
SMALL = {"model": "Llama-3-8B", "n_chips": "1", "layout": "single"}
LLAMA_CPP = {**SMALL, "source": "llama.cpp-XiongjieDai", "context_or_isl": "1024"}
FALCON = {"model": "Falcon-180B", "phase": "decode", "metric": "step_ms", "osl": "128",
          "weight_dtype": "fp8", "kv_dtype": "fp8"}  # fmt: skip


def part(name, **changes):
    """What one coefficient contributes to a row: a count for an overhead, a time at full rate."""
    return features([steady_batch({**PLAIN, **changes})]).matrix[0, COEFFICIENTS.index(name)]


@pytest.mark.parametrize("name", ["t_ar", "t_layer", "t_pf_chunk", "t_request"])
def test_a_pass_over_the_layers_is_paid_once_for_all_prompts(name):
    """Sixteen short prompts take one pass, as one does."""
    assert part(name, batch="16") == part(name) > 0


@pytest.mark.parametrize("name", ["e_pf", "e_pf_a", "t_tok"])
def test_arithmetic_of_prompts_is_that_of_each(name):
    """A prompt attends to itself alone, so attention grows with their number, not its square."""
    assert part(name, batch="16") == pytest.approx(16 * part(name))


def test_floors_of_all_reduces_do_not_grow_with_the_prompts():
    """Bytes do: sixteen prompts sent together take less than sixteen times one."""
    assert part("e_ar_pf") < part("e_ar_pf", batch="16") < 16 * part("e_ar_pf")


def test_more_tokens_than_a_pass_holds_take_more_passes():
    """32 prompts of 1,024 tokens are four passes of 8,192."""
    assert part("t_pf_chunk", batch="32", context_or_isl="1024") == 4


def test_llama_cpp_reads_prompts_512_tokens_at_a_time():
    """1,024 tokens are two passes, pipelined over the cards that share the layers."""
    assert part("t_pf_chunk", **LLAMA_CPP) == pytest.approx(2)
    split = {**LLAMA_CPP, "n_chips": "4", "layout": "layer-split4", "chip": "A40"}
    alone = {**LLAMA_CPP, "chip": "A40"}
    assert part("e_pf", **split) / part("e_pf", **alone) == pytest.approx((1 / 2) / 4 + 1 / 2)


def test_quantised_weights_are_written_out_before_prompts_are_multiplied():
    """On CUDA int4 moves more bytes than fp16 does; on Apple's chips it moves fewer."""
    formats = [{**LLAMA_CPP, "weight_dtype": dtype} for dtype in ("fp16", "int4")]
    wide, narrow = (part("e_w", **each, chip="A40") for each in formats)
    assert narrow > 1.5 * wide
    wide, narrow = (part("e_w", **each, chip="M2 Ultra 76-Core GPU 192GB") for each in formats)
    assert narrow < wide / 2


@pytest.mark.parametrize(("chip", "times"), [("4090 24GB", 2), ("A40", 1)])
def test_geforce_cards_add_up_in_half_precision_twice_as_fast(chip, times):
    """llama.cpp asks for sums in fp16; other engines do not."""
    row = {**PLAIN, **LLAMA_CPP, "chip": chip}
    half, single = (steady_batch({**row, **source}).chip for source in ({}, {"source": "another"}))
    assert half.peak("fp16") == times * single.peak("fp16")


def test_large_groups_of_query_heads_run_on_vector_units():
    """Falcon's groups of 29 do, Llama's of 8 do not; nor did later engines' kernels."""
    row = steady_batch({**PLAIN, **FALCON})
    later = replace(row, engine="trtllm-2025")
    slow, fast = features([row, later]).matrix[:, COEFFICIENTS.index("e_at")]
    assert slow / fast == pytest.approx(989 / 67, rel=1e-3)
    row = steady_batch({**PLAIN, **FALCON, "model": "Llama-2-70B"})
    later = replace(row, engine="trtllm-2025")
    slow, fast = features([row, later]).matrix[:, COEFFICIENTS.index("e_at")]
    assert slow == fast > 0


def test_parts_side_by_side_are_reduced_together_on_gpus_too():
    """Falcon's blocks send once a layer, Llama's twice; both have 80 layers."""
    assert part("t_ar", **FALCON) == part("t_ar", **{**FALCON, "model": "Llama-2-70B"}) / 2 == 80


@pytest.mark.parametrize(
    ("layout", "phase", "copied"),
    [
        ("WS-2D/attn-batch", "decode", 1),
        ("WS-2D", "decode", 1),
        ("TP64", "decode", 64),
        ("WS-2D/attn-head", "decode", 64),
    ],
)
def test_chips_that_keep_sequences_of_their_own_read_no_copies(layout, phase, copied):
    """PaLM has one KV head: 64 chips read it 64 times, or divide the sequences."""
    row = {"model": "PaLM-540B", "chip": "TPUv4", "n_chips": "64", "weight_dtype": "bf16"}
    row |= {"kv_dtype": "bf16", "batch": "512", "context_or_isl": "2048", "osl": "64"}
    row |= {"phase": phase, "metric": "step_ms", "layout": layout}
    cache = 512 * 2048 * 118 * 2 * 256 * 2 / 64 / 1200e9
    assert part("e_kv", **row) == pytest.approx(copied * cache, rel=0.01)


def test_chips_that_gather_the_weights_exchange_no_tokens():
    """Weights that fit on no single chip come from all; 512 prompts on 64 chips are 8 on one."""
    row = {"model": "PaLM-540B", "chip": "TPUv4", "n_chips": "64", "weight_dtype": "bf16"}
    row |= {"kv_dtype": "bf16", "batch": "512", "context_or_isl": "2048", "phase": "prefill"}
    gathered = steady_batch({**PLAIN, **row, "metric": "mfu", "value": "0.5", "layout": "WG-XYZ"})
    assert (gathered.chips, gathered.batch) == (1, 8)
    arithmetic = 2 * gathered.sizes.n_total * 512 * 2048 / (64 * 275e12)
    assert gathered.seconds == pytest.approx(2 * arithmetic, rel=1e-6)
    with pytest.raises(BadRow, match="do not fit on 1 tpu-v4"):
        steady_batch({**PLAIN, **row, "metric": "mfu", "value": "0.5", "layout": "DP"})


@pytest.mark.parametrize(
    ("model", "file", "weights"), [("Llama-3-8B", 4.92e9, 525e6), ("Llama-3-70B", 42.52e9, 1051e6)]
)
def test_mixed_formats_take_what_their_files_do(model, file, weights):
    """Published files of Q4_K_M, less the embedding in 4.5 bits, of which a step reads a row."""
    row = steady_batch({**PLAIN, **LLAMA_CPP, "model": model, "weight_dtype": "q4_k_m"})
    read = sum(row.sizes.streamed_bytes.values())
    assert read == pytest.approx(file - weights * 4.5 / 8, rel=0.01)


def test_few_sequences_leave_most_of_a_chip_idle():
    """A context that is not split is read as slowly for eight sequences as for one."""
    step = {"phase": "decode", "metric": "step_ms", "osl": "128", "context_or_isl": "3000"}
    assert part("e_kv", **step, batch="8") == pytest.approx(part("e_kv", **step))
    assert part("e_kv", **step, batch="64") == pytest.approx(
        64 * 3000 * 80 * 2 * 8 * 128 * 2 / 4 / 3.35e12, rel=0.01
    )
