"""The lecture's claims under physical assumptions: real chips and models, the same equations."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from planner.claims.figure import PhysicalFigure

__all__ = ["MODULES", "PhysicalFigure", "physical", "physical_ids"]

MODULES = ("batches", "racks", "training_and_caches")  # each holds FIGURES, by claim


def physical(claim: str) -> tuple[PhysicalFigure, ...]:
    """The physical numbers of a claim; empty where the catalogues have nothing to add."""
    figures = _all().get(claim)
    return figures() if figures else ()


def physical_ids() -> tuple[str, ...]:
    """The claims that have physical numbers."""
    return tuple(_all())


def _all() -> dict[str, Callable[[], tuple[PhysicalFigure, ...]]]:
    modules = (import_module(f"planner.claims.{module}") for module in MODULES)
    return {claim: figures for module in modules for claim, figures in module.FIGURES.items()}
