"""Every equation and derivation of the package by name, collected from the modules that hold them.

A module is listed here once; its `__all__` says which of its equations are public.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from formulas.derivation import Derivation
from formulas.equation import Equation, slug
from formulas.symbols import SymbolError, did_you_mean

__all__ = ["MODULES", "all_derivations", "all_equations", "by_name", "find", "subject"]

MODULES = (
    "roofline",
    "batching",
    "experts",
    "kvcache",
    "memory",
    "prices",
    "collectives",
    "collective_algorithms",
    "microbatches",
    "context",
    "decode",
    "decode_bound",
    "prefill_network",
    "prefill",
    "prefill_bound",
    "serving",
    "queues",
    "pools",
    "sparsity",
    "schedule",
    "expert_traffic",
    "expert_copies",
    "crossing",
    "pipeline",
    "menu",
    "monotone",
    "bubbles",
    "training",
    "scaling",
    "scaling_kaplan",
    "scaling_moe",
    "scaling_joint",
    "repetition",
    "allocation",
    "budgets",
    "overtraining",
    "tiers",
    "sparse_attention",
    "reversible",
    "exchange",
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
    return _by_module()[name][0]


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
