"""Launches as vLLM parses them and checks them across options, by its own configurations.

    python vllm_checks.py words.jsonl

Runs where vllm is installed, without a GPU: a stand-in for its platform says that there is one.
What wants the model's own files, or kernels, is not checked.
"""

import collections
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch
import vllm.platforms
from vllm.platforms.interface import DeviceCapability, Platform, PlatformEnum


class StandIn(Platform):
    """A Hopper chip that nobody has."""

    _enum = PlatformEnum.CUDA
    device_name = device_type = "cuda"
    dispatch_key = "CUDA"

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability:
        """Its compute capability."""
        return DeviceCapability(9, 0)

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Its memory [byte]."""
        return 141 * 10**9


vllm.platforms._current_platform = StandIn()
for kernels in ("vllm_flash_attn", "v1.worker.utils"):
    sys.modules[f"vllm.{kernels}"] = MagicMock()  # connectors import them
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(
    major=9, minor=0, gcnArchName="gfx942", multi_processor_count=132, total_memory=141 * 10**9
)

from transformers import PretrainedConfig  # noqa: E402
from vllm.config import (  # noqa: E402
    CacheConfig,
    EPLBConfig,
    KVTransferConfig,
    ModelConfig,
    ParallelConfig,
    VllmConfig,
)
from vllm.entrypoints.common.cli_args import make_arg_parser  # noqa: E402
from vllm.transformers_utils.model_arch_config_convertor import (  # noqa: E402
    MODEL_ARCH_CONFIG_CONVERTORS,
    ModelArchConfigConvertorBase,
)
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402

PLACES = {"@RANK@": "0", "@LEADER@": "127.0.0.1"}


def record(kind, given):
    """A configuration that was given as one, as keys, or as JSON."""
    if isinstance(given, kind):
        return given
    return kind(**(given if isinstance(given, dict) else json.loads(given)))


def heads(config) -> SimpleNamespace:
    """What stands in for a model's configuration where its heads are divided over ranks."""
    keys = config.get("text_config", config)
    if "block_configs" in keys:  # of layers that differ, read as objects
        written = json.dumps(keys["block_configs"])
        blocks = json.loads(written, object_hook=lambda x: MagicMock(**{"no_op": False, **x}))
        keys = {**keys, "block_configs": blocks}
    read = PretrainedConfig(**keys)
    kind = MODEL_ARCH_CONFIG_CONVERTORS.get(config["model_type"], ModelArchConfigConvertorBase)
    arch = kind(read, read)
    return SimpleNamespace(
        model_arch_config=SimpleNamespace(
            total_num_attention_heads=arch.get_total_num_attention_heads()
        ),
        get_total_num_kv_heads=arch.get_total_num_kv_heads,
        use_mla=arch.is_deepseek_mla(),
        registry=SimpleNamespace(is_pp_supported_model=lambda *_: True),
        architectures=[],
        multimodal_config=None,
        _verify_with_expert_parallelism=lambda: None,
    )


def check(parser, row) -> None:
    """Raises what vLLM raises."""
    words = [name if value is None else f"{name}={value}" for name, value in row["words"]]
    for place, stands_for in PLACES.items():
        words = [word.replace(place, stands_for) for word in words]
    StandIn._enum = PlatformEnum.ROCM if row["system"].startswith("mi") else PlatformEnum.CUDA
    args = parser.parse_args([row["model"], *words])
    same = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
            "decode_context_parallel_size", "enable_expert_parallel", "enable_eplb",
            "all2all_backend", "enable_dbo")  # fmt: skip
    more = {"eplb_config": record(EPLBConfig, args.eplb_config)} if args.enable_eplb else {}
    more |= {"distributed_executor_backend": "mp", "data_parallel_rank": 0}
    cache = CacheConfig(
        cache_dtype=args.kv_cache_dtype, block_size=args.block_size,
        gpu_memory_utilization=args.gpu_memory_utilization,
    )  # fmt: skip
    parallel = ParallelConfig(**{x: getattr(args, x) for x in same}, **more)
    given, model = args.kv_transfer_config, heads(row["config"])
    transfer = record(KVTransferConfig, given) if given else None
    VllmConfig(parallel_config=parallel, cache_config=cache, kv_transfer_config=transfer)
    ModelConfig.verify_with_parallel_config(model, parallel)
    if transfer:
        pushes = transfer.kv_connector == "NixlPushConnector"
        assert pushes or args.pipeline_parallel_size == 1, "NixlConnector of stages"
        shared = args.decode_context_parallel_size > 1
        assert not shared or (model.use_mla and not pushes), "NIXL of ranks that share contexts"


def main() -> None:
    """Check every launch of a file and print what was refused."""
    parser, refused, checked = make_arg_parser(FlexibleArgumentParser()), collections.Counter(), 0
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["engine"] != "vllm":
            continue
        checked += 1
        try:
            check(parser, row)
        except (Exception, SystemExit) as error:
            refused[f"{type(error).__name__}: {str(error)[:300]}", row["model"]] += 1
    print(f"vllm: {checked} launches, {sum(refused.values())} refused")
    for (error, model), count in refused.most_common():
        print(count, model, error)


if __name__ == "__main__":
    main()
