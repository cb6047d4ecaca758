"""Every equation and derivation of the package by name, collected from the modules that hold them.

A module is listed here once; its `__all__` says which of its equations are public.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation, slug
from formulas.nomenclature.symbols import SymbolError, did_you_mean

__all__ = [
    "MODULES",
    "all_derivations",
    "all_equations",
    "by_name",
    "description",
    "find",
    "module_of",
    "subject",
]

MODULES = (
    "roofline.roofline",
    "roofline.batching",
    "roofline.experts",
    "roofline.kvcache",
    "economics.prices",
    "network.collectives",
    "network.collective_algorithms",
    "serving.context_parallel",
    "serving.decode",
    "serving.bounds",
    "serving.prefill_network",
    "serving.prefill",
    "serving.prefill_bound",
    "serving.throughput",
    "serving.queues",
    "serving.pools",
    "scaling.sparsity",
    "economics.schedule",
    "network.expert_traffic",
    "network.expert_copies",
    "network.pipeline",
    "economics.speed_modes",
    "roofline.monotonicity",
    "training.bubbles",
    "training.arithmetic",
    "scaling.power_laws",
    "scaling.kaplan_law",
    "scaling.routed_laws",
    "scaling.repetition",
    "scaling.allocation",
    "scaling.token_budgets",
    "scaling.overtraining",
    "economics.tiers",
    "roofline.sparse_attention",
    "training.reversible",
    "economics.recompute_or_keep",
)


@cache
def _by_module() -> dict[str, tuple[str, Equation | Derivation]]:
    found: dict[str, tuple[str, Equation | Derivation]] = {}
    for module in MODULES:
        loaded = import_module(f"formulas.{module}")
        for name in loaded.__all__:
            value = getattr(loaded, name)
            if not isinstance(value, Equation | Derivation):
                continue
            if name in found and found[name][1] is not value:
                raise ValueError(f"{name} stands in formulas.{found[name][0]} and in {module}")
            found.setdefault(name, (module, value))
    return found


def by_name() -> dict[str, Equation | Derivation]:
    """{name in Python: equation or derivation}, in the order of the modules."""
    return {name: value for name, (_, value) in _by_module().items()}


def all_equations() -> tuple[Equation, ...]:
    """Every equation."""
    return tuple(value for value in by_name().values() if isinstance(value, Equation))


def all_derivations() -> tuple[Derivation, ...]:
    """Every derivation."""
    return tuple(value for value in by_name().values() if isinstance(value, Derivation))


def subject(name: str) -> str:
    """The module in which a name of the catalogue stands, such as `roofline`."""
    return _by_module()[name][0].rpartition(".")[2]


def module_of(subject: str) -> str:
    """The dotted name of the module of a subject, such as `formulas.roofline.roofline`."""
    return "formulas." + next(m for m in MODULES if m.rpartition(".")[2] == subject)


def description(subject: str) -> str:
    """What the module of a subject is about: the first paragraph of its docstring."""
    words = import_module(module_of(subject)).__doc__ or ""
    return " ".join(words.split("\n\n")[0].split())


def find(name: str) -> Equation | Derivation:
    """The equation called so: by its name in Python, its title, or the symbol it gives.

    Raises
    ------
    SymbolError
        If nothing is called so (with the nearest name), or a symbol has several equations.
    """
    known = by_name()
    wanted = slug(name)
    for python, value in known.items():
        if wanted in (slug(python), slug(value.name)):
            return value
    giving = {python: value for python, value in known.items() if _gives(value) == name}
    if len(giving) > 1:
        raise SymbolError(f"{name} is given by {', '.join(giving)}; name one of them")
    if giving:
        return next(iter(giving.values()))
    hint = did_you_mean(name.replace("-", "_"), known)
    raise SymbolError(f"there is no equation {name!r}{hint}")


def _gives(value: Equation | Derivation) -> str:
    return value.lhs.name if value.lhs.is_Symbol else ""
