"""Feistel rounds and reversible layers: inversion, memory and arithmetic (result 10)."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulas.nomenclature.symbols import SYMBOLS
from formulas.training.arithmetic import pretraining_arithmetic
from formulas.training.reversible import (
    activations_checkpointed,
    activations_kept,
    activations_reversible,
    checkpoint_interval,
    checkpointed_arithmetic,
    checkpointed_least_memory,
    checkpointed_over_reversible,
    feistel_inverse,
    feistel_round,
    reversible_arithmetic,
    reversible_inverse_first,
    reversible_inverse_second,
    reversible_layer_first,
    reversible_layer_second,
    reversible_overhead,
)

WORDS = st.integers(-(2**63), 2**63 - 1)


def of(item, **case):
    """The value of an equation at a case that may hold more than it needs."""
    run = item.numpy()
    return run(**{name: case[name] for name in run.kernel.names})


def exactly(item, **case):
    """The value in whole numbers, of any sign."""
    return int(item.rhs.subs({SYMBOLS[name]: value for name, value in case.items()}))


def noise(key, x):
    """A deterministic function that nothing inverts."""
    digest = hashlib.blake2b(f"{key}:{x}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@given(x=WORDS, y=WORDS, key=st.integers(0, 1000))
def test_a_feistel_round_inverts_for_any_function(x, y, key):
    """C49: in whole numbers, to the last digit, though f cannot be inverted."""
    z = exactly(feistel_round, x_right=y, f_left=noise(key, x))
    assert exactly(feistel_inverse, y_right=z, f_left=noise(key, x)) == y


@given(x=WORDS, y=WORDS, rounds=st.integers(1, 12), swapped=st.booleans())
def test_many_rounds_invert_in_both_forms(x, y, rounds, swapped):
    """C49: (x, y) -> (y', x) with a swap, or the halves taking turns without one."""
    left, right = x, y
    for key in range(rounds):
        if swapped or key % 2 == 0:
            right += noise(key, left)
        else:
            left += noise(key, right)
        if swapped:
            left, right = right, left
    for key in reversed(range(rounds)):
        if swapped:
            left, right = right, left
        if swapped or key % 2 == 0:
            right -= noise(key, left)
        else:
            left -= noise(key, right)
    assert (left, right) == (x, y)


def test_without_swap_and_without_turns_one_half_never_changes():
    """C49, counter-example: the unswapped form must alternate, or it mixes nothing into x."""
    left, right = 5, 7
    for key in range(20):
        right += noise(key, left)
    assert left == 5


@given(first=WORDS, second=WORDS)
def test_a_reversible_layer_inverts(first, second):
    """C49: y1 = x1 + F(x2), y2 = x2 + G(y1), undone in the opposite order."""
    y1 = exactly(reversible_layer_first, x_1=first, f_x2=noise("F", second))
    y2 = exactly(reversible_layer_second, x_2=second, g_y1=noise("G", y1))
    x2 = exactly(reversible_inverse_second, y_2=y2, g_y1=noise("G", y1))
    x1 = exactly(reversible_inverse_first, y_1=y1, f_x2=noise("F", x2))
    assert (x1, x2) == (first, second)


@given(
    x=st.lists(st.integers(-(2**20), 2**20), min_size=4, max_size=4),
    y=st.lists(st.integers(-(2**20), 2**20), min_size=4, max_size=4),
)
def test_fixed_point_layers_invert(x, y):
    """Result 10: sums of 64-bit words wrap round and still invert, f in floating point."""
    one, two = np.array(x, dtype=np.int64), np.array(y, dtype=np.int64)

    def f(v, k):
        return np.round(1e9 * np.tanh(v * 1e-6 + k)).astype(np.int64)

    a, b = one.copy(), two.copy()
    for k in range(30):
        a = a + f(b, k)
        b = b + f(a, -k)
    for k in reversed(range(30)):
        b = b - f(a, -k)
        a = a - f(b, k)
    assert (a == one).all()
    assert (b == two).all()


def test_floating_point_inverts_only_approximately():
    """Result 10, counter-example: what is small beside f(x) is lost for good."""
    y, f = 1e-20, 1.0
    assert (y + f) - f != y
    assert Fraction(y) + Fraction(f) - Fraction(f) == Fraction(y)


def test_floating_point_error_grows_with_the_layers():
    """Result 10: near, not equal, and further off the deeper the network."""
    start = np.linspace(-1, 1, 64), np.linspace(1, 2, 64)
    errors = []
    for depth in (4, 64):
        a, b = start
        for k in range(depth):
            a = a + np.sin(3 * b + k)
            b = b + np.sin(3 * a - k)
        for k in reversed(range(depth)):
            b = b - np.sin(3 * a - k)
            a = a - np.sin(3 * b + k)
        errors.append(float(np.abs(a - start[0]).max()))
    assert 0 < errors[0] < 1e-9
    assert errors[1] > errors[0]


def test_memory_of_activations():
    """C50: one layer, against all of them, against twice the root of them."""
    case = {"n_blocks": 64, "A_layer": 3.0}
    assert of(activations_kept, **case) == 192
    assert of(activations_reversible, **case) == 3
    assert of(checkpointed_least_memory, **case) == 48
    assert of(checkpointed_over_reversible, **case) == 16


@pytest.mark.parametrize("layers", [16, 64, 400])
def test_no_interval_of_checkpoints_needs_less(layers):
    """Result 10: the root of the layers, by trying every interval."""
    every = np.arange(1, layers + 1)
    memory = of(activations_checkpointed, n_blocks=layers, A_layer=1.0, n_seg=every)
    assert every[np.argmin(memory)] == of(checkpoint_interval, n_blocks=layers)
    assert memory.min() == pytest.approx(of(checkpointed_least_memory, n_blocks=layers, A_layer=1))


def test_arithmetic():
    """C50: 8ND for a reversible network, a third more than 6ND; 6ND + 2ND(1 - 1/sqrt(n))."""
    case = {"c_fwd": 2, "N_active": 1, "D_pt": 1, "n_blocks": 64}
    assert of(pretraining_arithmetic, **case) == 6
    assert of(reversible_arithmetic, **case) == 8
    assert of(reversible_overhead, **case) == pytest.approx(4 / 3)
    assert of(checkpointed_arithmetic, **case) == 6 + 2 * (1 - 1 / 8)


@pytest.mark.parametrize("layers", [1, 9, 64, 10_000])
def test_checkpoints_are_cheaper_to_compute_and_dearer_to_hold(layers):
    """Result 10: always less arithmetic than reversible layers, never less memory."""
    case = {"c_fwd": 2, "N_active": 1, "D_pt": 1, "n_blocks": layers, "A_layer": 1}
    assert of(checkpointed_arithmetic, **case) < of(reversible_arithmetic, **case)
    assert of(checkpointed_least_memory, **case) > of(activations_reversible, **case)


def count(layers, segment):
    """(forward passes of a layer, most layers held at once) of training with checkpoints."""
    passes, most = layers, 0
    edges = range(0, layers, segment)
    for number, edge in enumerate(reversed(edges)):
        inside = min(segment, layers - edge)
        if number > 0:  # the last segment's activations are still there
            passes += inside
        most = max(most, len(edges) - number + inside)
    return passes, most


@pytest.mark.parametrize("layers", [16, 64, 144])
def test_counting_passes_and_layers(layers):
    """Result 10: the closed forms against counting, layer by layer."""
    root = round(layers**0.5)
    passes, most = count(layers, root)
    case = {"c_fwd": 2, "N_active": 1, "D_pt": 1, "n_blocks": layers, "A_layer": 1}
    assert 2 * passes / layers + 4 == pytest.approx(of(checkpointed_arithmetic, **case))
    assert most == of(checkpointed_least_memory, **case)
