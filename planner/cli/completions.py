"""Values that a shell completes: names of catalogues, engines, kinds, and `--set PATH=VALUE`."""

from collections.abc import Callable, Iterable

import typer

Names = Callable[[], Iterable[str]]


def _models() -> Iterable[str]:
    from planner.catalogue.models import names

    return names()


def _systems() -> Iterable[str]:
    from planner.catalogue.systems import system_names

    return system_names()


def _laws() -> Iterable[str]:
    from planner.catalogue.scaling_laws import law_names

    return law_names()


def _profiles() -> Iterable[str]:
    from planner.catalogue.profile import profile_names

    return ("auto", *profile_names())


def _kinds() -> Iterable[str]:
    from planner.scenario.kinds import ROOMS

    return ROOMS


def _engines() -> Iterable[str]:
    from planner.text.tables import table

    return (*table("planner.problems.serving.step", "engine_rules.toml"), "kubernetes")


def _catalogues() -> Iterable[str]:
    from planner.report.text.catalog import catalog

    listed = catalog()["kinds"]
    return listed if isinstance(listed, dict) else ()


SET: dict[str, Names] = {
    "model": _models,
    "system": _systems,
    "engine": _engines,
    "law": _laws,
    "profile": _profiles,
    "problem": _kinds,
}


def _beginning(names: Names) -> Callable[[str], list[str]]:
    """The names that begin as what was typed."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _entries(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the catalogue that the words before name."""
    from planner.report.text.catalog import catalog

    kinds = catalog()["kinds"]
    listed = kinds.get(ctx.params.get("kind"), ()) if isinstance(kinds, dict) else ()
    return [name for name in listed if name.startswith(incomplete)]


def _changes(incomplete: str) -> list[str]:
    """`PATH=VALUE` for the paths whose values have names; before the sign the paths."""
    path, sign, value = incomplete.partition("=")
    if not sign:
        return [f"{name}=" for name in SET if name.startswith(path)]
    names = SET.get(path, tuple)
    return [f"{path}={name}" for name in names() if name.startswith(value)]


COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "models": _beginning(_models),
    "kinds": _beginning(_kinds),
    "engines": _beginning(_engines),
    "catalogues": _beginning(_catalogues),
    "entries": _entries,
    "changes": _changes,
}
