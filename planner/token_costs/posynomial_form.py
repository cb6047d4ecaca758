"""Budgets as sums of powers: the cost of a model's life, and what its loss is made of.

The choices are the logarithms of active parameters, of tokens of pre-training and, where the law
asks for them, of tokens of reinforcement learning. Cost and loss are sums of monomials in the
choices; many budgets of one shape are held as arrays, one row each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CHOICES = ("n_active", "pretrain", "rl")  # in the order of the columns of the powers


@dataclass(frozen=True)
class LogSum:
    """The logarithm of a sum of monomials at a point, its shares and derivatives.

    `value` has one entry a budget, `shares` one more axis for the terms, `slope` one for the
    choices, `curvature` two.
    """

    value: Array
    shares: Array
    slope: Array
    curvature: Array


@dataclass(frozen=True)
class Budgets:
    """P budgets over J choices; the cost has C terms and the reducible loss K.

    Attributes:
        cost: Logarithms of the coefficients of the cost, one column a phase; (P, C).
        cost_powers: Exponents of the choices in them; (C, J).
        loss: Logarithms of the coefficients of the reducible loss; (P, K).
        loss_powers: Exponents of the choices in them, none positive; (P, K, J).
        limit: Logarithm of what the other sum may be at most; (P,).
        aim: `cost`: least cost, the loss limited. `quality`: least loss, the cost limited.
        choices: Which of `CHOICES` the J columns are.
        curved: The knees of choices that count for less beyond them: repeated tokens, and
            parameters beyond the data; the others count in full.
    """

    cost: Array
    cost_powers: Array
    loss: Array
    loss_powers: Array
    limit: Array
    aim: str
    choices: tuple[str, ...]
    curved: Mapping[str, Saturation] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.limit)

    def rows(self, index: RowIndex) -> Budgets:
        """Some of the budgets, by their numbers, which may repeat, or by a mask."""
        return replace(
            self,
            cost=self.cost[index],
            loss=self.loss[index],
            loss_powers=self.loss_powers[index],
            limit=self.limit[index],
            curved={x: Saturation(c.knee[index], c.reach[index]) for x, c in self.curved.items()},
        )

    def row(self, place: int) -> Budgets:
        """Budget number `place`, as an array of length 1."""
        return self.rows(np.array([place]))

    def fixed(self, choice: str, value: Array) -> Budgets:
        """The budgets with one choice held at a value, given as logarithm; its column is gone."""
        if choice not in self.choices:
            return self
        column = self.choices.index(choice)
        amount = self.curved[choice].at(value)[0] if choice in self.curved else value
        rest = [j for j in range(len(self.choices)) if j != column]
        return replace(
            self,
            cost=self.cost + np.multiply.outer(value, self.cost_powers[:, column]),
            cost_powers=self.cost_powers[:, rest],
            loss=self.loss + amount[:, None] * self.loss_powers[:, :, column],
            loss_powers=self.loss_powers[:, :, rest],
            curved={x: curve for x, curve in self.curved.items() if x != choice},
            choices=tuple(self.choices[j] for j in rest),
        )

    def costs(self, point: Array) -> LogSum:
        """The logarithm of the cost at points (P, J)."""
        powers = np.broadcast_to(self.cost_powers, (len(self), *self.cost_powers.shape))
        return _summed(self.cost + point @ self.cost_powers.T, powers)

    def losses(self, point: Array) -> LogSum:
        """The logarithm of the reducible loss at points (P, J)."""
        if not self.curved:
            terms = self.loss + np.einsum("pkj,pj->pk", self.loss_powers, point)
            return _summed(terms, self.loss_powers)
        value, rate, bend = self._worths(point)
        terms = self.loss + np.einsum("pkj,pj->pk", self.loss_powers, value)
        total = _summed(terms, self.loss_powers * rate[:, None, :])
        curve = np.einsum("pk,pkj->pj", total.shares, self.loss_powers) * bend
        places = np.arange(len(self.choices))
        total.curvature[:, places, places] += curve
        return total

    def tangent(self, point: Array) -> Budgets:
        """Budgets whose terms of the loss are replaced by their tangent monomials at the points.

        The terms are convex in the logarithms, so no point has a larger loss in the tangents than
        in truth, and both agree at the points themselves.
        """
        if not self.curved:
            return self
        value, rate, _ = self._worths(point)
        powers = self.loss_powers * rate[:, None, :]
        shift = np.einsum("pkj,pj->pk", self.loss_powers, value - rate * point)
        return replace(self, loss=self.loss + shift, loss_powers=powers, curved={})

    def _worths(self, point: Array) -> Array:
        full = (point, np.ones_like(point), np.zeros_like(point))
        columns = [
            self.curved[x].at(point[:, j]) if x in self.curved else [each[:, j] for each in full]
            for j, x in enumerate(self.choices)
        ]
        return np.stack([np.stack(each, axis=1) for each in zip(*columns, strict=True)])


def _summed(terms: Array, powers: Array) -> LogSum:
    """Logarithm of the sum of exp(terms), whose logarithms have these slopes."""
    largest = terms.max(axis=1)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    sizes = np.exp(terms - largest[:, None])
    total = sizes.sum(axis=1)
    shares = sizes / np.where(total > 0, total, 1.0)[:, None]
    slope = np.einsum("pk,pkj->pj", shares, powers)
    curvature = np.einsum("pk,pki,pkj->pij", shares, powers, powers)
    curvature -= slope[:, :, None] * slope[:, None, :]
    with np.errstate(divide="ignore"):  # a sum of no terms is zero: its logarithm is -inf
        value = largest + np.log(total)
    return LogSum(value, shares, slope, curvature)


RowIndex = npt.NDArray[np.intp] | npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Saturation:
    """One knee: x up to `knee` counts in full, beyond it at most `reach` knees more.

    `knee` (P,) is a logarithm of tokens or parameters, `reach` (P,) is R_half or R_excess. The
    value is that of `repetition_worth` and `excess_worth` in `formulas`.
    """

    knee: Array
    reach: Array

    def at(self, x: Array) -> tuple[Array, Array, Array]:
        """Worth at x (P,), its slope and its second derivative, all in logarithms."""
        over = np.expm1(np.maximum(x - self.knee, 0.0))
        with np.errstate(over="ignore"):
            left = np.exp(-over / self.reach)
        whole = 1.0 + self.reach * (1.0 - left)
        slope = (1.0 + over) * left / whole
        bend = slope * (1.0 - (1.0 + over) / self.reach) - slope**2
        beyond = x > self.knee
        value = np.where(beyond, self.knee + np.log(whole), x)
        return value, np.where(beyond, slope, 1.0), np.where(beyond, bend, 0.0)

    def inverse(self, worth: Array) -> Array:
        """The x of a worth; infinite at and above the ceiling."""
        over = np.expm1(np.maximum(worth - self.knee, 0.0)) / self.reach
        with np.errstate(divide="ignore", invalid="ignore"):
            x = self.knee + np.log1p(-self.reach * np.log1p(-np.minimum(over, 1.0)))
        return np.where(worth <= self.knee, worth, x)

    @property
    def ceiling(self) -> Array:
        """The worth that nothing reaches."""
        return self.knee + np.log1p(self.reach)
