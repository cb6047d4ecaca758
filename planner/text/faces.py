"""The names of a package that are loaded where they live, when they are first used."""

from collections.abc import Callable, Mapping
from importlib import import_module


def loaded_from(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package whose public names live in modules: {name: module in it}."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load
