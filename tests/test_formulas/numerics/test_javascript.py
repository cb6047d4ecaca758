"""A tape as JavaScript gives what walking the expressions gives, and nothing it cannot compute."""

from __future__ import annotations

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import sympy as sp

from formulas.numerics.evaluate import kernel, scalar
from formulas.numerics.javascript import BATCH, LAYOUT, to_javascript

x, y, z = sp.symbols("x y z", positive=True)
NAMES = {
    "folded": x * y / z - x / 3 + z,
    "roots": sp.sqrt(x * z) + y**sp.Rational(1, 3),
    "coverage": 5 * (1 - (1 - x / 100) ** z),
    "highest": sp.Max(x, y * z, evaluate=False) + sp.ceiling(z / 7) - sp.floor(y),
    "logarithm": sp.log(1 + x) * sp.exp(-y),
    "chosen": sp.Piecewise((x, z > 3), (y, True)),
}  # fmt: skip


class _Given:
    """A definition, as an equation is one."""

    def __init__(self, name: str, rhs: sp.Expr) -> None:
        self.symbol, self.rhs = sp.Symbol(name, positive=True), rhs


def test_every_stage_gives_what_the_tree_walk_gives() -> None:
    """Sums, products, roots, coverage and choices, of values of all three stages."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    equations = [_Given(name, rhs) for name, rhs in NAMES.items()]
    tape = kernel(equations, list(NAMES)).tape
    script = to_javascript(tape, {"y": LAYOUT, "z": BATCH}, {"batch": list(NAMES)})
    rng = np.random.default_rng(7)
    points = rng.uniform(0.1, 20.0, (200, 3)).tolist()
    code = (
        f"const K = {script.text}, out = [];\nfor (const [x, y, z] of {json.dumps(points)}) {{"
        f"const s = K.scenario([x]), l = new Float64Array({script.width}), r = [];"
        "K.layout(s, [y], 0, l); K.batch(s, l, 0, [z], r); out.push(r); }"
        "process.stdout.write(JSON.stringify(out));"
    )
    run = subprocess.run([node], input=code, capture_output=True, text=True, check=True)
    assert script.names == (("x",), ("y",), ("z",))
    for point, row in zip(points, json.loads(run.stdout), strict=True):
        expected = scalar(equations, list(NAMES), dict(zip("xyz", point, strict=True)))
        assert row == pytest.approx([expected[name] for name in NAMES], rel=1e-12, abs=1e-14)


def test_an_output_that_no_function_asks_for_is_not_written() -> None:
    """A function of some outputs holds the operations of these alone."""
    equations = [_Given("short", x + 1), _Given("long", sp.log(y) * sp.exp(z))]
    tape = kernel(equations, ["short", "long"]).tape
    text = to_javascript(tape, {}, {"batch": ["short"]}).text
    assert "Math.exp" not in text
    assert "NaN" not in text
    assert math.isfinite(len(text))


def test_an_unknown_operation_is_refused() -> None:
    """What JavaScript has no word for is an error, never printed."""
    from formulas.numerics.tape import Tape

    tape = Tape([("argument", "x"), ("sinc", 0)], {"out": 1})
    with pytest.raises(KeyError, match="sinc"):
        to_javascript(tape, {}, {"batch": ["out"]})
