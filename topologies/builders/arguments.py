"""Checks of the arguments of builders: every fault of a call in one error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real

from topologies.fabric.limits import TopologyError, count_fault, latency_fault, meant, rate_fault


def check_arguments(
    builder: str,
    *,
    counts: Mapping[str, object] | None = None,
    rates: Mapping[str, object] | None = None,
    latencies: Mapping[str, object] | None = None,
    flags: Mapping[str, object] | None = None,
    others: Iterable[str | None] = (),
) -> None:
    """Raise unless every argument is sound.

    Parameters
    ----------
    counts, rates, latencies, flags
        Whole numbers of at least 1, bandwidths [byte/s one way], latencies [s] and truth values,
        by the names under which the caller knows them.
    others
        Faults that the builder found itself; None where there is none.
    """
    faults = [
        *(f"{name} {fault}" for name, v in (counts or {}).items() if (fault := count_fault(v))),
        *(
            f"{name}: bandwidth {fault}"
            for name, v in (rates or {}).items()
            if (fault := rate_fault(v))
        ),
        *(
            f"{name} {fault}"
            for name, v in (latencies or {}).items()
            if (fault := latency_fault(v))
        ),
        *(f"{name} {fault}" for name, v in (flags or {}).items() if (fault := flag_fault(v))),
        *(fault for fault in others if fault is not None),
    ]
    if faults:
        raise TopologyError(builder, faults)


def flag_fault(value: object) -> str | None:
    """Why `value` is neither true nor false."""
    return None if isinstance(value, bool) else f"is {value!r}; True or False was expected"


def choice_fault(name: str, value: object, choices: Sequence[str]) -> str | None:
    """Why `value` is none of the words `known`."""
    return None if value in choices else f"{name} is {value!r}; {meant(value, choices)}"


def ratio_fault(name: str, value: object) -> str | None:
    """Why `value` is no oversubscription: o of o:1, at least 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 1 <= float(value) < 1e6:
        return f"{name} is {value!r}; a number of at least 1 was expected, such as 4 for 4:1"
    return None
