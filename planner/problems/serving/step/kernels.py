"""Kernels of the serving equations, lowered once and kept on disk: here they are fed without SymPy.

What is lowered are the tables of `equations`, each a function of that name. Two pools together are
one kernel for every use: their rates in, what a plan of both gives out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from formulas.numerics.store import cached_kernel, cached_program

if TYPE_CHECKING:
    from formulas.numerics.kernel import Kernel
    from formulas.numerics.trees import ScalarProgram

# Parts of a step by their name in the answer, with the symbols that add up to each; collectives
# count only exposed communication.
STEP_PARTS: Mapping[str, tuple[str, ...]] = {
    "weights": ("T_w_dec",),
    "kv": ("T_kv_dec",),
    "compute": ("T_math",),
    "collectives": ("T_exposed", "T_hop"),
    "overhead": ("T_over",),
    "drafts": ("T_spec",),
    "prefill": ("T_share",),
}
# Queue symbols that determine the wait quantile, without the inputs of a rank.
WAITING_OUTPUTS = (
    *("rho_pf", "T_wait", "T_line", "T_join", "T_dec", "S_occ", "v_occ", "x_load", "x_heavy"),
    "r_both",
)
WORK = ("T_slot", "T_pf_busy", "T_out", "T_ttft", "T_tpot")  # times that no load changes
# Sources of a chip's power: given, counted from the work, or counted and billed besides rent.
LOAD_GIVEN, LOAD_COUNTED, BILLING = "given", "counted", "billed"
FOLLOWS = (LOAD_COUNTED, BILLING)
# Limits of a step that are options of engines.
OF_A_STEP = ("sequences_of_step", "tokens_of_step")
# Outputs that limit the batch, and times that determine every output.
BATCH_TIMES = ("tpot", "slot", "busy", "need", "mixed", *OF_A_STEP)
QUEUED_TIMES = ("step", "arrivals")
SOURCES = (Path(__file__), Path(__file__).with_name("equations.py"))
MAX_NAME_LENGTH = 60  # characters of a file name; a longer name becomes a digest


def _file(table: str, key: tuple[object, ...]) -> str:
    words = "-".join(map(str, key))
    if len(words) > MAX_NAME_LENGTH:
        words = blake2b(words.encode(), digest_size=8).hexdigest()
    return f"serving-{table}-{words}"


@cache
def get_kernel(table: str, *key: object) -> Kernel:
    """The kernel of a table of `equations` at its arguments."""

    def make() -> Kernel:
        from formulas.numerics.evaluate import kernel
        from planner.problems.serving.step.equations import equation_table

        return kernel(*equation_table(table, *key))

    return cached_kernel(_file(table, key), make, SOURCES)


def feed(kernel: Kernel, symbols: Mapping[str, object]) -> dict[str, np.ndarray]:
    """The outputs of a kernel, the symbols that it asks for picked out of more.

    Arrays of their common shape, floats where all of them are numbers.
    """
    return kernel(**{name: symbols[name] for name in kernel.names})  # type: ignore[return-value]


@cache
def load_scalar_program(table: str, *key: object, names: frozenset[str]) -> ScalarProgram:
    """A table of `equations` as plain trees, which share only the equations with the kernel.

    `names` are the symbols whose values are given.
    """

    def make() -> ScalarProgram:
        from formulas.numerics.evaluate import scalar_program
        from planner.problems.serving.step.equations import equation_table

        return scalar_program(*equation_table(table, *key), names)

    return cached_program(f"{_file(table, key)}-{_file('', tuple(sorted(names)))}", make, SOURCES)


@dataclass(frozen=True)
class StepModel:
    """Equations of a pool: its phases, the roofline or the estimate, its load.

    `load` is `none`, `given` where it must be carried, `most` where as much as can be is served;
    `powered` is `given` where a chip's power is a number, `counted` where it follows from its work,
    `billed` where it does and is paid beside the rent.
    """

    mode: str
    bound: bool
    load: str = "none"
    powered: str = ""

    @property
    def key(self) -> tuple[str, bool, str, str]:
        """Arguments of the tables of `equations`."""
        return self.mode, self.bound, self.load, self.powered

    @property
    def work(self) -> tuple[str, ...]:
        """Symbols of the work of a request, that no load changes: times [s], energies [J]."""
        if self.powered not in FOLLOWS:
            return WORK
        return (*WORK, "E_run") if self.mode == "prefill" else (*WORK, "E_run", "E_w")

    def lowered(self, table: str) -> Kernel:
        """The kernel of a table that depends on all of these."""
        return get_kernel(table, *self.key)


POWERS = frozenset({"P_chip_pf", "P_chip_dec"})


def pools_values(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """Every output of two pools: money [USD], rates [1/s], times [s]; where powered, energy [J]."""
    values = feed(get_kernel("whole_pools", load, symbols.keys() >= POWERS), symbols)
    return {name: float(value) for name, value in values.items()}


def pools_recomputed(load: str, symbols: Mapping[str, float]) -> dict[str, float]:
    """Recompute `pools_values` by walking the equations with plain floats."""
    powered = symbols.keys() >= POWERS
    return load_scalar_program("whole_pools", load, powered, names=frozenset(symbols))(symbols)


def split_values(load: str, symbols: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Requests served [1/s] and what one costs [USD] of many splits, shaped as the symbols are."""
    return feed(get_kernel("pools", load, "requests", "usd_per_request"), symbols)


def replica_rates(slot: np.ndarray, busy: np.ndarray | float, free: float) -> np.ndarray:
    """Requests per second of one replica at its most, of the shape of `slot`."""
    rate = get_kernel("replica_most")
    return np.asarray(rate(T_slot=slot, r_busy=busy, x_free=free, one_seq=1.0)["X_rep"])


def load_share(rate: float, slot: float, replicas: int) -> float:
    """Share of the slots of `replicas` replicas in use at `rate` requests per second."""
    values = get_kernel("load_share")(X_arr=rate, T_slot=slot, n_up=replicas, one_seq=1.0)
    return float(values["r_load"])
