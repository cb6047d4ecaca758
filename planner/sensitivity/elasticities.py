"""Elasticities of an answer: what one percent of each given quantity is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.protocol.plan import Plan
    from planner.uncertainty.global_study import Study

__all__ = ["Elasticities", "Row", "sensitivity"]


@dataclass(frozen=True)
class Row:
    """One given quantity and what it does to one output.

    `left` and `right` are d ln output / d ln given when it falls and when it rises; they differ at
    a kink. `switches` are the nearest changes at which another choice becomes the best, None where
    they were not sought. `reach` is the largest elasticity of any output, where it is known.
    """

    path: str
    value: float | None
    unit: str
    group: str
    left: float
    right: float
    method: str
    switches: tuple[dict[str, Any], ...] | None = None
    reach: float = 0.0

    @property
    def influence(self) -> float:
        """The most that the quantity does, to this output or to another."""
        return max(abs(self.elasticity), self.reach)

    @property
    def elasticity(self) -> float:
        """The larger side; not a number where the answer beside it was not found."""
        return max(self.left, self.right, key=abs)

    @property
    def known(self) -> bool:
        """Whether the answer beside it was found."""
        return not (math.isnan(self.left) or math.isnan(self.right))

    def document(self) -> dict[str, Any]:
        """The row as a mapping."""
        switches = None if self.switches is None else list(self.switches)
        return {
            "path": self.path, "value": self.value, "unit": self.unit, "group": self.group,
            "elasticity": self.elasticity if self.known else None,
            "left": self.left if self.known else None,
            "right": self.right if self.known else None,
            "method": self.method, "switches": switches,
        }  # fmt: skip


def _rank(row: Row) -> tuple[bool, float, str]:
    return (not row.known, -abs(row.elasticity) if row.known else 0.0, row.path)


class Elasticities(dict[str, float]):
    """{path in the scenario: d ln output / d ln quantity}, largest first; prints as a table.

    `rows` say more of each; `document` is all that `--json` prints. Both are empty where only the
    multipliers of a plan were asked for.
    """

    rows: tuple[Row, ...] = ()
    document: dict[str, Any] | None = None

    @classmethod
    def of(cls, rows: Iterable[Row], document: dict[str, Any] | None = None) -> Elasticities:
        """Those of some rows."""
        ranked = sorted(rows, key=_rank)
        found = cls((row.path, row.elasticity) for row in ranked)
        found.rows, found.document = tuple(ranked), document
        return found

    def __str__(self) -> str:
        if self.document is not None:
            from planner.report.text.sensitivity import sensitivity_text

            return sensitivity_text(self.document)
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {value:+.3f}" for name, value in self.items())


def sensitivity(
    of: Plan | Any,
    *,
    output: str | None = None,
    sets: Sequence[str] = (),
    switches: bool = False,
    sobol: int | None = None,
    morris: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Elasticities | Study:
    """What one percent of each given quantity is worth.

    Parameters
    ----------
    of : a plan, or what `planner.solve` takes. Of a plan alone come the elasticities of its
        objective, which it has from the multipliers of its geometric program (envelope theorem)
        without another solve; a quantity without influence is absent.
    output : what of the answer is looked at, such as cost, tpot, throughput, tokens or
        over_training; the cost if None. All given quantities are then in the table.
    sets : changes "path.in.file=value" made before.
    switches : seek, for each quantity, the nearest change each way at which another choice is
        the best, by solving again.
    sobol, morris, seed, workers : study what the scenario's `uncertain:` says instead, with so
        many base draws, or trajectories, in so many processes: a `Study` comes back.

    Raises
    ------
    InputError
        With every mistake in the input, or if the answer has no such output.
    Infeasible
        If nothing keeps the promises.
    """
    from planner.protocol.plan import Plan
    from planner.sensitivity.local import local

    if sobol is not None or morris is not None:
        from planner.uncertainty.global_study import explore

        source = of.document["scenario"] if isinstance(of, Plan) else of
        return explore(source, output, sets, sobol=sobol, morris=morris, seed=seed, workers=workers)
    if isinstance(of, Plan):
        if output is None and not sets and not switches:
            ranked = sorted(of.elasticities.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
            return Elasticities(ranked)
        of = of.document["scenario"]
    return local(of, output, sets, switches=switches)
