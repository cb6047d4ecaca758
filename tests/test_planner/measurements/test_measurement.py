"""Layouts, names, rates and ways of measured rows are read as they were meant."""

from pathlib import Path

import pytest

from planner.measurements.measurement import NotComputed, as_layout
from planner.measurements.published_names import BadRow, published_sizes, resolve_chip
from planner.measurements.readers import runs, steadies
from tests.loops import for_all

HEADER = (
    "id,source,url,model,phase,chip,n_chips,layout,weight_dtype,kv_dtype,batch,context_or_isl,osl,"
    "metric,value,notes,quality"
)
RUNS_HEADER = (
    "model_path,system,backend,backend_version,precision,mode,isl,osl,concurrency,ttft_ms,"
    "tpot_ms,gemm_quant_mode,moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,"
    "moe_tp_size,moe_ep_size,measured_on,wip,image"
)


@for_all(
    ("text", "chips", "ways"),
    [
        ("TP8", 8, (8, 1, 1, 1)),
        ("TP8EP4", 8, (8, 1, 1, 4)),
        ("DEP4", 4, (1, 1, 4, 4)),
        ("TEP8", 8, (8, 1, 1, 8)),
        ("EP128/DP128+TBO", 128, (1, 1, 128, 128)),
        ("layer-split(PP, sequential)", 4, (1, 4, 1, 1)),
        ("single", 1, (1, 1, 1, 1)),
        ("DP8(attn)+EP8", 8, (1, 1, 8, 8)),
        ("EP2 (4 instances)", 2, (1, 1, 2, 2)),
        ("EP72/DP72, no TBO", 72, (1, 1, 72, 72)),
        ("WS-2D/attn-batch", 64, (64, 1, 1, 1)),
    ],
)
def test_layouts_are_read(text, chips, ways):
    """Free text becomes ways by axis."""
    found = as_layout(text, chips, 64)
    assert found is not None
    assert tuple(found[axis] for axis in ("tp", "pp", "dp_attention", "ep")) == ways


@pytest.mark.parametrize(
    ("text", "chips"), [("CP16xTP8", 128), ("TP4", 8), ("", 1), ("WG-XYZ", 64)]
)
def test_a_layout_that_is_not_understood_is_none(text, chips):
    """No layout is guessed."""
    assert as_layout(text, chips, 0) is None


def test_names_without_an_entry_are_refused():
    """An unknown chip or model is named in the reason."""
    with pytest.raises(BadRow, match="Cray-1"):
        resolve_chip("Cray-1")
    with pytest.raises(BadRow, match="HAL"):
        published_sizes("HAL", None, None)


def test_a_rate_is_the_time_it_implies(tmp_path):
    """Tokens per second, in all or per chip, and efficiency become the time of the row."""
    path = tmp_path / "steady.csv"
    common = "s,u,Llama-3-8B"
    path.write_text(
        "\n".join(
            [
                HEADER,
                f"a,{common},decode,H100-SXM,2,TP2,fp8,fp8,64,1000,100,tok_s_per_gpu,1600,,clean",
                f"b,{common},prefill,H100-SXM,1,TP1,fp8,fp8,1,1000,0,tok_s_total,2000,,clean",
                f"c,{common},prefill,H100-SXM,1,TP1,fp16,fp16,2,500,0,mfu,0.5,,clean",
                f"d,{common},decode,M9,1,TP1,fp8,fp8,1,1000,100,step_ms,5,,clean",
            ]
        ),
        encoding="utf-8",
    )
    readings = steadies(path)
    rows = readings.rows
    assert [row.seconds for row in rows[:2]] == pytest.approx([0.02, 0.5])
    assert rows[2].seconds == pytest.approx(2 * 8.03e9 * 1000 / (0.5 * 989e12), rel=1e-3)
    assert list(readings.refused) == [NotComputed("d", "no chip figures for 'M9'")]


def test_ways_that_repeat_their_product_are_resolved(tmp_path: Path) -> None:
    """Columns that hold 64 and 8 x 8 for one machine of eight mean eight ways of each."""
    path = tmp_path / "runs.csv"
    row = "a/DeepSeek-R1,b200_sxm,trtllm,1,fp8,agg,1024,1024,8,1,1,fp8,fp8,8,64,1,1,8,8,,,"
    path.write_text(f"{RUNS_HEADER}\n{row}\n", encoding="utf-8")
    rows = runs(path).rows
    assert rows[0].chips == 8
    assert (rows[0].layout or {})["ep"] == 8
