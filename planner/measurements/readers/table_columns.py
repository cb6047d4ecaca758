"""Columns of a user's own table of measurements, and the words that others use for them.

=============  ====================================================================================
model          catalogue name, published id (organisation, format and tuning may be in it), or the
               path of a configuration that ends in `.json`
system, chip   a catalogue system (`hgx-h200`) or a chip (`h200`, `NVIDIA H200`); one of the two
engine         name, as `vllm`; `engine_version` beside it
weights        number format of the weights, the checkpoint's own where blank; `kv` of the cache
tp, pp, ep     ways; `dp_attention` copies of attention; blank is 1, and tensor ways fill `n_chips`
n_chips        chips in all; a multiple of a replica's means several replicas
concurrency    requests kept in flight (a closed loop); or `batch` of a static batch
input_tokens   mean lengths [token]; `output_tokens` beside it
ttft_ms        any of ttft, tpot, itl, step, e2e, each in `_ms` or `_s`, and `tokens_per_s` (output
               tokens, all replicas together)
drafts         speculated tokens per step, 0 or blank for none
=============  ====================================================================================

Names are matched without regard to case, spaces, dashes and units in brackets, and under the words
that vLLM, SGLang and others use for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from planner.text.errors import InputError, did_you_mean, quoted

# Every column, and the words that others use for it, in the form that `_plain` gives.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "model": ("model_id", "model_path", "model_name"),
    "system": ("machine", "node"),
    "chip": ("gpu", "accelerator", "hardware", "device", "gpu_type", "hw"),
    "engine": ("backend", "framework", "server"),
    "engine_version": ("backend_version", "version", "framework_version"),
    "weights": ("precision", "quantization", "weight_dtype", "dtype", "weights_dtype"),
    "kv": ("kv_dtype", "kv_cache_dtype", "cache_dtype"),
    "tp": ("tp_size", "tensor_parallel", "tensor_parallel_size"),
    "pp": ("pp_size", "pipeline_parallel", "pipeline_parallel_size"),
    "dp_attention": ("attention_dp_size", "dp_attn", "dp_size", "data_parallel_size", "dp"),
    "ep": ("ep_size", "moe_ep_size", "expert_parallel", "expert_parallel_size"),
    "n_chips": ("chips", "gpus", "n_gpus", "num_gpus", "gpu_count", "world_size"),
    "concurrency": ("max_concurrency", "conc", "users", "concurrent_requests"),
    "batch": ("batch_size",),
    "input_tokens": ("isl", "input_len", "input_length", "prompt_tokens", "random_input_len"),
    "output_tokens": ("osl", "output_len", "output_length", "completion_tokens"),
    "drafts": ("mtp", "num_speculative_tokens", "speculative_tokens"),
    "speculated": ("speculative", "spec_decoding"),
    "assumed": (),
    "ttft_ms": ("mean_ttft_ms", "time_to_first_token_ms"),
    "ttft_s": ("mean_ttft_s", "time_to_first_token_s"),
    "tpot_ms": ("mean_tpot_ms", "time_per_output_token_ms"),
    "tpot_s": ("mean_tpot_s", "time_per_output_token_s"),
    "itl_ms": ("mean_itl_ms", "inter_token_latency_ms"),
    "itl_s": ("mean_itl_s", "inter_token_latency_s"),
    "step_ms": ("decode_step_ms", "iteration_ms"),
    "step_s": ("decode_step_s", "iteration_s"),
    "e2e_ms": ("e2el_ms", "mean_e2el_ms", "latency_ms", "e2e_latency_ms"),
    "e2e_s": ("e2el_s", "mean_e2el_s", "latency_s", "e2e_latency_s"),
    "tokens_per_s": ("output_throughput", "output_tokens_per_s", "throughput", "tok_s"),
}
VALUES = tuple(name for name in COLUMNS if name.endswith("_s") or name.endswith("_ms"))
NEEDED = (("model",), ("system", "chip"), ("input_tokens",), ("output_tokens",))
LOADS = ("concurrency", "batch")
# Names that no column is misspelt as: remarks, and what is told of a time beside its mean.
BESIDE = re.compile(r"(notes?|comments?|remarks?|date|name|source|url|id)$|(p\d+|std|min|max)_")


def columns_of(names: Sequence[str], facts: Mapping[str, object], where: str) -> dict[str, str]:
    """The column that each name of a table means; names of nothing known are left out.

    Raises
    ------
    InputError
        If a name is nearly one that is lacking, two names mean one column, a fact has no column,
        or a column that is needed is missing.
    """
    spellings = {_plain(word): name for name, words in COLUMNS.items() for word in (name, *words)}
    meanings: dict[str, str] = {}
    mistakes, unknown = [], []
    for name in names:
        meant = spellings.get(_plain(name))
        if meant is None:
            unknown.append(name)
        elif meant in meanings.values():
            mistakes.append(f"the column {meant} is given twice, once as {quoted(name)}")
        else:
            meanings[name] = meant
    had = {*meanings.values(), *facts}
    stated = {_meant(column) for column in had}
    rest = [word for word, column in spellings.items() if _meant(column) not in stated]
    for name in unknown:
        hint = did_you_mean(_plain(name), rest)
        mean = spellings.get(_plain(name).removeprefix("median_"))
        if hint and not BESIDE.match(_plain(name)) and not (mean and _meant(mean) in stated):
            mistakes.append(f"unknown column {quoted(name)}{hint}")
    for name in facts:
        if name not in COLUMNS:
            mistakes.append(f"unknown fact {quoted(name)}{did_you_mean(name, COLUMNS) or ''}")
    for names_of_one in (*NEEDED, LOADS):
        if not had.intersection(names_of_one):
            mistakes.append(
                f"missing column {' or '.join(names_of_one)}; what holds for all rows may be a "
                f"fact: --fact {names_of_one[0]}=…"
            )
    if not had.intersection(VALUES):
        mistakes.append(f"no measured column (any of {', '.join(VALUES)})")
    if mistakes:
        raise InputError(f"{where}: " + f"\n{where}: ".join(mistakes))
    return meanings


def _meant(column: str) -> str:
    """What a column says, whichever of several ways it is said in."""
    group = next((names for names in (*NEEDED, LOADS) if column in names), (column,))
    return group[0].rsplit("_", 1)[0] if column in VALUES else group[0]


def _plain(name: str) -> str:
    text = re.sub(r"[\s\-./]+", "_", name.strip().lower())
    text = re.sub(r"_?[\[(](m?s)[\])]$", r"_\1", text)
    return re.sub(r"[^a-z0-9_]", "", text).strip("_")
