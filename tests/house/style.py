"""Style that a machine can hold: docstrings, what is never called, places that are never named."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from tests.house.sources import callee, files, nodes, parsed, place, size, text
from tests.paths import ROOT

SHORT_ENOUGH = 8  # lines of a public function that its name explains
RUNS_TEXT = {"eval", "exec", "sympify", "parse_expr", "__import__"}
# Assembled, so that this file does not hold what it looks for.
PRIVATE = re.compile("|".join(f"/{folder}/" for folder in ("work", "opt", "root", "home")))


def without_docstring() -> list[str]:
    """Modules, public classes and longer public functions that do not say what they are."""
    listed = []
    for file in files():
        tree = parsed(file)
        if not ast.get_docstring(tree):
            listed.append(place(file))
        documented = {
            node.name
            for node in nodes(file)
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)
        }
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for holder in [tree, *(node for node in classes if not node.name.startswith("_"))]:
            listed += [f"{place(file)}: {name}" for name in _silent(holder.body, documented)]
    return listed


def _silent(body: list[ast.stmt], documented: set[str]) -> list[str]:
    names = []
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        # A method that implements a documented one says the same.
        if isinstance(node, ast.ClassDef) or size(node) > SHORT_ENOUGH:
            names += [] if ast.get_docstring(node) or node.name in documented else [node.name]
    return names


def running_text() -> list[str]:
    """Calls that turn text into code or into an expression."""
    listed = []
    for file in files():
        for node in nodes(file):
            if isinstance(node, ast.Call) and callee(node) in {*RUNS_TEXT, "compile"}:
                called = ast.unparse(node.func)
                strict = called.endswith("sympify") and "strict=True" in ast.unparse(node)
                if called == "compile" or (callee(node) in RUNS_TEXT and not strict):
                    listed.append(f"{place(file)}:{node.lineno} calls {called}")
    return listed


def private_places() -> list[str]:
    """Files under version control, or about to be, that name a place on somebody's machine."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = run.stdout.split("\0") if run.returncode == 0 else [place(file) for file in files()]
    listed = []
    for name in filter(None, names):
        file = ROOT / name
        match = PRIVATE.search(_decoded(file)) if file.is_file() else None
        if match:
            listed.append(f"{name} names {match.group()}")
    return listed


def _decoded(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "replace")


def public_lists() -> list[str]:
    """Modules with an `__all__` that are no package's face."""
    return [
        place(file) for file in files() if file.stem != "__init__" and "__all__ = " in text(file)
    ]
