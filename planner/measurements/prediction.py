"""Prediction of measured rows: the bound, the estimate, its band, in the rows' own time.

Nothing is modelled here. A row's model, chip, layout, batch and lengths become a `Task`, whose
`Step` is the one that plans are made with; a row's quantity is one of the step's values. The
estimate is linear in the overheads t and in the reciprocals 1/e of the efficiencies, but for two
products: the steps that a new request waits times what a step takes, and what two half-batches
hide of the shorter of work and sending. So that step, evaluated with one coefficient switched on at
a time, yields what each coefficient contributes, and nothing is derived twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, HIDES, NEUTRAL, Profile, profile
from planner.measurements.entry import Prediction
from planner.measurements.measurement import (
    CollectiveRow,
    Measurement,
    network_for_chips,
    row_context,
    row_profile,
)
from planner.measurements.readers.collective_rows import FAMILIES, MACHINES, OTHER_MACHINES
from planner.measurements.roofline_bound import measured_task, row_bounds
from planner.network import collective_time, place_group
from planner.problems.serving.step.engine_effects import max_resident, rounds_waited
from planner.problems.serving.step.layouts import Layouts
from planner.problems.serving.step.shares import extrapolation_masks
from planner.problems.serving.step.step import Step
from planner.problems.serving.task.task import ClosedLoop
from planner.text.errors import InputError
from topologies import Machine, TopologyError, machine

NO_ENGINE = Profile("nothing", "", "", (), 0, "", 1.0, {}, {}, NEUTRAL)


class RowStep:
    """Rows that differ in layout, batch and the settings of their closed loop alone."""

    def __init__(self, rows: Sequence[Measurement]) -> None:
        self.rows = rows
        self.first = rows[0]
        self.rounds = np.zeros(len(rows))  # of others, that a request waits for a place
        self.answers: RowStep | None = None
        if self.first.pooled and self.first.quantity == "ttft":
            self.answers = RowStep([_answering(row) for row in rows])
        axis = {
            name: np.array([(row.layout or {})[name] for row in rows])
            for name in ("tp", "pp", "dp_attention", "ep", "tp_expert")
        }
        ones, chips = np.ones(len(rows), dtype=np.int64), np.array([row.chips for row in rows])
        halves = np.array([row.halves for row in rows])
        self.layouts = Layouts(cp=ones, replicas=ones, chips=chips, halves=halves, **axis)
        self.batch = np.array([float(row.batch) for row in rows])
        loop = self._loop() if self.first.looped else None
        modes = {
            "tpot": "decode" if self.first.pooled else "aggregated",
            "ttft": "aggregated" if self.first.looped and not self.first.pooled else "prefill",
            "step": "decode",
            "e2e": "prefill",
        }
        mode = modes[self.first.quantity]
        if self.first.quantity != "ttft":
            loop = None  # it lengthens first tokens alone
        self.step = self._step(mode, loop)
        self.decoding = self.step
        if self.first.quantity == "e2e":
            self.decoding = self._step("decode")

    def times(
        self, coefficients: Mapping[str, float | np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The time that each row states, and that of the decode step it waits `n_sched` of [s].

        Both have shape (n_rows,); the latter is 0 where requests wait for no decode steps.

        Args:
            coefficients: of the estimate, numbers or one for each row.
        """
        quantity, nothing = self.first.quantity, np.zeros(len(self.rows))
        values = self._values(self.step, coefficients)
        if quantity in ("tpot", "step"):
            return values["tpot"], nothing
        if quantity == "ttft":
            loop = self.step.task.loop
            if loop is None or self.first.pooled:
                return values["ttft"], nothing
            return values["ttft"], (1 + loop.rounds) * values["step"]
        tokens = self._values(self.decoding, coefficients)["tpot"]
        return values["ttft"] + (self.first.output - 1) * tokens, nothing

    def _values(
        self, step: Step, coefficients: Mapping[str, float | np.ndarray]
    ) -> dict[str, np.ndarray]:
        if self.answers is not None and step.task.loop is not None:
            decoding = self.answers._values(self.answers.step, coefficients)
            loop = replace(step.task.loop, tpot=decoding["tpot"], step=decoding["step"])
            step = step.with_values_of(replace(step.task, loop=loop))
        values = step.under(coefficients).work(self.batch)
        shown = ("ttft", "tpot", "step")
        return {name: np.broadcast_to(values[name], self.batch.shape) for name in shown}

    def _step(self, mode: str, loop: ClosedLoop | None = None) -> Step:
        """Build the step for the rows, on layouts with the rows' numbers of chips.

        Raises InputError if no network is known between their chips.
        """
        row = self.first
        network = network_for_chips(row.chip.name, row.machine, row.chips)
        if network is None:
            raise InputError(f"no network is known that joins {row.chips} {row.chip.name}")
        static = mode == "prefill" and not row.looped
        task = measured_task(row, mode, network, NO_ENGINE, self.layouts.chips)
        task = replace(task, engine=row.engine, loop=loop, static=static)
        return Step(replace(task, even=row.even, pooled=row.pooled), self.layouts, bound=False)

    def _loop(self) -> ClosedLoop:
        """The loop that the rows ran in; the batch is what memory holds and the engine lets in."""
        step = self._step("aggregated")
        alone = step.work(np.ones(len(self.rows)))
        most = max_resident(step.task, self.layouts, alone["memory.weights"], alone["memory.kv"])
        most = np.minimum(most, [row.most or np.inf for row in self.rows])
        sent, self.batch = self.batch, np.minimum(self.batch, most)
        self.rounds = rounds_waited(sent, most)
        if self.answers is not None:
            pools = [row.pools for row in self.rows if row.pools is not None]
            bursts = [each.concurrency / each.prefill.workers for each in pools]
            return ClosedLoop(burst=np.array(bursts), rounds=self.answers.rounds)
        return ClosedLoop(
            even=self.first.even,
            mixed=self.first.mixed,
            poll=np.array([row.poll for row in self.rows]),
            hold=np.array([row.hold for row in self.rows]),
            rounds=self.rounds,
        )


def _answering(row: Measurement) -> Measurement:
    if row.pools is None:
        raise ValueError("a run of one pool")
    pool = row.pools.decode
    batch = max(1.0, row.pools.concurrency / pool.workers)
    where = replace(row, layout=pool.layout, chips=pool.chips, batch=batch, most=pool.most)
    return replace(where, quantity="tpot")


def group_similar_rows(rows: Sequence[Measurement]) -> list[list[int]]:
    """Group the indices of rows that can share a `RowStep`."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[(id(row.sizes), row.chip.name, row.machine, row.quantity, row.prompt, row.output,
                row.context, row.looped, row.pooled, row.engine, row.even, row.drafts,
                row.chips, row.pools and row.pools.decode.chips, row.by_sequence, row.chunk,
                row.mixed)].append(i)  # fmt: skip
    return list(groups.values())


BANDS = {"ttft": "ttft"}  # every other quantity is a time of decoding


def predict(rows: Sequence[Measurement], wanted: str = "auto") -> list[Prediction]:
    """The bound, the estimate and its band of every row, in the order of the rows.

    Raises CatalogueError if there is no such profile; InputError if a row has no layout, or no
    network is known between its chips.

    Args:
        wanted: a profile's name or file, or `auto`: the one that each row's engine asks for.
    """
    if not rows:
        return []
    profiles = [_profile_at(wanted, row) for row in rows]
    times, shares, beyond = times_and_shares(rows, profiles, [(name,) for name in COEFFICIENTS])
    bands = []
    for at, row, parts, kinds in zip(profiles, rows, shares.tolist(), beyond, strict=True):
        rests_on = dict(zip(COEFFICIENTS, parts, strict=True))
        bands.append(at.band(BANDS.get(row.quantity, "tpot"), rests_on, kinds))
    return [
        Prediction(float(bound), float(time), float(time) * band.low, float(time) * band.high)
        for bound, time, band in zip(row_bounds(rows), times, bands, strict=True)
    ]


def times_and_shares(
    rows: Sequence[Measurement], profiles: Sequence[Profile], groups: Sequence[Sequence[str]] = ()
) -> tuple[np.ndarray, np.ndarray, list[dict[str, np.bool_]]]:
    """Times [s] of rows, the shares that groups of coefficients take, distances of their numbers.

    Shapes (n_rows,) and (n_rows, n_groups). A share is what is left without the group; kinds of
    distance from the rows of the profile, as `extrapolation_masks` has them, are said of each row.
    """
    seconds, shares = np.empty(len(rows)), np.empty((len(rows), len(groups)))
    beyond: list[dict[str, np.bool_]] = [{} for _ in rows]
    for members in group_similar_rows(rows):
        coefficients = {
            name: np.array([profiles[i].values[name] for i in members]) for name in COEFFICIENTS
        }
        off = [{name: NEUTRAL[name] for name in group} for group in groups]
        model, times, _ = _under_each([rows[i] for i in members], coefficients, [{}, *off])
        seconds[members] = times[0]
        shares[members] = (1 - times[1:] / times[0]).T
        task = replace(model.step.task, profile=profiles[members[0]])
        for kind, holds in extrapolation_masks(task, model.layouts, model.batch).items():
            all_lie = np.broadcast_to(holds, len(model.rows))
            for i, lies in zip(members, all_lie[: len(members)], strict=True):
                beyond[i][kind] = lies
    return seconds, shares, beyond


def _under_each(
    rows: Sequence[Measurement],
    coefficients: Mapping[str, float | np.ndarray],
    changes: Sequence[Mapping[str, float]],
) -> tuple[RowStep, np.ndarray, np.ndarray]:
    """Both `times` of similar rows under each change of coefficients [s], (n_changes, n_rows).

    All are rows of the one step that is returned: an evaluation costs hardly more with more rows.
    """
    shape = (len(changes), len(rows))
    stacked = {
        name: np.ravel([np.broadcast_to(x.get(name, value), shape[1]) for x in changes])
        for name, value in coefficients.items()
    }
    model = RowStep([*rows] * len(changes))
    seconds, waited = model.times(stacked)
    return model, seconds.reshape(shape), waited.reshape(shape)


def _profile_at(wanted: str, row: Measurement) -> Profile:
    chosen = row_profile(row, wanted)
    return _resolved(chosen.name if wanted == "auto" else wanted, row_context(row, chosen.as_of))


@cache
def _resolved(name: str, place: RunContext) -> Profile:
    return profile(name).at(place)


IB_ONLY_SYSTEM = "across racks (IB only)"  # of as many chips as a node has
CARDS_ONLY = "DeepEP first release low-latency"  # pure RDMA, inside a node too
EFA = "EFA"


def predict_collective(row: CollectiveRow) -> Prediction:
    """The bound, the estimate and its band of a collective by the profile of collectives.

    Raises InputError if it is no collective, or nothing is known of its group; the message is the
    reason.
    """
    if row.operation == "p2p":
        raise InputError("one copy, not a collective")
    try:
        group = place_group(_machine(row), row.n, row.chip if row.chip in FAMILIES else None)
    except TopologyError as error:
        raise InputError(" ".join(str(error).split())) from error
    network = "efa" if EFA in row.system else "infiniband"
    name = row.algorithm
    if row.operation == "all-reduce" and (name == "in-network" or group.domains > 1):
        name = "library"
    timed = collective_time(group, row.operation, row.size, algorithm=name, network=network)
    return Prediction(float(timed.bound), float(timed.seconds), float(timed.low), float(timed.high))


def _machine(row: CollectiveRow) -> Machine:
    whole = machine({**MACHINES, **OTHER_MACHINES}[row.chip])
    if row.system.endswith(IB_ONLY_SYSTEM):
        return replace(whole, chips_per_domain=row.n // row.nodes)
    if row.system == CARDS_ONLY:
        return replace(whole, chips_per_domain=1)
    return whole


# Memory, arithmetic, network: the efficiencies of each, by how their names begin.
ROOFS = (("e_w", "e_kv"), ("e_c", "e_at", "e_pf"), ("e_ar", "e_a2a"))
WAIT, HIDING = COEFFICIENTS.index("n_sched"), COEFFICIENTS.index(HIDES)
# Coefficients of communication in a pass; NOT_WORK: neither communication nor work of the pass.
SENDING = np.array([name in ("e_ar", "e_ar_pf", "e_a2a", "t_ar", "t_a2a") for name in COEFFICIENTS])
# Coefficients at no cost; t_request [s] is not 0, so that shares of a time are defined.
NO_COST = {**NEUTRAL, "t_request": 1e-15}
NOT_WORK = np.array([name in ("t_hop", "t_tok", "t_request", "n_sched") for name in COEFFICIENTS])


@dataclass(frozen=True)
class Features:
    """Times of rows as functions of the unknowns: 1/e of an efficiency, an overhead itself.

    A row takes `rest` + `matrix` @ x + x[n_sched] * (`step_rest` + `step` @ x) [s], where the last
    is one decode step of the rows whose requests wait for some. Where `halved`, the share 1/x of
    HIDING of the shorter of work and sending is less. Shapes (n_rows, n_coefficients) and
    (n_rows,); `rest` is what no coefficient scales (latencies of hops). First tokens of two pools
    are no such sum: their columns are good for a roofline alone.
    """

    matrix: np.ndarray
    rest: np.ndarray
    step: np.ndarray
    step_rest: np.ndarray
    halved: np.ndarray

    def take(self, rows: np.ndarray) -> Features:
        """Select some of the rows; the columns stay."""
        return Features(*(column[rows] for column in vars(self).values()))

    def times(self, x: np.ndarray) -> np.ndarray:
        """Times [s] for unknowns of shape (n_coefficients,) or, row by row, (n_rows, same)."""
        x = np.broadcast_to(x, self.matrix.shape)
        waits = x[:, WAIT] * (self.step_rest + (self.step * x).sum(axis=1))
        seconds: np.ndarray = self.rest + (self.matrix * x).sum(axis=1) + waits
        return seconds - self._hidden(x)[0]

    def _hidden(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Time hidden by two half-batches [s], and the mask of the coefficients that it hides."""
        parts = self.matrix * x
        sent, work = (parts * SENDING).sum(axis=1), (parts * ~(SENDING | NOT_WORK)).sum(axis=1)
        shorter = np.where((sent < work)[:, None], SENDING, ~(SENDING | NOT_WORK))
        return self.halved * np.minimum(sent, work) / x[:, HIDING], shorter

    def parts(self, x: np.ndarray) -> np.ndarray:
        """Time of each coefficient's own part [s], shape (n_rows, n_coefficients).

        That of the steps waited for holds the parts of all others in such a step; what is hidden of
        a part is left out, and is the part of HIDING, of which more shortens the time.
        """
        parts: np.ndarray = (self.matrix + x[:, [WAIT]] * self.step) * x
        parts[:, WAIT] = x[:, WAIT] * (self.step_rest + (self.step * x).sum(axis=1))
        hidden, shorter = self._hidden(x)
        parts *= 1 - shorter * (self.halved / x[:, HIDING])[:, None]
        # The less is hidden, the longer: 1/x falls as x grows.
        parts[:, HIDING] = hidden
        return parts

    @property
    def roofline(self) -> np.ndarray:
        """Each row's highest roof at full efficiency [s], shape (n_rows,).

        Unlike the bound it reads the experts that a step is expected to, on the layout that ran.
        """
        roofs = [
            self.matrix[:, [name.startswith(roof) for name in COEFFICIENTS]].sum(axis=1)
            for roof in ROOFS
        ]
        highest: np.ndarray = np.max(roofs, axis=0)
        return highest


def features(rows: Sequence[Measurement]) -> Features:
    """Columns of every row, in the order of the rows.

    Raises InputError if a row has no layout, or no network is known between its chips.
    """
    shape = (len(rows), len(COEFFICIENTS))
    matrix, step = np.zeros(shape), np.zeros(shape)
    rest, step_rest = np.zeros(len(rows)), np.zeros(len(rows))
    columns = [i for i in range(len(COEFFICIENTS)) if i != WAIT]
    for members in group_similar_rows(rows):
        alone = [{COEFFICIENTS[i]: 1.0} for i in columns]
        _, seconds, waited = _under_each([rows[i] for i in members], NO_COST, [{}, *alone])
        rest[members], step_rest[members] = seconds[0], waited[0]
        matrix[np.ix_(members, columns)] = (seconds[1:] - seconds[0]).T
        step[np.ix_(members, columns)] = (waited[1:] - waited[0]).T
    halved = np.array([float(row.halves > 1) for row in rows])
    return Features(np.maximum(matrix, 0.0), rest, np.maximum(step, 0.0), step_rest, halved)


def unknowns(values: Mapping[str, float]) -> np.ndarray:
    """The unknowns of a profile's values: 1/e and t, shape (n_coefficients,)."""
    return np.array([1 / values[c] if c in EFFICIENCIES else values[c] for c in COEFFICIENTS])


def coefficients_from_linear(x: np.ndarray) -> dict[str, float]:
    """The coefficients of a profile whose unknowns these are, shape (n_coefficients,)."""
    pairs = zip(COEFFICIENTS, x.tolist(), strict=True)
    return {name: 1 / one if name in EFFICIENCIES else one for name, one in pairs}
