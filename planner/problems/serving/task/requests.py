"""Requests and promises of a scenario as the numbers of a task."""

from collections.abc import Mapping

from planner.problems.serving.question import Scenario
from planner.problems.serving.step.layouts import HALVES
from planner.scenario.keys.workload import Workload
from planner.text.errors import FieldError

# Least tokens of one part, where the parts of a context are not given: of a prompt that is read,
# and in a pool that only decodes.
PART_READ, PART_DECODED = 16_384, 131_072
CACHE_FITS = 0.99  # default share of time that caches have room under arrivals
MAX_DOUBLINGS = 4  # sixteen parts are the most published (arXiv 2411.01783, section 4)
# Default chances that promises hold: even odds if runs of the model shape, chip and
# engine tell the level of its times; more where they do not, since four in ten such choices broke
# their limit by expectation.
CHANCE_MEASURED, NOT_MEASURED = 0.5, 0.7
LAYOUT_KEYS = ("tp", "pp", "cp", "dcp", "dp_attention", "ep", "tp_expert", "replicas")


def modes(scenario: Scenario) -> tuple[str, ...]:
    """The modes asked about; left free, one pool and two, where two are possible at all.

    A given batch or a closed loop is one of a single pool, and the lecture knows no other.
    """
    if scenario.choose.mode:
        return tuple(scenario.choose.mode)
    single = (
        scenario.assumptions == "lecture"
        or scenario.choose.batch is not None
        or scenario.workload.concurrency is not None
        or scenario.paid[-1] < 2
        # The latency-optimal split of a load between two pools is not solved exactly.
        or (scenario.objective == "latency" and scenario.workload.arrivals is not None)
    )
    return ("aggregated",) if single else ("aggregated", "disaggregated")


def layout_limits(
    scenario: Scenario, pool: str | None, *, halved: bool = True
) -> Mapping[str, tuple[int, ...]]:
    """Allowed values by axis of a layout, of one of two pools or of a single one.

    `halved` says whether half-batches may overlap where nobody chooses.
    """
    choose, tokens = scenario.choose, scenario.workload.input_tokens.mean
    pool_choice = getattr(choose, pool) if pool else None
    limits = {}
    unasked = context_parts(tokens, PART_DECODED if pool == "decode" else PART_READ)
    if scenario.assumptions != "lecture" and len(unasked) > 1:
        limits["cp"] = unasked
    for key in LAYOUT_KEYS:
        whole = None if (pool, key) == ("prefill", "dcp") else getattr(choose, key)
        value = getattr(pool_choice, key, None) or whole
        if value is not None:
            limits[key] = tuple(value)
    overlap = getattr(pool_choice, "overlap", None) or choose.overlap
    if overlap is None and not halved:
        overlap = ("none",)
    if overlap is not None:
        limits["halves"] = tuple(HALVES[word] for word in overlap)
    return limits


def whole_machines(scenario: Scenario, unit: int, machine: int) -> int:
    """Chips of a machine that replicas share evenly or fill; 0 where they may have any size.

    That is where chips are rented in parts of machines, unless `rent.even` says otherwise, and
    where no engine has to run a layout.
    """
    free = scenario.engine == "none" or scenario.assumptions == "lecture"
    free = free or scenario.estimate == "bound" or machine == 1
    even = scenario.rent.even if scenario.rent.even is not None else unit % machine == 0
    return machine if even and not free else 0


def context_parts(tokens: float, least: float = PART_READ) -> tuple[int, ...]:
    """Default numbers of context parts: powers of two, while the parts are long.

    Each part keeps `least` tokens: with fewer a part gains less than the rounds between parts cost.
    """
    return tuple(1 << i for i in range(MAX_DOUBLINGS + 1) if not i or tokens / (1 << i) >= least)


def batches(scenario: Scenario, pool: str | None) -> tuple[int, ...] | None:
    """Sequences in flight over all replicas, where the question fixes them.

    Of two pools it is the one that decodes whose batch is meant.
    """
    if pool == "prefill":
        return None
    wanted, loop = scenario.choose.batch, scenario.workload.concurrency
    if loop is None:
        return None if wanted is None else tuple(wanted)
    if wanted is not None and tuple(wanted) != (loop,):
        words = f"workload.concurrency keeps {loop} requests in flight, so the batch is not free"
        raise FieldError(("choose.batch", f"{words}; leave one of the two out"))
    return (loop,)


def arrivals(scenario: Scenario) -> float | None:
    """Requests per second that arrive, infinitely many where the most are sought."""
    load = scenario.workload
    if load.arrivals is None:
        return None
    return load.arrivals.requests_per_s(load.output_tokens.mean)


def draft_method(scenario: Scenario) -> str:
    """Draft model or method of the scenario; empty for the checkpoint's own blocks."""
    speculation = scenario.speculation
    return "" if speculation is None else speculation.draft_model or speculation.method or ""


def outputs(mode: str, tokens: float, *, pooled: bool) -> float:
    """Mean output tokens per request [token]; the prefill pool emits the first."""
    if (mode == "aggregated" or pooled) and tokens <= 1:
        words = "one output token comes from the prompt, which leaves nothing to decode"
        raise FieldError(("workload.output_tokens", f"{words}; choose mode: prefill"))
    return tokens


def context(lengths: Workload) -> float:
    """Mean context over the decode steps: `mean_context` of `formulas.serving.request_lengths`."""
    output = lengths.output_tokens
    return lengths.input_tokens.mean + output.mean * (1 + output.cv**2) / 2


def needed_chance(scenario: Scenario, *, measured: bool) -> float | None:
    """Required chance of promised times; None if the plan is chosen on the bound.

    `measured` says whether runs of the model's shape were measured on the chip and the engine.
    """
    if scenario.assumptions == "lecture" or scenario.estimate == "bound":
        return None
    return scenario.promises.chance or (CHANCE_MEASURED if measured else NOT_MEASURED)


def checked_promises(mode: str, scenario: Scenario, *, pooled: bool) -> dict[str, float]:
    """Promises that the mode can keep or break: a single phase ignores the other's.

    Of two pools the one that decodes is held to the whole request. Under arrivals the share of
    time in which caches find no room is limited; no bound knows of chance.
    """
    promises = scenario.promises
    bound = scenario.assumptions == "lecture" or scenario.estimate == "bound"
    fits = CACHE_FITS if promises.cache_fits is None else promises.cache_fits
    crowds = arrivals(scenario) is not None and fits and not bound
    made = {
        "ttft": promises.ttft,
        "ttft_p95": promises.ttft_p95,
        "ttft_p99": promises.ttft_p99,
        "tpot": promises.slowest_tpot,
        "e2e": promises.e2e,
        "cache_fits": 1 - fits if crowds else None,
    }
    absent = {
        "decode": {"ttft", "ttft_p95", "ttft_p99", *(() if pooled else ("e2e",))},
        "prefill": {"tpot", "e2e", "cache_fits"},
    }.get(mode, set())
    return {name: limit for name, limit in made.items() if limit is not None and name not in absent}
