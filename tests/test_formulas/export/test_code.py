"""Code of equations, run where its language is at hand and held against the compiled kernel."""

import ctypes
import json
import math
import runpy
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export import code
from formulas.nomenclature.lecture import B, F, N_active, T_comp, c_fwd, m_pos
from formulas.nomenclature.symbols import SymbolError
from formulas.numerics.evaluate import LANGUAGES, kernel
from formulas.registry import by_name
from tests.sizes import first

POINTS = 1000
SPANS = ((-3, 3), (0, 2), (-2, 0))  # powers of ten; shares have values in the last alone
# Of a difference, whose digits cancel by the order in which a language adds.
CLOSE = {"rel_tol": 1e-8, "abs_tol": 1e-12}


def symbol_of(entry: object) -> bool:
    """True for an entry that a function can give."""
    return isinstance(entry, Equation) or (entry.lhs.is_Symbol and not entry.numeric)


ENTRIES = {name: entry for name, entry in by_name().items() if symbol_of(entry)}


@cache
def points(name: str) -> tuple[list[list[float]], np.ndarray]:
    """Points of an entry and the kernel's values there; none where it has no value at any draw."""
    entry = ENTRIES[name]
    compiled = kernel(entry.where, {"value": entry.rhs})
    names = sorted(compiled.names)
    random = np.random.default_rng(len(name))
    for low, high in SPANS:
        drawn = {x: 10 ** random.uniform(low, high, POINTS) for x in names}
        try:
            values = np.broadcast_to(compiled(**drawn)["value"], POINTS)
        except SymbolError:
            continue
        return np.array([drawn[x] for x in names]).T.reshape(POINTS, -1).tolist(), values
    return [], np.array([])


def agree(name: str, answers: list[float | None]) -> int:
    """Number of points compared; a float beyond its range is left out, as the kernel's infinity."""
    pairs = [
        (ours, float(value))
        for ours, value in zip(answers, points(name)[1], strict=True)
        if ours is not None and math.isfinite(ours) and math.isfinite(value)
    ]
    for ours, value in pairs:
        assert math.isclose(ours, value, **CLOSE), (name, ours, value)
    return len(pairs)


def attempt(function: object, point: list[float]) -> float | None:
    """What Python gives; it raises where others go on with an infinity."""
    try:
        return function(*point)
    except (ZeroDivisionError, OverflowError):
        return None


def python_answers(names: list[str], folder) -> dict[str, list[float | None]]:
    (folder / "code.py").write_text(code([ENTRIES[name] for name in names], "python"), "utf-8")
    room = runpy.run_path(str(folder / "code.py"))
    return {name: [attempt(room[name], point) for point in points(name)[0]] for name in names}


def c_answers(names: list[str], folder) -> dict[str, list[float]]:
    (folder / "code.c").write_text(code([ENTRIES[name] for name in names], "c"), "utf-8")
    flags = ["-std=c99", "-Wall", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", "code.so", "code.c", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "code.so"))
    answers = {}
    for name in names:
        function = library[name]
        function.restype = ctypes.c_double
        answers[name] = [function(*map(ctypes.c_double, point)) for point in points(name)[0]]
    return answers


def js_answers(names: list[str], folder) -> dict[str, list[float | None]]:
    (folder / "points.json").write_text(json.dumps({name: points(name)[0] for name in names}))
    listed = code([ENTRIES[name] for name in names], "js") + (
        "const all = JSON.parse(require('fs').readFileSync('points.json'));\n"
        f"const functions = {{{', '.join(names)}}};\n"
        "for (const name in all) all[name] = all[name].map(point => functions[name](...point));\n"
        "console.log(JSON.stringify(all));\n"
    )
    (folder / "code.js").write_text(listed, "utf-8")
    done = subprocess.run(
        ["node", "code.js"], cwd=folder, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("every", first(1, (10, 1)))
@pytest.mark.parametrize("language", ["python", "c", "js"])
def test_code_gives_what_the_kernel_gives(language, every, tmp_path):
    """At 1,000 points of every entry, of a tenth of them in the fast run."""
    needed = {"c": "gcc", "js": "node"}.get(language)
    if needed and not shutil.which(needed):
        pytest.skip(f"no {needed}: the code in {language} was not run")
    names = [name for name in sorted(ENTRIES)[::every] if points(name)[0]]
    writers = {"python": python_answers, "c": c_answers, "js": js_answers}
    answers = writers[language](names, tmp_path)
    compared = {name: agree(name, answers[name]) for name in names}
    assert sum(compared.values()) > 0.99 * POINTS * len(names)


def test_julia_code_holds_every_argument_and_no_call_of_another_language():
    """Julia is nowhere at hand, so its text is read alone: names, one `end` for each function."""
    text = code(ENTRIES.values(), "julia")
    assert text.count("\nend") == text.count("\nfunction ") == len(ENTRIES)
    assert not any(word in text for word in ("Math.", "math.", "fmax", "Max(", "Not supported"))
    if shutil.which("julia"):
        subprocess.run(["julia", "-e", text], check=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_gives_no_symbol_is_refused(language):
    """A line of two sides is no function of symbols."""
    two_sides = Derivation("two sides").begin(T_comp * F, B * N_active * c_fwd * m_pos)
    with pytest.raises(ValueError, match="two sides does not end in one symbol"):
        code([two_sides], language)
