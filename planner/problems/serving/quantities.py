"""The quantities of a serving question that may vary: one row of each, read by everything.

`parameters.py` makes parameters of a scenario of them, the programs sum their symbols to an
elasticity, and `arrays.py` puts arrays in place of those that are numbers of a task.
"""

from __future__ import annotations

from dataclasses import dataclass

RENT = "USD/(chip*s)"
PEAKS = "system.flops."  # the peak of one dtype, below the path of all of them
MEAN = ".mean"  # a length may be written as the mean of its distribution


@dataclass(frozen=True)
class ServingQuantity:
    """One quantity that may vary.

    Parameters
    ----------
    path : as `--set` takes it; a name of its own where a catalogue has many numbers for it.
    symbols : the symbols of the equations that move together with it, by the same percent.
    owner : whose number it is where an array may stand in its place: the task, its chip, its
        promises, lengths, rent or batch; None where a scenario has to be bound anew.
    name : what the owner calls it.
    whole : a count.
    """

    path: str
    unit: str
    group: str
    symbols: tuple[str, ...] = ()
    owner: str | None = None
    name: str = ""
    whole: bool = False


QUANTITIES = (
    ServingQuantity("price", RENT, "prices", ("p_chip",), "rent"),
    ServingQuantity("system.price", RENT, "prices", (), "rent"),
    ServingQuantity(
        "system.memory_bandwidth", "byte/s", "chip", ("W_chip",), "chip", "memory_bandwidth"
    ),
    # The runtime keeps a share of the memory.
    ServingQuantity("system.memory", "byte", "chip", ("M_cap", "M_reserve"), "chip", "memory"),
    ServingQuantity(
        "system.flops", "flop/s", "chip", ("F_attn", "F_ffn", "F_routed", "F_head", "F_sdpa")
    ),
    ServingQuantity(
        "system.network", "byte/s", "network",
        ("r_ar", "r_hop", "w_ar", "w_ar_pf", "w_x", "w_x_pf", "w_cp", "w_ring"),
    ),
    ServingQuantity("system.scale_up", "byte/s", "network"),
    ServingQuantity("system.scale_out", "byte/s", "network"),
    ServingQuantity("system.sram", "byte", "chip"),
    ServingQuantity("system.power", "J/s", "chip"),
    ServingQuantity(
        "model.weight_bytes", "", "model", ("S_fixed", "S_routed", "M_fixed", "M_routed")
    ),
    ServingQuantity("model.active_params", "", "model", ("N_attn", "N_ffn", "N_exp", "N_head")),
    ServingQuantity(
        "model.kv_bytes_per_token", "", "model",
        ("b_kv", "b_store", "R_bnd", "R_bnd_mem", "R_state"),
    ),
    ServingQuantity(
        "engine.efficiency", "", "engine",
        ("e_w", "e_kv", "e_c", "e_at", "e_pf", "e_pf_x", "e_pf_a", "e_ar", "e_ar_pf", "e_a2a"),
    ),
    ServingQuantity(
        "engine.overhead", "", "engine",
        (
            "t_layer", "t_moe", "t_ep", "t_ar", "t_a2a", "t_hop_sw", "t_seq", "t_step",
            "t_pf_chunk", "t_pf_moe", "t_tok", "t_request",
        ),
    ),
    ServingQuantity("workload.input_tokens", "token", "workload", (), "lengths", "input_tokens"),
    ServingQuantity("workload.output_tokens", "token", "workload", (), "lengths", "output_tokens"),
    ServingQuantity("workload.cached_input", "1", "workload", (), "task", "cached_input"),
    ServingQuantity("workload.routing_skew", "1", "workload", (), "task", "skew"),
    ServingQuantity("workload.demand", "seq/s", "workload"),
    ServingQuantity("workload.concurrency", "seq", "workload", (), "batch", whole=True),
    ServingQuantity("choose.batch", "seq", "choices", (), "batch", whole=True),
    ServingQuantity("choose.chunk", "token", "choices", (), "task", "chunk", whole=True),
    ServingQuantity("promises.ttft", "s", "promises", (), "promises", "ttft"),
    ServingQuantity("promises.ttft_p95", "s", "promises"),
    ServingQuantity("promises.ttft_p99", "s", "promises"),
    ServingQuantity("promises.tpot", "s", "promises", (), "promises", "tpot"),
    ServingQuantity("promises.e2e", "s", "promises", (), "promises", "e2e"),
    ServingQuantity(
        "promises.tokens_per_s_per_user", "token/s", "promises", (), "promises",
        "tokens_per_s_per_user",
    ),
    ServingQuantity("power_price", "USD/J", "prices"),
    ServingQuantity("pue", "1", "prices"),
)  # fmt: skip
BY_PATH = {row.path: row for row in QUANTITIES}
BATCHES = tuple(row.path for row in QUANTITIES if row.owner == "batch")
WHOLE = tuple(row.path for row in QUANTITIES if row.whole)


def is_array(path: str) -> bool:
    """Whether a path is one number of the equations, so that arrays may stand in its place."""
    row = BY_PATH.get(path)
    owned = row is not None and row.owner is not None
    return owned or path.startswith(PEAKS) or path in names_of("lengths")


def names_of(owner: str) -> dict[str, str]:
    """{path: what an owner calls the quantity there}."""
    names = {row.path: row.name for row in QUANTITIES if row.owner == owner}
    return names | {f"{path}{MEAN}": name for path, name in names.items() if owner == "lengths"}
