"""The frontier of price against speed: for each speed promised to a user, the cheapest plan.

Each point is the exact optimum under one promise on the time per output token, everything else of
the question held. Between the fastest plan that keeps the other promises and the cheapest one the
promises are spaced evenly in the logarithm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from planner.problems.serving.answer import band, head, provenance, short_by
from planner.problems.serving.deployment.candidate import Candidate
from planner.problems.serving.deployment.current import current
from planner.problems.serving.deployment.ends import cheapest_end, fastest_end
from planner.problems.serving.deployment.pair import PairCandidate
from planner.problems.serving.deployment.pools import Question, best_of, questions_of, ranked
from planner.problems.serving.frontier_text import frontier_text, rows_of
from planner.problems.serving.question import Scenario
from planner.problems.serving.task.requests import modes as modes_of
from planner.problems.serving.task.resolve import Asked, ask
from planner.text.errors import FieldError, InputError

POINTS = 25
MOST = 1000
# What the lecture's fast mode costs beside the normal one (lecture notes, section 1).
FAST_PRICE = 6.0
EDGE = 1 + 1e-9  # a promise equal to a plan's own time must not fail by a rounding


@dataclass(frozen=True, repr=False)
class Frontier:
    """The cheapest plan at each speed; shows itself as a table, in a notebook too.

    `document` is exactly what `planner pareto --json` prints, in base units (s, byte, USD, token).
    """

    document: Mapping[str, Any]
    warnings: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """`optimal`, or `infeasible` when nothing keeps the promises."""
        return str(self.document["status"])

    @property
    def plans(self) -> tuple[Mapping[str, Any], ...]:
        """Plans in the words of the answer, fastest first, none slower and dearer than another."""
        return tuple(point["plan"] for point in self.document["points"])

    @property
    def marks(self) -> Mapping[str, int]:
        """Places of the fast, the normal and the slow mode among the plans."""
        return dict(self.document["marks"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The points as plain dicts of numbers and words, fastest first."""
        return rows_of(self.document)

    def __str__(self) -> str:
        return frontier_text(self.document)

    def __repr__(self) -> str:
        rows = self.rows
        if not rows:
            return "<Pareto: infeasible>"
        ends = [f"{row['tokens_per_s_per_user']:.3g}" for row in (rows[-1], rows[0])]
        prices = [f"${row['usd_per_mtok']:.3g}" for row in (rows[-1], rows[0])]
        return (
            f"<Pareto of {len(rows)} plans: {ends[0]} to {ends[1]} tokens/s per user, "
            f"{prices[0]} to {prices[1]} per Mtok>"
        )

    def _repr_html_(self) -> str:
        return f'<pre style="line-height:1.35">{escape(str(self))}</pre>'


def frontier(scenario: Scenario, points: int = POINTS) -> Frontier:
    """The frontier of a serving question, whatever its objective, within its promises.

    Parameters
    ----------
    points : promises on speed to look at, 2 to 1000; fewer plans where some share one.

    Raises
    ------
    InputError
        For a question that contradicts itself, or without decoding.
    SolverError
        If a plan does not survive its independent evaluation.
    """
    if not 2 <= points <= MOST:
        raise InputError(f"points: {points} is not between 2 and {MOST}")
    if "prefill" in modes_of(scenario):
        told = "a prompt alone has no speed of its own; choose aggregated, disaggregated or decode"
        raise FieldError(("choose.mode", told))
    asked = ask(scenario.model_copy(update={"objective": "cost"}))
    questions = questions_of(asked)
    cheapest = ranked(questions)
    if not cheapest:
        return Frontier(_nothing(scenario, asked, questions), asked.warnings)
    last = cheapest[0].candidate
    first = min(each.fastest() for each in questions)
    paces = np.geomspace(first, _decoding_time(last), points)[:-1] * EDGE
    found = zip(*(each.paced(paces) for each in questions), strict=True)
    best = [best_of([point for point in some if point is not None]) for some in found]
    kept = _undominated([*(some[0].candidate for some in best if some), last])
    for candidate, _ in kept:
        candidate.recheck()
    return Frontier(_document(scenario, asked, kept), asked.warnings)


def modes(plans: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Places of the fast, the normal and the slow mode among plans, fastest first.

    The slow mode is the cheapest. At the normal one a percent of speed costs a percent of price: it
    has the least product of price and time. The fast one is the fastest within the lecture's
    multiple of the normal price.
    """
    price = np.array([plan["usd_per_mtok"] for plan in plans])
    time = np.array([plan["tpot"] for plan in plans])
    normal = int(np.argmin(price * time))
    affordable = np.flatnonzero(price <= FAST_PRICE * price[normal])
    return {"fast": int(affordable[0]), "normal": normal, "slow": len(plans) - 1}


Kept = Sequence[tuple[Candidate | PairCandidate, dict[str, Any]]]


def _decoding_time(candidate: Candidate | PairCandidate) -> float:
    """Time per output token of a plan [s]."""
    one = candidate.decoders if isinstance(candidate, PairCandidate) else candidate
    return one.chosen_by["tpot"]


def _undominated(candidates: Sequence[Candidate | PairCandidate]) -> Kept:
    """Plans by speed, without those that another matches in speed at no higher price."""
    kept: list[tuple[Candidate | PairCandidate, dict[str, Any]]] = []
    plans = [(candidate, candidate.plan()) for candidate in candidates]
    for candidate, plan in sorted(plans, key=lambda one: (one[1]["tpot"], one[1]["usd_per_mtok"])):
        if not kept or plan["usd_per_mtok"] < kept[-1][1]["usd_per_mtok"] / EDGE:
            kept.append((candidate, plan))
    return kept


def _document(scenario: Scenario, asked: Asked, kept: Kept) -> dict[str, Any]:
    plans = [plan for _, plan in kept]
    marks = modes(plans)
    return {
        **head(scenario, "optimal"),
        "points": [
            {
                "plan": plan,
                "band": band(candidate, plan),
                "bound": candidate.floor(),
                "estimate": candidate.expected(),
            }
            for candidate, plan in kept
        ],
        "marks": marks,
        "compared": {
            name: _compared(plans[marks[name]], plans[marks["normal"]]) for name in ("fast", "slow")
        },
        "ends": {"fastest": fastest_end(kept[0][0]), "cheapest": cheapest_end(kept[-1][0])},
        "current": current(scenario, asked.tasks),
        "infeasible": None,
        "provenance": provenance(scenario, asked, kept[-1][0].task.profile),
    }


def _compared(plan: Mapping[str, Any], normal: Mapping[str, Any]) -> dict[str, float]:
    """Speed and price of a mode as multiples of the normal one's."""
    return {
        "speed": normal["tpot"] / plan["tpot"],
        "price": plan["usd_per_mtok"] / normal["usd_per_mtok"],
    }


def _nothing(scenario: Scenario, asked: Asked, questions: Sequence[Question]) -> dict[str, Any]:
    return {
        **head(scenario, "infeasible"),
        "points": [],
        "marks": {},
        "compared": None,
        "ends": None,
        "current": current(scenario, asked.tasks),
        "infeasible": short_by(questions),
        "provenance": provenance(scenario, asked, questions[0].task.profile),
    }
