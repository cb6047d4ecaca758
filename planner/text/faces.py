"""The names of a package that are loaded where they live, when they are first used."""

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import getsource


def lazy_module(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package whose public names live in modules: {name: module in it}."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load


def imported_for_types(package: str) -> dict[str, str]:
    """Map {name: module in it} for the imports of a package under `if TYPE_CHECKING`.

    So a name is listed once, for type checkers and for `lazy_module` alike.
    """
    blocks = (x for x in ast.parse(getsource(sys.modules[package])).body if isinstance(x, ast.If))
    imports = [x for block in blocks for x in block.body if isinstance(x, ast.ImportFrom)]
    within = len(package) + 1
    return {name.name: str(x.module)[within:] for x in imports for name in x.names}
