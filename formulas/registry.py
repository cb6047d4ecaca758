"""Every equation and derivation of the package by name, collected from the modules that hold them.

A module is listed here once, after those whose equations it uses; what it binds under a public name
and no module before it does is its own.
"""

import tomllib
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation, slug
from formulas.nomenclature import lecture  # noqa: F401  so that `formulas.SYMBOLS` holds its symbols
from formulas.nomenclature.symbols import (
    SYMBOLS,  # noqa: F401  offered as `formulas.SYMBOLS`
    SymbolError,
    did_you_mean,
)

_IN_ORDER = (
    ("roofline", "roofline batching experts kvcache"),
    ("economics", "prices"),
    ("network", "collectives collective_algorithms"),
    (
        "serving",
        "request_lengths context_parallel speculation decode prefill_network prefill passes bounds "
        "throughput queues",
    ),
    ("serving", "closed_loop older_kernels power outputs pools"),
    ("memory", "cache_room"),
    ("scaling", "sparsity"),
    ("economics", "schedule"),
    ("network", "expert_traffic expert_copies pipeline"),
    ("economics", "speed_modes"),
    ("roofline", "monotonicity"),
    ("training", "bubbles arithmetic"),
    ("scaling", "power_laws kaplan_law routed_laws repetition allocation token_budgets"),
    ("scaling", "overtraining budget_outputs"),
    ("economics", "tiers"),
    ("roofline", "sparse_attention"),
    ("training", "reversible"),
    ("economics", "recompute_or_keep price_sheet make_or_buy"),
    ("training", "step_time step_memory goodput training_run reinforcement"),
)
MODULES = tuple(f"{room}.{name}" for room, names in _IN_ORDER for name in names.split())


@cache
def _by_module() -> dict[str, tuple[str, Equation | Derivation]]:
    """{name in Python: (module that makes it, equation or derivation)}, in module order."""
    entries: dict[str, tuple[str, Equation | Derivation]] = {}
    for module in MODULES:
        for name, value in vars(import_module(f"formulas.{module}")).items():
            if name.startswith("_") or not isinstance(value, Equation | Derivation):
                continue
            if entries.setdefault(name, (module, value))[1] is not value:
                raise ValueError(f"{name} is defined in {entries[name][0]} and in {module}")
    return entries


def by_name() -> dict[str, Equation | Derivation]:
    """{name in Python: equation or derivation}, in the order of the modules."""
    return {name: value for name, (_, value) in _by_module().items()}


def entry_name(entry: Equation | Derivation) -> str:
    """The name in Python of an entry of the catalogue."""
    return next(name for name, value in by_name().items() if value is entry)


def all_equations() -> tuple[Equation, ...]:
    """Every equation."""
    return tuple(value for value in by_name().values() if isinstance(value, Equation))


def all_derivations() -> tuple[Derivation, ...]:
    """Every derivation."""
    return tuple(value for value in by_name().values() if isinstance(value, Derivation))


@cache
def _tags() -> dict[str, list[str]]:
    listed = defaultdict[str, list[str]](list)
    rows = tomllib.loads(Path(__file__).with_name("tags.toml").read_text("utf-8"))
    for tag, names in rows.items():
        for name in names.split():
            listed[name].append(tag)
    return listed


def tags(name: str) -> tuple[str, ...]:
    """Labels of a catalogue entry: claims of the lecture (C1 ... C50) and other subjects."""
    return tuple(_tags().get(name, ()))


def subject(name: str) -> str:
    """Name of the module that defines a catalogue entry, such as `roofline`."""
    return _by_module()[name][0].rpartition(".")[2]


def dotted_module(subject: str) -> str:
    """The dotted name of the module of a subject, such as `formulas.roofline.roofline`."""
    return "formulas." + next(m for m in MODULES if m.rpartition(".")[2] == subject)


def description(subject: str) -> str:
    """The first paragraph of the docstring of a subject's module."""
    words = import_module(dotted_module(subject)).__doc__ or ""
    return " ".join(words.split("\n\n")[0].split())


def find(name: str) -> Equation | Derivation:
    """Look an equation or derivation up by its name in Python, its title, or the symbol it gives.

    Raises SymbolError if no entry matches (the nearest name is offered), or a symbol has several
    equations.
    """
    entries = by_name()
    wanted = slug(name)
    for python, value in entries.items():
        if wanted in (slug(python), slug(value.name)):
            return value
    giving = {p: e for p, e in entries.items() if e.lhs.is_Symbol and e.lhs.name == name}
    if len(giving) > 1:
        raise SymbolError(f"{name} is given by {', '.join(giving)}; name one of them")
    if giving:
        return next(iter(giving.values()))
    titles = [value.name for value in entries.values()]
    hint = did_you_mean(name.replace("-", "_"), entries) or did_you_mean(name, titles)
    raise SymbolError(f"there is no equation {name!r}{hint}")
