"""Launches as SGLang parses them, through its own `check_server_args`.

    python sglang_checks.py words.jsonl

Runs where sglang is installed, without a GPU. What it works out of the model's files before its
checks (page, chunk, schedule of pipelines) is set as it would be; kernels are not run.
"""

import argparse
import collections
import json
import sys
from pathlib import Path

from sglang.srt.arg_groups.validation_hook import check_server_args
from sglang.srt.server_args import ServerArgs

PLACES = {"@RANK@": "0", "@LEADER@": "127.0.0.1", "@MODEL@": "model"}


def check(parser, row) -> None:
    """Raises what SGLang raises, there and where it resolves expert parallelism."""
    words = [str(x) for pair in row["words"] for x in pair if x is not None]
    for place, stands_for in PLACES.items():
        words = [word.replace(place, stands_for) for word in words]
    args = parser.parse_args(words)
    args.served_model_name = "model"
    args.page_size = args.page_size or 1
    args.chunked_prefill_size = args.chunked_prefill_size or 8192
    args.disable_overlap_schedule |= args.pp_size > 1
    check_server_args(ServerArgs.from_cli_args(args))
    # arg_groups/parallel_hook.py and overrides.py, which ask for the model's files first.
    assert args.ep_size > 1 or not args.enable_eplb, "EPLB wants ep_size > 1"
    assert args.ep_size * args.moe_dp_size <= args.tp_size, "ep_size * moe_dp_size > tp_size"
    exchanged = args.moe_a2a_backend != "none"
    assert args.ep_size == args.tp_size or not exchanged, "an exchange spans tp_size"


def main() -> None:
    """Check every launch of a file and print what was refused."""
    parser, refused, checked = argparse.ArgumentParser(), collections.Counter(), 0
    ServerArgs.add_cli_args(parser)
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["engine"] != "sglang":
            continue
        checked += 1
        try:
            check(parser, row)
        except (Exception, SystemExit) as error:
            refused[f"{type(error).__name__}: {str(error)[:300]}"] += 1
    print(f"sglang: {checked} launches, {sum(refused.values())} refused")
    for error, count in refused.most_common():
        print(count, error)


if __name__ == "__main__":
    main()
