"""Sizes: files, functions, folders, lines."""

from __future__ import annotations

from collections import Counter

from tests.house.sources import files, functions, place, size, text, tools

FILE, FUNCTION, FOLDER = 400, 60, 15


def lines() -> int:
    """Lines of all files."""
    return sum(len(text(file).splitlines()) for file in files())


def fit_lines() -> int:
    """Lines of what fits the tables that ship."""
    return sum(len(text(file).splitlines()) for file in tools() if "fit" in file.parts)


def module_count() -> int:
    """Files that are not an `__init__`."""
    return sum(file.stem != "__init__" for file in files())


def folders() -> dict[str, int]:
    """{folder: its files besides `__init__`}."""
    return dict(Counter(place(file.parent) for file in files() if file.stem != "__init__"))


def largest_file() -> tuple[int, str]:
    """Lines of the longest file, and its name."""
    return max((len(text(file).splitlines()), place(file)) for file in files())


def largest_function() -> tuple[int, str]:
    """Lines of the longest function, and its name."""
    return max((size(f), f"{place(file)} {f.name}") for file in files() for f in functions(file))


def largest_folder() -> tuple[int, str]:
    """Files of the fullest folder, and its name."""
    return max((count, folder) for folder, count in folders().items())


def too_large() -> list[str]:
    """Files, functions and folders over their limits."""
    every = (*files(), *tools())
    long = [(file, len(text(file).splitlines())) for file in every]
    listed = [f"{place(file)} has {lines} lines" for file, lines in long if lines > FILE]
    for file in every:
        for f in functions(file):
            if size(f) > FUNCTION:
                listed.append(f"{place(file)} {f.name} has {size(f)} lines")
    full = ((folder, count) for folder, count in sorted(folders().items()) if count > FOLDER)
    return listed + [f"{folder} has {count} files" for folder, count in full]
