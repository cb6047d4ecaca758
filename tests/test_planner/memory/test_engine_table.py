"""Rows by version, chips as runtimes see them, names that are none."""

from dataclasses import replace

import pytest

from planner.architecture.counts import model_sizes
from planner.catalogue import models
from planner.catalogue.chips import chip
from planner.engines.fit_question import FitOptions, fit
from planner.memory.engine_room import ReplicaLayout, model_memory
from planner.memory.engine_table import GIB, chip_memory, engine_memory, layout_factor, release
from planner.text.errors import CatalogueError


@pytest.mark.parametrize(
    ("text", "version"),
    [("0.19.0", (0, 19, 0)), ("0.11.1rc3.dev29", (0, 11, 1)), ("v0.9.2", (0, 9, 2)),
     ("0.2x", None), ("V1", None), ("2026", None)],
)  # fmt: skip
def test_versions_are_read(text, version):
    """What is no number of a release is none."""
    assert release(text) == version


@pytest.mark.parametrize(
    ("version", "copies"),
    [("0.6", 8.74), ("0.9.2", 9.6), ("0.16", 9.6), ("0.17", 3.73), ("", 3.73)],
)
def test_the_sampler_changed_once(version, copies):
    """Since 0.17 a sampler holds 3.73 copies of the logits."""
    assert engine_memory("vllm", version).era["sampler"] == copies


def test_defaults_follow_the_chip():
    """1,024 sequences on H100 since 0.9, 256 on A100 and small cards."""
    large, small = (chip_memory(chip(x)) for x in ("h100", "a100"))
    assert engine_memory("vllm", "0.19").limits(large) == (1024, 8192)
    assert engine_memory("vllm", "0.19").limits(small) == (256, 2048)
    assert engine_memory("vllm", "0.8.5").limits(small) == (1024, 2048)


def test_unknown_names_are_told():
    """An engine, a version that is no number, one that is too old; a newer one is assumed."""
    with pytest.raises(CatalogueError, match="'tgi'"):
        engine_memory("tgi")
    with pytest.raises(CatalogueError, match=r"vLLM has no version 'foo'.*0\.2 to 0\.33"):
        engine_memory("vllm", "foo")
    with pytest.raises(CatalogueError, match=r"'0\.1'"):
        engine_memory("vllm", "0.1")
    assert "newer" in engine_memory("vllm", "9.9").assumed
    assert "no version" in engine_memory("sglang").assumed


def test_what_a_runtime_sees():
    """79.19 of 79.65 GiB on H100; a chip nobody logged, and one of another size, by a rule."""
    logged, unlogged = chip_memory(chip("h100")), chip_memory(chip("h20"))
    assert logged.visible / GIB == pytest.approx(79.19)
    assert not logged.assumed
    assert "h20" in unlogged.assumed
    assert unlogged.visible < unlogged.reported
    larger = chip_memory(replace(chip("h100"), memory=96e9, memory_reported=None))
    assert larger.visible / 96e9 == pytest.approx(logged.visible / logged.reported)


@pytest.mark.parametrize(
    ("model", "tp", "logged"),
    [("gpt-oss-120b", 1, 64.38), ("gpt-oss-120b", 2, 34.38), ("gpt-oss-120b", 4, 17.22),
     ("gpt-oss-120b", 8, 8.66), ("gpt-oss-20b", 1, 13.47), ("gpt-oss-20b", 2, 7.01)],
)  # fmt: skip
def test_kernels_pad_experts(model, tp, logged):
    """Resident GiB of MXFP4 experts of 2,880 columns, as vLLM 0.11 to 0.22 logged them."""
    made = model_memory(
        model_sizes(models.load(model)), ReplicaLayout(tp), engine_memory("vllm", "0.19")
    )
    assert made.weights * made.factor / GIB == pytest.approx(logged, rel=0.015)


def test_widths_that_kernels_take_are_not_padded():
    """DeepSeek V4: 4,096 columns, 2,048 rows; two H20 keep 7.7 GiB (vllm 51041)."""
    v4 = model_sizes(models.load("deepseek-v4-flash"))
    assert model_memory(v4, ReplicaLayout(2), engine_memory("vllm", "0.26")).factor == 1.0
    options = FitOptions(
        model="deepseek-v4-flash", system="h20", tp=2, engine="vllm", version="0.26", share=0.9,
        context=121_344,
    )  # fmt: skip
    assert fit(None, options).room / GIB == pytest.approx(7.7, rel=0.1)


def test_other_formats_have_one_factor():
    """NVFP4 takes 1.05 of its bytes, what no log told as many as it has."""
    assert (layout_factor("nvfp4"), layout_factor("unknown")) == (1.05, 1.0)
