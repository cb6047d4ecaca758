"""The picture of a lifecycle: that of a budget, with the sizes at which serving was planned."""

from __future__ import annotations

import numpy as np

from planner.problems.lifecycle.plan import LifecyclePlan
from planner.problems.lifecycle.resolve import resolve_life
from planner.text.errors import InputError
from planner.token_costs.picture import CostCurve, LifePicture, shown, unique_of


def picture_of(plan: LifecyclePlan) -> LifePicture:
    """The picture of an answered lifecycle."""
    answer, question = plan.answer, plan.question
    if answer.plan is None:
        raise InputError("there is no plan to draw")
    rows = [(row.n_active, row.pretrain, row.training_usd, row.serving_usd)
            for row in answer.curve or ()]  # fmt: skip
    law, band, rule = resolve_life(question).law, answer.band, answer.heuristic
    return LifePicture(
        plan=answer.plan,
        law=law,
        curve=shown(CostCurve(*np.array(rows).reshape(-1, 4).T)),
        unique=unique_of(law, question.data.unique),
        rewarded=question.rl.reward is not None,
        band=(band.n_active, band.coverage) if band and band.n_active else None,
        rule=(rule.n_active, rule.cost, rule.worse_by) if rule else None,
        evaluated=tuple(
            (row.n_active, row.serving_usd) for row in answer.evaluated or () if row.serving_usd
        ),
    )
