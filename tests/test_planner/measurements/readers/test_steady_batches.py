"""Steady batches from published tables: rates, replicas, missing batches, repeats."""

import pytest

from planner.measurements.readers import read, steadies
from planner.text.errors import InputError

HEADER = (
    "id,source,url,model,phase,chip,n_chips,layout,weight_dtype,kv_dtype,batch,context_or_isl,osl,"
    "metric,value,notes,quality"
)
PLAIN = {
    "id": "a",
    "source": "s",
    "model": "Llama-3-8B",
    "phase": "decode",
    "chip": "H100-SXM",
    "n_chips": "1",
    "layout": "TP1",
    "weight_dtype": "fp8",
    "kv_dtype": "fp8",
    "batch": "8",
    "context_or_isl": "1000",
    "osl": "100",
    "metric": "step_ms",
    "value": "5",
    "quality": "clean",
}


@pytest.fixture
def table(tmp_path):
    """A maker of tables from what differs from PLAIN, row by row."""

    def make(*rows):
        names = HEADER.split(",")
        lines = [",".join({**PLAIN, **row}.get(name, "") for name in names) for row in rows]
        path = tmp_path / "steady.csv"
        path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
        return steadies(path)

    return make


def test_a_rate_of_a_whole_run_counts_written_tokens(table):
    """Prompts are part of the time, not of the tokens."""
    rate = {"phase": "mixed", "metric": "tok_s_total", "value": "400", "osl": "100"}
    assert table(rate).rows[0].seconds == pytest.approx(8 * 100 / 400)


def test_an_efficiency_of_a_whole_run_counts_prompts_too(table):
    """Its arithmetic is that of all tokens."""
    one = table({"phase": "mixed", "metric": "mfu", "value": "0.5", "osl": "100"}).rows[0]
    assert one.seconds == pytest.approx(2 * 8.03e9 * 8 * 1100 / (0.5 * 989e12), rel=1e-3)


def test_copies_of_a_model_share_the_batch(table):
    """Plain data parallelism over eight chips is eight replicas of one."""
    one = table({"layout": "DP", "n_chips": "8", "batch": "64"}).rows[0]
    assert (one.chips, one.batch, one.layout["dp_attention"]) == (1, 8, 1)


def test_a_saturated_server_fills_its_memory(table):
    """Where the table gives the most a server does, the batch is what fits, and it is said."""
    rate = {"phase": "mixed", "metric": "tok_s_total", "value": "9000", "batch": ""}
    one = table({**rate, "quality": "server"}).rows[0]
    held = 1100 * one.sizes.kv_bytes_per_token
    room = 0.9 * 80e9 - sum(one.sizes.weight_bytes.values())
    assert one.batch == int(room / held)
    assert "fills the memory" in one.assumed


def test_a_clean_row_without_a_batch_is_refused(table):
    """Nothing is assumed where a measurement claims to be clean."""
    assert table({"batch": ""}).refused[0].reason == "batch is not given"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": "0"}, "value is zero or negative"),
        ({"value": "nan"}, "value is not finite"),
        ({"phase": "both"}, "unknown phase"),
        ({"metric": "furlongs"}, "unknown metric"),
        ({"n_chips": ""}, "n_chips is not given"),
        ({"n_chips": "1.5"}, "no whole number"),
        ({"weight_dtype": "fp4"}, "no fp4 arithmetic"),
        ({"context_or_isl": ""}, "context_or_isl is not given"),
        ({"weight_dtype": "fp3"}, "unknown number format"),
    ],
)
def test_what_cannot_be_is_refused_by_name(table, change, reason):
    """The row keeps its name and says what is wrong."""
    refused = table(change, {"id": "b"}).refused
    assert [each.id for each in refused] == ["a"]
    assert reason in refused[0].reason


def test_a_table_without_a_needed_column_is_refused(tmp_path):
    """All that are missing are named; others may be, as if they were blank."""
    path = tmp_path / "steady.csv"
    path.write_text("model,phase,chip,batch,metric\n", encoding="utf-8")
    with pytest.raises(InputError, match="n_chips, weight_dtype, context_or_isl, value"):
        steadies(path)


def test_a_row_again_is_a_repeat(table):
    """All but its name and address agree."""
    rows = table({}, {"id": "b", "url": "elsewhere"}).rows
    assert [row.repeats for row in rows] == ["", "a"]


def test_times_in_another_unit_are_left_out(table, tmp_path):
    """A step of 5 microseconds was 5 ms given in seconds; the other rows stay."""
    table({}, {"id": "b", "value": "0.005"}, {"id": "c", "value": "5000000"})
    readings = read(tmp_path / "steady.csv")
    assert [row.id for row in readings.rows] == ["a"]
    assert ["bound" in each.reason for each in readings.refused] == [True, True]


@pytest.mark.parametrize("chip", ["M2 Ultra 76-Core GPU 192GB", "4080 16GB", "H20", "H100-NVL"])
def test_chips_of_published_tables_are_known(table, chip):
    """Consumer and Apple chips among them."""
    assert table({"chip": chip, "weight_dtype": "fp16", "kv_dtype": "fp16"}).rows


WIDE = {"model": "DeepSeek-V3", "n_chips": "72", "batch": "9216"}


@pytest.mark.parametrize(
    ("row", "halves"),
    [
        ({"layout": "EP72/DP72+TBO"}, 2),
        ({"layout": '"EP72/DP72, no TBO"'}, 1),
        ({"layout": "DP8(attn)+EP8", "n_chips": "8"}, 1),
        ({"layout": "EP72/DP72"}, 1),
    ],
)
def test_an_overlap_is_read_where_the_row_says_so(table, row, halves):
    """What is joined to the ways of a layout is how it ran; no name of a source says it."""
    assert table({**WIDE, **row}).rows[0].halves == halves


def test_an_overlap_of_nothing_is_refused(table):
    """Tensor parallelism alone exchanges nothing that a half could hide."""
    refused = table({"layout": "TP8+TBO", "n_chips": "8"}).refused
    assert "two batches overlap" in refused[0].reason
