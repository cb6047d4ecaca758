"""Fits recover what made the data, profiles refuse what they do not know, tables are read right."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from planner.calibration.adapters import read_runs, read_steady
from planner.calibration.features import Features, features, predicted, unknowns
from planner.calibration.measurements import NotComputed, Refused, chip_of, layout_of, sizes_of
from planner.calibration.profile import (
    COEFFICIENTS,
    EFFICIENCIES,
    choose_profile,
    profile,
    profile_from,
    profile_names,
)
from planner.calibration.squares import PRIOR, score, solve, values_of
from planner.errors import CatalogueError

HEADER = (
    "id,source,url,model,phase,chip,n_chips,layout,weight_dtype,kv_dtype,batch,context_or_isl,osl,"
    "metric,value,notes,quality"
)
TRUTH = {
    **PRIOR,
    "e_w": 0.71,
    "e_kv": 0.83,
    "e_pf": 0.44,
    "e_ar": 0.6,
    "t_layer": 55e-6,
    "t_moe": 21e-6,
    "t_request": 31e-3,
}
SEEN = ("e_w", "e_kv", "e_pf", "e_ar", "t_layer", "t_moe", "t_request")


def _runs(folder: Path) -> Path:
    """A table of runs of three models on two chips, values to be replaced."""
    lines = [
        "model_path,system,backend,backend_version,precision,mode,isl,osl,concurrency,ttft_ms,"
        "tpot_ms,gemm_quant_mode,moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,"
        "moe_tp_size,moe_ep_size,measured_on,wip,image"
    ]
    models = {"a/Llama-3.1-70B": (1, 2, 8), "a/Qwen3-32B": (1, 4), "a/MiniMax-M2.5": (4, 8)}
    for model, tps in models.items():
        for system in ("h200_sxm", "b200_sxm"):
            for tp in tps:
                for lengths in ("1024,1024", "8192,1024", "1024,8192"):
                    lines += [
                        f"{model},{system},vllm,1,fp8,agg,{lengths},{n},1,1,fp8,fp8,{n},{tp},1,,1,1,,,"
                        for n in (1, 4, 32, 128)
                    ]
    path = folder / "runs.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    """Rows with their columns and the times that TRUTH gives them [s]."""
    rows, refused = read_runs(_runs(tmp_path_factory.mktemp("runs")))
    assert not refused
    columns = features(rows)
    return rows, columns, predicted(columns, TRUTH)


def test_a_fit_recovers_the_coefficients_that_made_the_data(synthetic):
    """On times made by our own model without noise, what the rows identify comes back."""
    _, columns, seconds = synthetic
    found = values_of(solve(columns, seconds, strength=1e-6))
    assert [found[name] for name in SEEN] == pytest.approx([TRUTH[name] for name in SEEN], rel=0.02)


def test_a_fit_survives_noise_and_outliers(synthetic):
    """A twentieth of the rows ten times off and 5 % noise move no prediction by more than 3 %."""
    _, columns, seconds = synthetic
    draw = np.random.default_rng(1)
    noisy = seconds * np.exp(0.05 * draw.standard_normal(len(seconds)))
    noisy[draw.random(len(seconds)) < 0.05] *= 10
    found = values_of(solve(columns, noisy))
    assert score(predicted(columns, found), seconds).median < 0.03


def test_unknowns_respect_their_limits(synthetic):
    """No efficiency above one and no negative overhead, whatever the data say."""
    _, columns, seconds = synthetic
    found = values_of(solve(columns, seconds * 0.2))
    assert all(0 < found[name] <= 1 for name in EFFICIENCIES)
    assert all(found[name] >= 0 for name in COEFFICIENTS)


def test_squares_agree_with_bounded_least_squares(synthetic):
    """Where every row is fitted exactly, weights do not matter, and another solver agrees."""
    _, columns, seconds = synthetic
    lowest = np.array([1.0 if name in EFFICIENCIES else 0.0 for name in COEFFICIENTS])
    seen = [COEFFICIENTS.index(name) for name in SEEN]
    other = lsq_linear(
        columns.matrix / seconds[:, None],
        (seconds - columns.rest) / seconds,
        bounds=(lowest, np.inf),
        tol=1e-14,
    )
    ours = solve(columns, seconds, strength=1e-6)
    assert ours[seen] == pytest.approx(other.x[seen], rel=0.02)


def test_the_estimate_is_linear_in_the_unknowns(synthetic):
    """Columns found one coefficient at a time add up to the kernel with all of them on."""
    rows, columns, _ = synthetic
    row = next(r for r in rows if r.quantity == "tpot" and r.batch == 32)
    found = predicted(features([row]), PRIOR)[0]
    assert found == pytest.approx(
        float(columns.take(np.array([rows.index(row)])).rest[0])
        + sum(
            column * x
            for column, x in zip(columns.matrix[rows.index(row)], unknowns(PRIOR), strict=True)
        )
    )


@pytest.mark.parametrize("name", profile_names())
def test_profiles_are_physical(name):
    """Efficiencies lie in (0, 1], overheads are not negative, intervals hold their coefficient."""
    one = profile(name)
    assert all(0 < one.values[c] <= 1 for c in EFFICIENCIES)
    assert all(one.values[c] >= 0 for c in COEFFICIENTS)
    assert all(band.low < 1 < band.high for q in ("tpot",) for band in [one.band(q)])
    assert one.rows > 0
    assert set(one.intervals) == set(COEFFICIENTS)


@pytest.mark.parametrize("name", profile_names())
def test_profiles_beat_a_constant_times_the_roofline(name):
    """On groups and on whole models left out of the fit."""
    errors = profile(name).errors
    for prefix in ("", "unseen_models_"):
        assert errors[f"{prefix}tpot_median"] < errors[f"{prefix}tpot_constant_median"]
        assert errors[f"{prefix}tpot_constant_median"] < errors[f"{prefix}tpot_roofline_median"]


@pytest.mark.parametrize(("change", "named"), [({"e_q": 1.0}, "e_q"), ({"e_w": None}, "e_w")])
def test_a_profile_with_other_coefficients_is_refused(change, named):
    """A missing or an unknown coefficient is named."""
    values = {**PRIOR, **change}
    raw = {"coefficients": {k: v for k, v in values.items() if v is not None}}
    with pytest.raises(CatalogueError, match=named):
        profile_from("mine", raw)


def test_auto_takes_the_profile_fitted_on_the_chip():
    """The widest fit of the newest engines where the chip was in it, an older one where not."""
    assert choose_profile("auto", "h200") == (profile("engines-2026"), None)
    assert choose_profile("auto", "a100")[0].name == "trtllm-2024"


def test_a_chip_that_no_fit_saw_is_said():
    """The nearest profile is used and the answer says so."""
    found, warning = choose_profile("auto", "mi300x")
    assert found.name == "engines-2026"
    assert warning is not None
    assert "mi300x" in warning


@pytest.mark.parametrize(
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
        ("WG-XYZ/attn-batch", 64, (1, 1, 64, 1)),
    ],
)
def test_layouts_are_read(text, chips, ways):
    """Free text becomes ways by axis."""
    found = layout_of(text, chips, 64)
    assert found is not None
    assert tuple(found[axis] for axis in ("tp", "pp", "dp_attention", "ep")) == ways


@pytest.mark.parametrize(("text", "chips"), [("CP16xTP8", 128), ("TP4", 8), ("", 1)])
def test_a_layout_that_is_not_understood_is_none(text, chips):
    """No layout is guessed."""
    assert layout_of(text, chips, 0) is None


def test_names_without_an_entry_are_refused():
    """An unknown chip or model is named in the reason."""
    with pytest.raises(Refused, match="Cray-1"):
        chip_of("Cray-1")
    with pytest.raises(Refused, match="HAL"):
        sizes_of("HAL", None, None)


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
    rows, refused = read_steady(path)
    assert [row.seconds for row in rows[:2]] == pytest.approx([0.02, 0.5])
    assert rows[2].seconds == pytest.approx(2 * 8.03e9 * 1000 / (0.5 * 989e12), rel=1e-3)
    assert refused == [NotComputed("d", "no chip figures for 'M9'")]


def test_ways_that_repeat_their_product_are_resolved(tmp_path):
    """Columns that hold 64 and 8 x 8 for one machine of eight mean eight ways of each."""
    path = _runs(tmp_path)
    head = path.read_text(encoding="utf-8").splitlines()[0]
    row = "a/DeepSeek-R1,b200_sxm,trtllm,1,fp8,agg,1024,1024,8,1,1,fp8,fp8,8,64,1,1,8,8,,,"
    path.write_text(f"{head}\n{row}\n", encoding="utf-8")
    rows, _ = read_runs(path)
    assert rows[0].chips == 8
    assert (rows[0].layout or {})["ep"] == 8


def test_a_score_counts_what_lies_within():
    """Median, mean and shares of absolute relative errors."""
    found = score(np.array([1.0, 1.05, 1.15, 2.0]), np.ones(4))
    assert (found.n, found.within_10, found.within_20) == (4, 0.5, 0.75)
    assert found.mean == pytest.approx(0.3)


def test_columns_of_some_rows_are_those_rows():
    """Taking rows keeps matrix and rest together."""
    whole = Features(np.arange(6.0).reshape(3, 2), np.arange(3.0))
    part = whole.take(np.array([2, 0]))
    assert part.matrix.tolist() == [[4, 5], [0, 1]]
    assert part.rest.tolist() == [2, 0]
