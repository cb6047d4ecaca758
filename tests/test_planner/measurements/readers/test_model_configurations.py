"""Models that the catalogue lacks are read from configurations beside the measurements."""

from __future__ import annotations

import json

import pytest

from planner.catalogue.models import record
from planner.measurements.published_names import BadRow, published_sizes, resolve_model
from planner.measurements.readers import read
from planner.text.errors import InputError
from planner.validation.estimates import read as predicted
from tests.cases.validation import RUN_HEAD, STEADY_HEAD, run_row, steady_row, written

WIDTHS = {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 48}
CONFIG = {**record("qwen3-32b").config, **WIDTHS}
OWN = "model,gpu,tp,users,isl,osl,tpot_ms"


@pytest.fixture
def folder(tmp_path):
    """A folder beside the measurements that holds a model of Qwen3's kind with other widths."""
    found = tmp_path / "hf_configs"
    found.mkdir()
    (found / "acme--Turbine-20B_config.json").write_text(json.dumps(CONFIG))
    return found


def names_of(path, *folders):
    """Layers of the models of a file's rows, and the files that they were read from."""
    readings = read(path, folders)
    return [row.sizes.n_layers for row in readings.rows], dict(readings.models)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("runs.csv", (RUN_HEAD, run_row(model="acme/Turbine-20B", ttft=""))),
        (
            "steady.csv",
            (STEADY_HEAD, steady_row("a", "step_ms", 9).replace("Llama-3-8B", "acme/Turbine-20B")),
        ),
        ("own.csv", (OWN, "acme/Turbine-20B,h100,2,8,1000,1000,9")),
    ],
)
def test_a_folder_beside_the_file_is_looked_into(tmp_path, folder, name, lines):
    """For runs, steady batches and a table of one's own alike; the answer names the file."""
    path = written(tmp_path / name, *lines)
    layers, files = names_of(path)
    assert layers == [48]
    assert files == {"acme/Turbine-20B": str(folder / "acme--Turbine-20B_config.json")}


def test_a_result_of_a_load_generator_may_name_such_a_model(tmp_path, folder):
    """By the id that it holds, or by a fact."""
    held = {
        "model_id": "acme/Turbine-20B", "completed": 10, "total_input_tokens": 10_000,
        "total_output_tokens": 10_000, "max_concurrency": 8, "mean_tpot_ms": 9.0,
        "mean_ttft_ms": 90.0,
    }  # fmt: skip
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(held))
    found = [read(path, chip="h100", tp=2)]
    path.write_text(json.dumps({**held, "model_id": None}))
    found.append(read(path, chip="h100", tp=2, model="acme/Turbine-20B"))
    assert [each.rows[0].sizes.n_layers for each in found] == [48, 48]
    assert all(each.models for each in found)


@pytest.mark.parametrize("place", ["Gale/config.json", "windy/Gale/config.json"])
def test_other_folders_are_given(tmp_path, place):
    """A repository as it is downloaded: config.json in a folder of the model's name."""
    file = tmp_path / "downloads" / place
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(CONFIG))
    path = written(tmp_path / "own.csv", OWN, "windy/Gale,h100,2,8,1000,1000,9")
    assert "--models" in read(path).refused[0].reason
    assert names_of(path, tmp_path / "downloads") == ([48], {"windy/Gale": str(file)})


def test_formats_come_from_the_columns_and_the_id(tmp_path, folder):
    """A tuning or a format in the id names the same shape, stored in that format."""
    ids = ["acme/Turbine-20B", "acme/Turbine-20B-FP8", "acme/Turbine-20B-Instruct-NVFP4"]
    path = written(tmp_path / "own.csv", OWN, *(f"{i},b200,2,8,1000,1000,9" for i in ids))
    rows = read(path).rows
    assert [row.sizes.weight_dtype["dense_ffn"] for row in rows] == ["bf16", "fp8", "nvfp4"]
    assert {row.model for row in rows} == {"turbine-20b"}
    run = written(tmp_path / "runs.csv", RUN_HEAD, run_row(model=ids[0]))
    assert read(run).rows[0].sizes.weight_dtype["dense_ffn"] == "fp8"


@pytest.mark.parametrize(
    ("file", "published"),
    [
        ("acme--Gale-7B-Instruct", "acme/Gale-7B"),
        ("acme--Gale-7B-FP8", "acme/Gale-7B-NVFP4"),
        ("acme--Acme-Gale-7B-v0.1", "acme/Gale-7B"),
        ("acme--Gale-7B", "mirror/acme-Gale-7B-0528"),
        ("acme--Gale-7B", "gale-7b"),
    ],
)
def test_a_file_is_found_by_what_names_its_shape(tmp_path, folder, file, published):
    """Vendors that a name repeats, tunings, releases and formats do not count."""
    (folder / f"{file}_config.json").write_text(json.dumps(CONFIG))
    path = written(tmp_path / "own.csv", OWN, f"{published},b200,2,8,1000,1000,9")
    assert names_of(path)[1] == {published: str(folder / f"{file}_config.json")}


def test_the_whole_name_goes_before_a_shorter_one(tmp_path, folder):
    """A base model and its tuning may have files of their own."""
    for name in ("acme--Gale-7B-Instruct", "acme--Gale-7B"):
        (folder / f"{name}_config.json").write_text(json.dumps(CONFIG))
    rows = [f"acme/{name},b200,2,8,1000,1000,9" for name in ("Gale-7B", "Gale-7B-Instruct")]
    files = names_of(written(tmp_path / "own.csv", OWN, *rows))[1]
    assert files == {
        "acme/Gale-7B": str(folder / "acme--Gale-7B_config.json"),
        "acme/Gale-7B-Instruct": str(folder / "acme--Gale-7B-Instruct_config.json"),
    }


def test_an_entry_of_the_very_name_wins(tmp_path, folder):
    """The catalogue's shape is the one that its profiles know."""
    (folder / "Qwen--Qwen3-32B_config.json").write_text(json.dumps(CONFIG))
    path = written(tmp_path / "own.csv", OWN, "Qwen/Qwen3-32B,h100,2,8,1000,1000,9")
    assert names_of(path) == ([64], {})


def test_a_tuning_of_another_shape_is_its_own_model(tmp_path, folder):
    """A file of the very id wins over an entry that the id names but for its last words."""
    file = folder / "Qwen--Qwen3-32B-Instruct_config.json"
    path = written(tmp_path / "own.csv", OWN, "Qwen/Qwen3-32B-Instruct,h100,2,8,1000,1000,9")
    file.write_text(json.dumps(record("qwen3-32b").config))
    assert names_of(path) == ([64], {})
    file.write_text(json.dumps(CONFIG))
    assert names_of(path) == ([48], {"Qwen/Qwen3-32B-Instruct": str(file)})


def test_a_path_in_a_cell_begins_beside_the_file(tmp_path, folder):
    """Or where the command was started."""
    path = written(
        tmp_path / "own.csv", OWN, "hf_configs/acme--Turbine-20B_config.json,h100,2,8,1000,1000,9"
    )
    assert names_of(path)[0] == [48]


def test_a_configuration_that_cannot_be_read_refuses_its_rows_alone(tmp_path, folder):
    """Its name and what is wrong stand in the reason; other rows are predicted."""
    (folder / "acme--Alien_config.json").write_text('{"model_type": "alien"}')
    path = written(
        tmp_path / "own.csv",
        OWN,
        "acme/Alien,h100,2,8,1000,1000,9",
        "nowhere.json,h100,2,8,1000,1000,9",
        "acme/Turbine-20B,h100,2,8,1000,1000,9",
    )
    _, (alien, missing, sound) = predicted(path)
    assert "acme--Alien_config.json model_type: 'alien' is not a known family" in alien.reason
    assert "nowhere.json cannot be read" in missing.reason
    assert sound.prediction is not None


def test_a_folder_without_configurations_is_a_mistake(tmp_path):
    """As is a folder that is none."""
    path = written(tmp_path / "own.csv", OWN, "llama-3.1-8b,h100,2,8,1000,1000,9")
    with pytest.raises(InputError, match="is no folder"):
        read(path, [tmp_path / "none"])
    with pytest.raises(InputError, match="holds no configuration"):
        read(path, [tmp_path])


def test_a_name_stays_inside_of_the_folders(tmp_path, folder):
    """A model's name is compared with names of files, and never a path to one."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "config.json").write_text(json.dumps(CONFIG))
    path = written(tmp_path / "own.csv", OWN, "../secret,h100,2,8,1000,1000,9")
    assert "no shape for the model '../secret'" in read(path).refused[0].reason


def test_a_configuration_is_named_by_its_file(tmp_path, folder):
    """And its format by the id after the number sign."""
    text = f"{folder / 'acme--Turbine-20B_config.json'}#acme/Turbine-20B-Chat-FP8"
    named = resolve_model(text)
    assert (named.name, named.weights) == ("turbine-20b", "fp8")
    assert published_sizes(text, None, None).n_layers == 48
    with pytest.raises(BadRow, match="cannot be read"):
        published_sizes(str(tmp_path / "none_config.json"), None, None)
