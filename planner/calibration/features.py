"""What each coefficient of a profile contributes to the time of a measured row.

The estimate is linear in the overheads t and in the reciprocals 1/e of the efficiencies, but for
two products: the steps that a new request waits times what a step takes, and what two half-batches
hide of the shorter of work and sending. So the serving step that
plans are made with, evaluated with one coefficient switched on at a time, yields every column, and
nothing is derived twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalogue.profile import COEFFICIENTS, EFFICIENCIES, HIDES, OFF
from planner.measurements.measurement import Measurement
from planner.measurements.prediction import RowStep, alike_rows

# Memory, arithmetic, network: the efficiencies of each, by how their names begin.
ROOFS = (("e_w", "e_kv"), ("e_c", "e_at", "e_pf"), ("e_ar", "e_a2a"))
WAIT, HIDING = COEFFICIENTS.index("n_sched"), COEFFICIENTS.index(HIDES)
# What the chips of a pass send each other, and what is neither that nor work of the pass.
SENDING = np.array([name in ("e_ar", "e_ar_pf", "e_a2a", "t_ar", "t_a2a") for name in COEFFICIENTS])
# No coefficient at all, but that no request is answered in no time: shares of it are asked for.
NONE = {**OFF, "t_request": 1e-15}
APART = np.array([name in ("t_hop", "t_tok", "t_request", "n_sched") for name in COEFFICIENTS])


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
        """The same columns for some of the rows."""
        return Features(*(column[rows] for column in vars(self).values()))

    def times(self, x: np.ndarray) -> np.ndarray:
        """Times [s] for unknowns of shape (n_coefficients,) or, row by row, (n_rows, same)."""
        x = np.broadcast_to(x, self.matrix.shape)
        waits = x[:, WAIT] * (self.step_rest + (self.step * x).sum(axis=1))
        seconds: np.ndarray = self.rest + (self.matrix * x).sum(axis=1) + waits
        return seconds - self._hidden(x)[0]

    def _hidden(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What two half-batches hide [s], and in which coefficients' parts it is."""
        parts = self.matrix * x
        sent, work = (parts * SENDING).sum(axis=1), (parts * ~(SENDING | APART)).sum(axis=1)
        shorter = np.where((sent < work)[:, None], SENDING, ~(SENDING | APART))
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
    for members in alike_rows(rows):
        model = RowStep([rows[i] for i in members])
        rest[members], step_rest[members] = model.times(NONE)
        for column, name in enumerate(COEFFICIENTS):
            if column != WAIT:
                seconds, waited = model.times({**NONE, name: 1.0})
                matrix[members, column] = seconds - rest[members]
                step[members, column] = waited - step_rest[members]
    halved = np.array([float(row.halves > 1) for row in rows])
    return Features(np.maximum(matrix, 0.0), rest, np.maximum(step, 0.0), step_rest, halved)


def unknowns(values: Mapping[str, float]) -> np.ndarray:
    """The unknowns of a profile's values: 1/e and t, shape (n_coefficients,)."""
    return np.array([1 / values[c] if c in EFFICIENCIES else values[c] for c in COEFFICIENTS])


def coefficients_of(x: np.ndarray) -> dict[str, float]:
    """The coefficients of a profile whose unknowns these are, shape (n_coefficients,)."""
    pairs = zip(COEFFICIENTS, x.tolist(), strict=True)
    return {name: 1 / one if name in EFFICIENCIES else one for name, one in pairs}
