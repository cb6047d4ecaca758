"""Tables shipped with the code: TOML files of a package."""

import tomllib
from importlib.resources import files
from typing import Any


def table(package: str, *names: str) -> dict[str, Any]:
    """The TOML files of a package by their paths in it, joined; later files add entries."""
    joined: dict[str, Any] = {}
    for name in names:
        text = files(package).joinpath(name).read_text(encoding="utf-8")
        joined.update(tomllib.loads(text))
    return joined


def file_names(package: str, folder: str, suffix: str) -> tuple[str, ...]:
    """Files of a package's folder that end so, sorted and without the ending."""
    entries = (entry.name for entry in files(package).joinpath(folder).iterdir())
    return tuple(sorted(name.removesuffix(suffix) for name in entries if name.endswith(suffix)))
