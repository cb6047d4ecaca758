"""Launches as SGLang parses them and resolves them with a model's configuration: `resolve_once`.

    python sglang_checks.py words.jsonl

Runs where sglang is installed, without a GPU: a stand-in for its platform says which one there is.
Where transformers does not build the configuration of the catalogue, `check_server_args` alone is
asked, with what comes before it (page, chunk, schedule of pipelines) set as it would be.
"""

import argparse
import collections
import functools
import importlib.abc
import importlib.machinery
import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch
from transformers.models.auto import modeling_auto
from transformers.utils import import_utils

import_utils.is_torchvision_available()  # looked for before a stand-in can be found


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages of pictures and kernels, which arguments do not need."""

    def find_spec(self, name, path, target=None):
        """Found only where the real one is not."""
        wanted = name.split(".")[0] in ("torchvision", "sgl_kernel", "flashinfer")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if wanted else None

    def create_module(self, spec):
        """Whatever is asked of it is there."""
        return MagicMock(__path__=[], __spec__=spec, __name__=spec.name)

    def exec_module(self, module):
        """Nothing is run."""


sys.meta_path.append(StandIns())

from sglang.srt.arg_groups.validation_hook import check_server_args  # noqa: E402
from sglang.srt.layers import quantization  # noqa: E402
from sglang.srt.layers.quantization.mxfp4 import Mxfp4Config  # noqa: E402
from sglang.srt.runtime_context import override_platform  # noqa: E402
from sglang.srt.server_args import ServerArgs  # noqa: E402
from sglang.srt.utils.hf_transformers.config import get_config  # noqa: E402

PLACES = {"@RANK@": "0", "@LEADER@": "127.0.0.1"}
CAPABILITY = {"hgx-a100": 80, "hgx-h100": 90, "hgx-h200": 90, "hgx-b200": 100, "gb200-nvl72": 100}
AMD = 94  # of systems that are not among these
MEMORY = 141 * 10**9  # byte
OFF = ("is_npu", "is_xpu", "is_musa", "is_mps", "is_sm110", "is_sm120", "has_amx")
FOLDER = Path(tempfile.mkdtemp())
# Those that are there where chips are.
quantization.QUANTIZATION_METHODS.setdefault("mxfp4", Mxfp4Config)


def platform(system: str) -> dict[str, object]:
    """What SGLang asks of the chips of a system."""
    sm = CAPABILITY.get(system, AMD)
    blackwell, hopper, cuda = sm == 100, sm == 90, system in CAPABILITY
    named = dict.fromkeys(OFF, False) | {"is_cuda": cuda, "is_hip": not cuda}
    named |= dict.fromkeys(("is_sm100", "is_sm100_or_sm110", "is_blackwell"), blackwell)
    named |= dict.fromkeys(("is_sm90", "is_hopper_with_cuda_12_3"), hopper)
    return named | {"has_flashinfer": cuda, "device_sm": sm, "device_capability": divmod(sm, 10)}


@functools.cache
def folder(model: str, config: str) -> tuple[str, bool]:
    """A folder with the model's configuration, and whether transformers builds it."""
    keys, place = json.loads(config), FOLDER / model
    places = (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
              modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)  # fmt: skip
    names = [each[keys["model_type"]] for each in places if keys["model_type"] in each]
    place.mkdir()
    written = json.dumps({"architectures": names[:1] or ["LlamaForCausalLM"], **keys})
    (place / "config.json").write_text(written, encoding="utf-8")
    try:
        get_config(str(place), trust_remote_code=True).num_key_value_heads  # noqa: B018
    except Exception:
        return str(place), False
    return str(place), True


def check(parser, row) -> bool:
    """Raises what SGLang raises; whether it resolved all."""
    place, built = folder(row["model"], json.dumps(row["config"]))
    words = [str(x) for pair in row["words"] for x in pair if x is not None]
    for mark, stands_for in {**PLACES, "@MODEL@": place}.items():
        words = [word.replace(mark, stands_for) for word in words]
    args = parser.parse_args(words)
    args.served_model_name, args.device = "model", "cuda"
    if built:
        with override_platform(**platform(row["system"])):
            ServerArgs.from_cli_args(args).resolve_once()
        return True
    args.page_size = args.page_size or 1
    args.chunked_prefill_size = args.chunked_prefill_size or 8192
    args.disable_overlap_schedule |= args.pp_size > 1
    check_server_args(ServerArgs.from_cli_args(args))
    return False


def main() -> None:
    """Check every launch of a file and print what was refused."""
    parser, refused, built = argparse.ArgumentParser(), collections.Counter(), []
    ServerArgs.add_cli_args(parser)
    capability = {"major": 9, "minor": 0, "multi_processor_count": 132, "name": "NVIDIA H200"}
    chip = SimpleNamespace(total_memory=MEMORY, **capability)
    torch.cuda.get_device_properties = lambda *_: chip
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["engine"] != "sglang":
            continue
        try:
            built.append(check(parser, row))
        except (Exception, SystemExit) as error:
            built.append(True)
            refused[f"{type(error).__name__}: {str(error)[:300]}", row["model"]] += 1
    print(f"sglang: {len(built)} launches, {sum(built)} resolved, {sum(refused.values())} refused")
    for (error, model), count in refused.most_common():
        print(count, model, error)


if __name__ == "__main__":
    main()
