"""Results of load generators as runs under the names of a user's own table.

=================  ================================================================================
vllm               `vllm bench serve --save-result` or `--append-result` (vLLM 0.10 to 0.20)
sglang             `sglang.bench_serving --output-file` (SGLang 0.4 to 0.5)
guidellm           `benchmarks.json` (GuideLLM 0.2 to 0.7): one run per benchmark of a sweep
inference-perf     `summary_` and `stage_N_lifecycle_metrics.json` (inference-perf 0.1 to 0.6)
=================  ================================================================================

None of them says on which chips the server ran, and few in which layout: these are facts that the
caller gives, or of vLLM's `--metadata tp=4`. What is taken: mean TTFT and the mean time between
output tokens without the first. GuideLLM calls the latter inter-token latency; its time per output
token holds the first one too.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from planner.measurements.published_names import aliases
from planner.text.tables import table

Document = Mapping[str, object]
FORMATS = ("vllm", "sglang", "guidellm", "inference-perf")
# Client backend names that only one engine serves, and that engine.
PROTOCOLS = {"sglang": "sglang", "vllm": "vllm", "trt": "trtllm", "tensorrt-llm": "trtllm"}
FIELD_PATHS = table("planner.measurements", "load_generators.toml")
IN_FLIGHT = "the mean number of requests in flight"


def format_of_document(document: Document) -> str | None:
    """Name of the load generator that wrote an object; None if unknown."""
    if _inside(document, "benchmarks.0.metrics") is not None:
        return "guidellm"
    # Reports from a server's own counters (`prometheus_metrics`) give no mean of the requests.
    if _inside(document, "successes.latency") is not None:
        return "inference-perf"
    if "completed" in document and "total_input_tokens" in document:
        return "sglang" if "mean_e2e_latency_ms" in document else "vllm"
    return None


def read_runs(documents: Sequence[Document], name: str) -> list[dict[str, str]]:
    """Runs by the columns of a user's own table, blank where unknown."""
    read: Mapping[str, Callable[[Document], list[dict[str, object]]]] = {
        "vllm": _vllm,
        "sglang": _sglang,
        "guidellm": _guidellm,
        "inference-perf": _inference_perf,
    }
    return [
        {column: "" if value is None else str(value) for column, value in run.items()}
        for document in documents
        for run in read[name](document)
    ]


def _vllm(document: Document) -> list[dict[str, object]]:
    run = _closed_or_open(document, document.get("mean_e2el_ms"))
    accepted = _number(document.get("spec_decode_acceptance_length"))
    drafts, proposed = (
        _number(document.get(f"spec_decode_{name}")) for name in ("num_drafts", "draft_tokens")
    )
    if accepted is not None and accepted > 1:
        run["speculated"] = "yes"
        run["drafts"] = round(proposed / drafts) if drafts and proposed else None
    facts = _stated(document, "vllm", "document")
    server = {name: fact for name, fact in facts.items() if isinstance(fact, str | int)}
    return [{"model": None, "engine": _engine(document, "vllm"), **server, **run}]


def _sglang(document: Document) -> list[dict[str, object]]:
    run = _closed_or_open(document, document.get("mean_e2e_latency_ms"))
    info = document.get("server_info")
    server = info if isinstance(info, dict) else {}
    accepted = _number(document.get("accept_length"))
    if accepted is not None and accepted > 1:
        run["speculated"] = "yes"
        run["drafts"] = server.get("speculative_num_steps")
    ways, copies = (_number(server.get(f"{name}_size")) or 1.0 for name in ("tp", "dp"))
    stages = _number(server.get("pp_size")) or 1.0
    facts = {"engine": _engine(document, "sglang"), **_stated(document, "sglang", "document")}
    facts |= {name: _format(facts[name]) for name in ("weights", "kv")}
    if server.get("enable_dp_attention"):
        # Its tensor ways are those of the experts; every copy of attention has a part of them.
        facts |= {"tp": ways / copies, "dp_attention": copies, "pp": stages}
    elif server.get("tp_size") is not None:
        facts |= {"tp": ways, "pp": stages, "n_chips": ways * copies * stages}
    return [{**facts, **run}]


def _engine(document: Document, client: str) -> str:
    name = str(document.get("backend") or document.get("endpoint_type") or "")
    return next((engine for start, engine in PROTOCOLS.items() if name.startswith(start)), client)


def _format(name: object) -> str | None:
    words = str(name or "").lower().replace("_", "-").split("-")
    return next((word for word in reversed(words) if word in aliases().words), None)


def _closed_or_open(document: Document, latency: object) -> dict[str, object]:
    """Run as written by both engines' clients; an open loop holds rate x latency requests."""
    completed = _number(document.get("completed")) or 0.0
    rate = document.get("request_rate")
    unpaced = rate in ("inf", None) or (_number(rate) is None)
    limit = _number(document.get("max_concurrency")) if unpaced else None
    run = {
        "concurrency": limit,
        "input_tokens": _mean(document.get("total_input_tokens"), completed),
        "output_tokens": _mean(document.get("total_output_tokens"), completed),
        **{name: document.get(f"mean_{name}") for name in ("ttft_ms", "tpot_ms", "itl_ms")},
    }
    if limit is None:
        run |= _in_flight(document.get("request_throughput"), latency, 1e-3, run)
    if not completed:
        run = dict.fromkeys(run)
    return run


def _guidellm(document: Document) -> list[dict[str, object]]:
    runs = []
    benchmarks = document["benchmarks"]
    for benchmark in benchmarks if isinstance(benchmarks, list) else ():
        strategy = _value(benchmark, *(f"{at}.strategy" for at in ("config", "scheduler", "args")))
        settings = strategy if isinstance(strategy, dict) else {}
        streams = {"synchronous": 1}.get(str(settings.get("type_")), settings.get("streams"))
        mean = _inside(benchmark, "metrics.request_concurrency.successful.mean")
        run = {
            **_stated(document, "guidellm", "document"),
            "concurrency": streams if streams is not None else mean,
            "assumed": None if streams is not None else IN_FLIGHT,
        }
        runs.append(run | _stated(benchmark, "guidellm", "benchmark"))
    return runs


def _inference_perf(document: Document) -> list[dict[str, object]]:
    run = _stated(document, "inference-perf", "document")
    if run["concurrency"] is None:
        rate = _inside(document, "successes.throughput.requests_per_sec")
        latency = _inside(document, "successes.latency.request_latency.mean")
        run |= _in_flight(rate, latency, 1.0, run)
    return [run]


def _in_flight(
    rate: object, latency: object, unit: float, run: Mapping[str, object]
) -> dict[str, object]:
    """Requests in flight by Little's law, from the mean latency or from its parts [in `unit` s]."""
    per_second, whole = _number(rate), _number(latency)
    if whole is None:
        ending = "ms" if unit < 1 else "s"
        first, token = _number(run.get(f"ttft_{ending}")), _number(run.get(f"tpot_{ending}"))
        output = _number(run.get("output_tokens"))
        if first is not None and token is not None and output is not None:
            whole = first + max(output - 1, 0.0) * token
    if per_second is None or whole is None:
        return {}
    return {"concurrency": max(1.0, per_second * whole * unit), "assumed": IN_FLIGHT}


def _stated(document: object, generator: str, part: str) -> dict[str, object]:
    return {name: _value(document, *paths) for name, paths in FIELD_PATHS[generator][part].items()}


def _inside(document: object, path: str) -> object:
    """Value at a path of keys and list indices; None if a part of the path is missing."""
    for key in path.split("."):
        if isinstance(document, Mapping):
            document = document.get(key)
        elif isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


def _value(document: object, *paths: str) -> object:
    values = (_inside(document, path) for path in paths)
    return next((value for value in values if value is not None), None)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _mean(total: object, count: float) -> float | None:
    number = _number(total)
    return number / count if number is not None and count else None
