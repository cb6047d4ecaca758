"""Parallel layout from the columns of a published run, for tables of several exports.

Runs of InferenceX state chips `tp`, expert ways `ep` and whether attention is copied. Two exports
turned these into columns. The older multiplied: `tp` = 8 and `ep` = 8 without copies became tensor
ways 64 and expert columns 8 x 8; with copies, attention ways 64. The newer writes ways: tensor 8,
experts 1 x 8, or attention 8. Some runs stand in the file in both forms with the same times to the
last digit, which shows both readings: 16 | 4 x 4 is 4 | 1 x 4, and 64 copies | 8 x 8 is
8 copies | 1 x 8. Ways that do not multiply, and weights beyond the memory, cannot have run: such a
row is refused, with the reading that would make sense.

The two pools of a disaggregated run, their missing numbers read from the script that started it, or
inferred without any measured time.

Most published rows say how many chips one prefill and one decode worker have, not how many workers
there are, nor whether the decode workers copy attention: the older export wrote the expert ways of
the prefill pool for both. Where no script says what decides is how such sweeps are laid out
(InferenceX, recipes of 2025-12 to 2026-04). Workers share tensors while users are few, several
beside one prefill worker; once the cache of the requests in flight outweighs the weights, latent
attention is copied, because its one head cannot be cut, and one wide worker does the work of many.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.architecture.counts import ModelSizes
from planner.catalogue.chips import Chip
from planner.measurements.measurement import ONE_CHIP, RunPool, RunPools
from planner.measurements.published_names import BadRow
from planner.measurements.readers.script_settings import ScriptPool, ScriptPools
from planner.measurements.readers.sheets import TableRow, count, number_or_none, parse_number

GIB_OF_GB = 2**30 / 1e9  # GB per GiB; a card's memory listed in GB is in GiB


def capacity(chip: Chip) -> float:
    """Memory capacity of a chip [byte]: as its driver reports, else GB read as GiB."""
    figure = chip.figures.get("memory")
    larger = GIB_OF_GB if figure is not None and figure.unit == "GB" else 1.0
    return chip.memory_reported or chip.memory * larger


def require_fits_memory(sizes: ModelSizes, chip: Chip, chips: int) -> None:
    """Raises BadRow if the weights of one replica exceed the memory of its chips."""
    stored, room = sum(sizes.weight_bytes.values()), capacity(chip)
    if stored <= chips * room:
        return
    least = 2 ** math.ceil(math.log2(stored / room))
    raise BadRow(
        f"{stored / 1e9:.0f} GB of weights do not fit on {chips} {chip.name} "
        f"({chips * room / 1e9:.0f} GB): {least} would hold them; are ways left out, such as "
        "copies of attention, or is another number format meant?"
    )


def parallel_sizes(row: TableRow, experts: int, pool: str = "") -> dict[str, int]:
    """Ways of one worker by axis.

    Copies of attention that are not given follow from the experts' ways. Raises BadRow if tensor
    ways are missing, or the experts' ways are not those of the chips.

    Args:
        experts: routed experts of the model, 0 for a dense one (its expert columns say nothing).
        pool: prefix of the columns, such as `decode_`; empty for a single pool.
    """
    tp, pp = count(row, f"{pool}tp_size"), count(row, f"{pool}pp_size", 1)
    dp = count(row, f"{pool}attention_dp_size", 1)
    tp_expert, ep = count(row, f"{pool}moe_tp_size", 1), count(row, f"{pool}moe_ep_size", 1)
    columns = (f"{pool}moe_tp_size", f"{pool}moe_ep_size")
    experts_stated = [number_or_none(row, name) is not None for name in columns]
    copies_stated = number_or_none(row, f"{pool}attention_dp_size") is not None
    if experts and all(experts_stated) and not copies_stated and tp_expert * ep > tp:
        # Every chip of a stage holds a share of the experts: tp x dp = tp_expert x ep.
        dp, rest = divmod(tp_expert * ep, tp)
        if rest:
            raise BadRow(f"ways do not multiply: experts on {tp_expert * ep} chips, tp {tp} does "
                          "not divide them")  # fmt: skip
    side = math.isqrt(tp * dp)
    if experts and side > 1 and side * side == tp * dp and tp_expert == ep == side:
        tp, dp, tp_expert = (1, side, 1) if dp > 1 else (side, 1, 1)
    elif dp > 1 and tp == dp and ep == tp * dp:
        # vLLM starts one copy of attention per chip; the export kept the chips as tensor ways too.
        tp, ep, tp_expert = 1, dp, 1
    stage = tp * dp
    if not experts:
        return {**ONE_CHIP, "tp": tp, "pp": pp, "dp_attention": dp}
    if dp > 1 and tp_expert == stage > 8:
        # Beyond one machine of eight, copies of attention send tokens to experts: a matrix cut
        # 32-fold would need every token on every chip. SGLang's DeepEP runs are exported so.
        tp_expert, ep = 1, stage
    # Tables write expert sizes 1 x 1 if the sizes are unknown.
    if all(experts_stated) and not pool and stage != (spread := tp_expert * ep) > 1:
        meant = f": dp {spread // tp} would" if spread % tp == 0 else ""
        raise BadRow(
            f"ways do not multiply: tp {tp} x dp {dp} are {stage} chips, the experts' "
            f"tp {tp_expert} x ep {ep} are {spread}{meant}"
        )
    if stage % ep:
        raise BadRow(f"{ep} expert groups on {stage} chips")
    return {**ONE_CHIP, "tp": tp, "pp": pp, "dp_attention": dp, "ep": ep, "tp_expert": stage // ep}


def worker_chips(layout: dict[str, int]) -> int:
    """Chips of one worker."""
    return layout["tp"] * layout["dp_attention"] * layout["pp"]


# Cached tokens in flight per chip of a decode worker; from here on attention is replicated.
MIN_TOKENS = 120e3
# Workers under tensor parallelism: most sweeps have three to five, up to eleven.
TP_GROUP, SHARED_LOW, SHARED_HIGH, MAX_TP_WORKERS = 4.5, 2, 9, 11
# Workers that copy attention: one, but in domains of eight chips short prompts feed several.
COPIES_OF_EIGHT = 3
WIDE_EP_SIZES = (48, 32, 16, 8)  # chips of one worker that copies attention, in one domain
MAX_DECODE_CHIP_SHARE = 0.9  # the most that a wide worker takes of the chips of both pools
RACK = 72  # chips of one NVLink domain, which no published pair of pools exceeds
EIGHT = 8
POOLS = ("prefill", "decode")
# Share of peak in prefill pools, overhead of a decode layer [s], share of bandwidth for its bytes:
# typical figures, used only for the balance of the pools.
PREFILL, LAYER, BYTES = 0.15, 150e-6, 0.5
SLACK = 1.5
Lengths = tuple[float, float]  # of prompt and answer [token]


@dataclass(frozen=True)
class _Sides:
    """Chips of a worker of each pool; with the chips of `all` pools, the `workers` that decode."""

    decode: int
    prefill: int
    workers: int | None = None
    all: int | None = None


def run_pools(
    row: TableRow, sizes: ModelSizes, chip: Chip, scripts: Sequence[ScriptPools] = ()
) -> RunPools:
    """Both pools of a run; numbers that row and `scripts` lack are estimates with a range.

    Raises BadRow if the columns do not even say how large a worker is, or hold no ways.
    """
    prompt, output = parse_number(row, "isl"), parse_number(row, "osl")
    domain = RACK if chip.name.startswith("gb") else EIGHT
    if number_or_none(row, "decode_num_workers") is not None:
        stated = []
        for name in POOLS:
            ways = parallel_sizes(row, sizes.n_experts, f"{name}_")
            n = count(row, f"{name}_num_workers", 1)
            stated.append(RunPool(ways, worker_chips(ways), n, n, n, True))
        places = {each.pools[1].places for each in scripts}
        if len(places) == 1:
            stated[1] = replace(stated[1], most=float(places.pop()))
        at_once = number_or_none(row, "concurrency")
        if at_once is None:
            decode = stated[1]
            decode_batch = parse_number(row, "decode_batch_size") * decode.layout["dp_attention"]
            at_once = decode_batch * decode.workers
        return RunPools(stated[0], stated[1], at_once)
    requests = parse_number(row, "concurrency")
    if started := _started(row, sizes, scripts):
        return started
    lengths, context = (prompt, output), prompt + output / 2
    sides = _sides(row, sizes, chip, requests * context, prompt)
    # Of both pools, since the columns of one may be a copy of the other's.
    experts = (count(row, f"{pool}_moe_ep_size", 1) for pool in ("prefill", "decode"))
    spread = any(ways > 1 for ways in experts)
    decode = _decode(sides.decode, requests, lengths, domain, sizes, spread)
    if sides.workers is not None:
        decode = replace(decode, workers=sides.workers, low=1, high=max(1, 2 * sides.workers))
    ways = _prefill(sides.prefill, row, sizes)
    # Prefill workers that feed the decode pool; 1 if decode workers are tensor-parallel.
    if decode.layout["dp_attention"] == 1:
        workers = 1
    else:
        step = _step(decode, requests, prompt + output / 2, sizes, chip)
        pool = RunPool(ways, worker_chips(ways), 1, 1, 1, False)
        wanted = requests / (output * step) / rate_of_prefill(pool, prompt, sizes, chip)
        workers = max(1, round(wanted))
    room = ((sides.all or RACK) - decode.workers * decode.chips) // worker_chips(ways)
    most = max(1, room) if domain == RACK else workers
    workers = most if sides.all else min(workers, most)
    low, high = max(1, workers // 2), max(1, min(2 * workers, most) if workers > 1 else 2)
    return RunPools(RunPool(ways, worker_chips(ways), workers, low, high, False), decode, requests)


def in_decode(
    pools: RunPools, prompt: float, output: float, sizes: ModelSizes, chip: Chip
) -> float:
    """Requests that decode at once, over all workers.

    Nearly all of them where the prefill pool keeps up. Where it clearly does not (by more than
    SLACK, the rates here being typical ones), as many as it can feed while they decode: where its
    workers are given, or as many as fit into the rack.
    """
    prefill, decode = pools.prefill, pools.decode
    most = max(1.0, pools.concurrency - prefill.workers)
    left = RACK - prefill.workers * prefill.chips - decode.workers * decode.chips
    if not prefill.stated and left >= prefill.chips:
        return most
    rate = SLACK * pools.prefill.workers * rate_of_prefill(pools.prefill, prompt, sizes, chip)
    decoding = most
    for _ in range(8):
        decoding = min(
            most, rate * output * _step(pools.decode, decoding, prompt + output / 2, sizes, chip)
        )
    return max(1.0, decoding)


def rate_of_prefill(pool: RunPool, prompt: float, sizes: ModelSizes, chip: Chip) -> float:
    """Prompts per second of one prefill worker, at a typical share of peak [1/s]."""
    weights = sizes.weight_dtype["routed" if sizes.n_experts else "dense_ffn"]
    unit = weights if weights in ("fp8", "nvfp4") else "bf16"
    peak = chip.peak(unit if unit in chip.flops or unit == "nvfp4" else "bf16")
    work = 2 * sizes.n_active["no_input_embedding"] * prompt
    return PREFILL * peak * pool.chips / work


def matching_scripts(row: TableRow, scripts: Sequence[ScriptPools]) -> list[ScriptPools]:
    """The scripts that may have started a run: those of its workers, or of its chips.

    Where a table writes the chips of all pools on both sides, or a single one, these count.
    """
    sides = [(count(row, f"{x}_tp_size"), count(row, f"{x}_attention_dp_size", 1)) for x in POOLS]
    chips, copied = [tp * dp for tp, dp in sides], [dp > 1 for _, dp in sides]
    if number_or_none(row, "decode_num_workers") is not None:
        workers = [count(row, f"{x}_num_workers", 1) for x in POOLS]
        return [each for each in scripts if [x.workers for x in each.pools] == workers]
    alike = [each for each in scripts if [x.chips for x in each.pools] == chips]
    if not alike and chips[0] == chips[1]:
        alike = [x for x in scripts if chips[0] in (1, sum(y.workers * y.chips for y in x.pools))]
    narrow = [each for each in alike if [x.copies > 1 for x in each.pools] == copied]
    return narrow if len(alike) > 1 and narrow else alike


def _started(row: TableRow, sizes: ModelSizes, scripts: Sequence[ScriptPools]) -> RunPools | None:
    pairs = {each.pools for each in scripts}
    if len(pairs) != 1:
        return None
    prefill, decode = (_as_started(pool, sizes) for pool in pairs.pop())
    return RunPools(prefill, decode, parse_number(row, "concurrency"))


def _as_started(pool: ScriptPool, sizes: ModelSizes) -> RunPool:
    tp, n = pool.chips // pool.copies, pool.workers
    experts = {"ep": pool.experts, "tp_expert": pool.chips // pool.experts}
    layout = {
        **ONE_CHIP,
        "tp": tp,
        "dp_attention": pool.copies,
        **(experts if sizes.n_experts else {}),
    }
    return RunPool(layout, pool.chips, n, n, n, True, float(pool.places))


def _sides(row: TableRow, sizes: ModelSizes, chip: Chip, tokens: float, prompt: float) -> _Sides:
    """Chips of a worker in each pool.

    Two exports hold other things than ways. One writes the chips of all pools as tensor ways, on
    both sides; one writes a single chip on both sides for models that no chip holds.
    """
    columns = ("decode_", "prefill_") if row.get("mode") == "disagg" else ("", "")
    decode, prefill = (
        count(row, f"{name}tp_size") * count(row, f"{name}attention_dp_size", 1) for name in columns
    )
    least = 2 ** math.ceil(math.log2(max(1.0, sum(sizes.weight_bytes.values()) / chip.memory)))
    least = max(least, 4) if sizes.n_experts and least > 1 else least
    if decode == prefill < least:
        return _Sides(WIDE_EP_SIZES[1] if tokens / (2 * least) >= MIN_TOKENS else least, least)
    if decode == prefill > EIGHT and not row.get("image"):
        return _taken_apart(decode, max(4, least), tokens, prompt > 2048)
    return _Sides(decode, prefill)


def _taken_apart(chips: int, node: int, tokens: float, long: bool) -> _Sides:
    """Split `chips` between the workers of two pools."""
    if tokens / EIGHT < MIN_TOKENS:
        sizes = [d for d in (EIGHT, node) if (chips - node) % d == 0]
        if sizes:
            decode = min(sizes, key=lambda d: abs(math.log((chips - node) / d / (TP_GROUP - 0.5))))
            return _Sides(decode, node, (chips - node) // decode, chips)
    wide = [d for d in WIDE_EP_SIZES if d <= MAX_DECODE_CHIP_SHARE * chips] or [node]
    decode = wide[0]
    # Long prompts leave fewer chips to decoding once a worker is full.
    if long and len(wide) > 1 and tokens / decode > 2 * MIN_TOKENS and decode != WIDE_EP_SIZES[0]:
        decode = wide[1]
    return _Sides(decode, node, 1, chips)


def _decode(
    chips: int, requests: float, lengths: Lengths, domain: int, sizes: ModelSizes, spread: bool
) -> RunPool:
    prompt, output = lengths
    context = prompt + output / 2
    latent = any(cache.kind == "latent" for cache in sizes.caches)
    wide = chips > EIGHT and (domain == RACK or chips > 2 * EIGHT)
    copied = chips > 1 and (wide or requests * context / chips >= MIN_TOKENS)
    if not sizes.n_experts:
        layout = {**ONE_CHIP, "tp": chips}
    elif copied:
        layout = {**ONE_CHIP, "dp_attention": chips, "ep": chips}
    elif spread:
        layout = {**ONE_CHIP, "tp": chips, "ep": chips}
    else:
        layout = {**ONE_CHIP, "tp": chips, "tp_expert": chips}
    if copied or not latent:
        several = latent and domain == EIGHT and chips <= EIGHT and prompt <= 2048
        workers = COPIES_OF_EIGHT if several else 1
        return RunPool(layout, chips, workers, 1, 5 if several else 2, False)
    workers, high = _shared(int(requests), chips)
    return RunPool(layout, chips, workers, min(SHARED_LOW, workers), high, False)


def _shared(requests: int, chips: int) -> tuple[int, int]:
    """Workers under tensor parallelism: a divisor of the concurrency, the nearest to the usual."""
    if chips > EIGHT:
        return (max(1, min(3, requests)),) * 2
    divisors = [n for n in range(3, MAX_TP_WORKERS + 1) if requests % n == 0]
    if not divisors:
        return max(1, min(round(TP_GROUP - 0.6), requests)), max(1, min(SHARED_HIGH, requests))
    nearest = min(divisors, key=lambda n: (abs(math.log(n / TP_GROUP)), -n))
    return nearest, max(nearest, min(SHARED_HIGH, requests))


def _prefill(chips: int, row: TableRow, sizes: ModelSizes) -> dict[str, int]:
    if chips != count(row, "prefill_tp_size", 1) * count(row, "prefill_attention_dp_size", 1):
        spread = bool(sizes.n_experts) and chips > 1
        return (
            {**ONE_CHIP, "dp_attention": chips, "ep": chips}
            if spread
            else {**ONE_CHIP, "tp": chips}
        )
    layout = parallel_sizes(row, sizes.n_experts, "prefill_")
    latent = any(cache.kind == "latent" for cache in sizes.caches)
    if latent and layout["ep"] == chips > 1:  # experts on all chips go with copied attention
        return {**ONE_CHIP, "dp_attention": chips, "ep": chips}
    return layout


def _step(pool: RunPool, requests: float, context: float, sizes: ModelSizes, chip: Chip) -> float:
    """A typical decode step of one worker [s]."""
    per_worker = requests / pool.workers
    read = sum(sizes.streamed_bytes.values()) / pool.chips
    cached = per_worker / pool.chips * context * sizes.kv_bytes_per_token
    return sizes.n_layers * LAYER + (read + cached) / (BYTES * chip.memory_bandwidth)
