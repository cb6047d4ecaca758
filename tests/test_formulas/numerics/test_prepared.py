"""A kernel with most arguments put in gives what the kernel gives, to the bit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from formulas.nomenclature.symbols import SymbolError
from formulas.numerics.block_executor import BLOCK
from formulas.numerics.evaluate import kernel
from formulas.numerics.kernel import Kernel
from formulas.numerics.tape import Tape
from formulas.serving.decode import DECODE

OUTPUTS = ("T_dec", "T_w_dec", "T_kv_dec")


def decode() -> tuple[Kernel, dict[str, float | np.ndarray]]:
    """The decode step, and random values for forty layouts."""
    made = kernel(DECODE, OUTPUTS)
    random = np.random.default_rng(3)
    values: dict[str, float | np.ndarray] = {
        name: random.uniform(1, 9, 40) if i % 2 else float(random.uniform(1, 9))
        for i, name in enumerate(made.names)
    }
    experts = {"n_experts": 256.0, "k_experts": 8.0, "e_draft": 128.0, "k_draft": 4.0}
    return made, values | experts


def test_a_prepared_kernel_gives_the_same_to_the_bit() -> None:
    """All rows, some of them (repeated ones too), one alone; all outputs, or one."""
    made, values = decode()
    ready = made.prepared(["B"], **{k: v for k, v in values.items() if k != "B"})
    batch = np.random.default_rng(4).uniform(1, 99, 40)
    whole = made(**{**values, "B": batch})
    for rows in (np.arange(40), np.array([3, 3, 9]), np.array([7]), np.arange(40) % 3 == 0):
        some = ready.take(rows)(B=batch[rows])
        assert all((some[name] == whole[name][rows]).all() for name in OUTPUTS)
        only = ready.take(rows)(["T_dec"], B=batch[rows])
        assert list(only) == ["T_dec"]
        assert (only["T_dec"] == whole["T_dec"][rows]).all()


def test_a_prepared_kernel_refuses_what_the_kernel_refuses() -> None:
    """A negative value, one that is no number, a missing argument, arrays of two lengths."""
    made, values = decode()
    fixed = {k: v for k, v in values.items() if k != "B"}
    ready = made.prepared(["B"], **fixed)
    for wrong, words in ((-1.0, "negative"), (np.nan, "NaN")):
        with pytest.raises(SymbolError, match=words):
            ready(B=np.full(40, wrong))
    with pytest.raises(SymbolError, match="missing"):
        made.prepared(["B"], **dict(list(fixed.items())[1:]))
    with pytest.raises(ValueError, match="one shape"):
        made.prepared(["B"], **{**fixed, made.names[0]: np.ones(3)})


def test_a_tape_survives_a_file() -> None:
    """Written as JSON and read back it computes the same numbers."""
    made, values = decode()
    tape = Tape.of_plain(json.loads(json.dumps(made.tape.plain())))
    again = Kernel(tape, made.names)(**values)
    assert all((again[name] == made(**values)[name]).all() for name in OUTPUTS)


def test_more_rows_than_a_block_give_the_same_to_the_bit() -> None:
    """Two blocks and a part of a third, one batch for all included."""
    made, values = decode()
    rows = np.random.default_rng(5).integers(0, 40, 2 * BLOCK + 7)
    ready = made.prepared(["B"], **{k: v for k, v in values.items() if k != "B"}).take(rows)
    batch = np.random.default_rng(6).uniform(1, 99, rows.size)
    taken = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in values.items()}
    whole, some = made(**{**taken, "B": batch}), ready(B=batch)
    assert all((some[name] == whole[name]).all() for name in OUTPUTS)
