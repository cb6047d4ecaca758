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
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(
    major=9, minor=0, gcnArchName="gfx942", multi_processor_count=132, total_memory=141 * 10**9
)

from vllm.config import CacheConfig, EPLBConfig, KVTransferConfig, ParallelConfig, VllmConfig  # noqa: E402
from vllm.entrypoints.common.cli_args import make_arg_parser  # noqa: E402
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402

PLACES = {"@RANK@": "0", "@LEADER@": "127.0.0.1"}


def record(kind, given):
    """A configuration that was given as one, as keys, or as JSON."""
    if isinstance(given, kind):
        return given
    return kind(**(given if isinstance(given, dict) else json.loads(given)))


def check(parser, row) -> None:
    """Raises what vLLM raises."""
    words = [name if value is None else f"{name}={value}" for name, value in row["words"]]
    for place, stands_for in PLACES.items():
        words = [word.replace(place, stands_for) for word in words]
    StandIn._enum = PlatformEnum.ROCM if row["system"].startswith("mi") else PlatformEnum.CUDA
    args = parser.parse_args([row["model"], *words])
    same = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
            "enable_expert_parallel", "enable_eplb", "all2all_backend", "enable_dbo")  # fmt: skip
    more = {"eplb_config": record(EPLBConfig, args.eplb_config)} if args.enable_eplb else {}
    more |= {"distributed_executor_backend": "mp", "data_parallel_rank": 0}
    cache = CacheConfig(
        cache_dtype=args.kv_cache_dtype, block_size=args.block_size,
        gpu_memory_utilization=args.gpu_memory_utilization,
    )  # fmt: skip
    parallel = ParallelConfig(**{x: getattr(args, x) for x in same}, **more)
    VllmConfig(parallel_config=parallel, cache_config=cache)
    if args.kv_transfer_config:
        connector = record(KVTransferConfig, args.kv_transfer_config).kv_connector
        assert args.pipeline_parallel_size == 1 or connector == "NixlPushConnector", connector


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
