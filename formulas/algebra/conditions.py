"""Conditions under which an equation holds: relations that can be evaluated, beside plain words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp

from formulas.numerics.expressions import text


class Condition(str):
    """A relation that reads as the sentence of an assumption: `L_ctx < L_star*m_pos: why`."""

    __slots__ = ("relation", "why")
    relation: sp.Basic
    why: str

    def __new__(cls, relation: sp.Basic, why: str = "") -> Condition:
        """The condition; raises TypeError if it is not a relation."""
        if not isinstance(relation, sp.core.relational.Relational | sp.logic.boolalg.Boolean):
            raise TypeError(f"a condition is a relation, not {relation!r}")
        condition = super().__new__(cls, text(relation) + (f": {why}" if why else ""))
        condition.relation, condition.why = relation, why
        return condition

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.relation, self.why


def when(*relations: sp.Basic, why: str = "") -> Condition:
    """The condition that all of some relations hold."""
    return Condition(relations[0] if len(relations) == 1 else sp.And(*relations), why)


def sentences(name: str, assumes: Iterable[str]) -> tuple[str, ...]:
    """Assumptions, each once; raises TypeError if one is not a sentence or a condition."""
    listed = tuple(assumes)
    odd = [assumption for assumption in listed if not isinstance(assumption, str)]
    if odd:
        raise TypeError(f"{name}: conditions are sentences, or made with `when`, not {odd[0]!r}")
    return tuple(dict.fromkeys(listed))
