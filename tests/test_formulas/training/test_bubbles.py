"""Pipeline bubbles: the closed forms against a simulation of every pass of every schedule."""

import pytest

from formulas.training.bubbles import (
    bubble_share,
    bubble_share_interleaved,
    bubble_time,
    bubble_time_interleaved,
    bubble_time_zb_h1,
    bubble_time_zb_h2,
    bubble_to_work,
    bubble_to_work_interleaved,
    zero_bubble,
)
from tests.loops import for_all

TIMES = [(2, 2, 2), (3, 4, 2), (2, 3, 1), (4, 4, 3)]
SIZES = [(2, 4), (4, 8), (4, 7), (8, 20)]


def of(item, **case):
    """The value of an equation at a case that may hold more than it needs."""
    run = item.numpy()
    return run(**{name: case[name] for name in run.kernel.names})


def waits(orders, needs, takes):
    """Time of the whole step, and the longest from one stage's first pass to its last.

    Every stage does the passes of its list in order, each as soon as what it needs is done.
    """
    end, clock, at = {}, [0] * len(orders), [0] * len(orders)
    first = [None] * len(orders)
    while any(at[s] < len(order) for s, order in enumerate(orders)):
        before = list(at)
        for s, order in enumerate(orders):
            while at[s] < len(order) and all(each in end for each in needs(order[at[s]], s)):
                op = order[at[s]]
                start = max([clock[s], *(end[each] for each in needs(op, s))])
                first[s] = start if first[s] is None else first[s]
                end[op, s] = clock[s] = start + takes[op[0]]
                at[s] += 1
        assert before != at, "the schedule waits for itself"
    return max(clock), max(c - f for c, f in zip(clock, first, strict=True))


def neighbours(stages):
    """What a pass needs: forward from the stage before, backward from the stage after."""

    def needs(op, s):
        kind, m = op
        if kind == "F":
            return [(op, s - 1)] if s else []
        if kind == "W":
            return [(("B", m), s)]
        return [(op, s + 1)] if s < stages - 1 else [(("F", m), s)]

    return needs


def gpipe(stages, micro, _):
    """All forward passes, then all backward passes, last one first."""
    return [("F", m) for m in range(micro)] + [("BW", m) for m in reversed(range(micro))]


def one_forward_one_backward(stages, micro, s):
    """As many forward passes as fill the pipeline, then one of each in turns."""
    warm = min(stages - s - 1, micro)
    order = [("F", m) for m in range(warm)]
    for m in range(micro):
        order += [("F", m + warm)] if m + warm < micro else []
        order.append(("BW", m))
    return order


def zero_bubble_order(warm, lag):
    """One forward, one backward, with the gradients of the weights `lag` microbatches behind."""

    def order(stages, micro, s):
        ahead = min(warm * (stages - s - 1), micro)
        passes, done = [("F", m) for m in range(ahead)], 0
        for m in range(micro):
            passes += [("F", m + ahead)] if m + ahead < micro else []
            passes.append(("B", m))
            if m >= lag * s:
                passes.append(("W", done))
                done += 1
        return passes + [("W", m) for m in range(done, micro)]

    return order


@for_all("schedule", [gpipe, one_forward_one_backward])
@for_all("times", TIMES)
@for_all(("stages", "micro"), SIZES)
def test_gpipe_and_1f1b_wait_alike(schedule, times, stages, micro):
    """C29: (P-1)(TF+TB+TW), whatever the number of microbatches."""
    fwd, bwd, wgt = times
    orders = [schedule(stages, micro, s) for s in range(stages)]
    whole, _ = waits(orders, neighbours(stages), {"F": fwd, "BW": bwd + wgt})
    case = {"n_stages": stages, "n_micro": micro, "t_fwd": fwd, "t_bwd": bwd, "t_wgt": wgt}
    work = micro * sum(times)
    assert whole - work == of(bubble_time, **case)
    assert (whole - work) / whole == pytest.approx(of(bubble_share, **case))
    assert (whole - work) / work == pytest.approx(of(bubble_to_work, **case))


@for_all("times", TIMES)
@for_all(("stages", "micro"), SIZES)
def test_zero_bubble_schedules(times, stages, micro):
    """C29: (P-1)(TF+TB-TW) with the memory of 1F1B, (P-1)(TF+TB-2TW) with about twice."""
    fwd, bwd, wgt = times
    case = {"n_stages": stages, "t_fwd": fwd, "t_bwd": bwd, "t_wgt": wgt}
    takes = {"F": fwd, "B": bwd, "W": wgt}
    first, second = (
        [zero_bubble_order(n, n)(stages, micro, s) for s in range(stages)] for n in (1, 2)
    )
    whole, _ = waits(first, neighbours(stages), takes)
    _, own = waits(second, neighbours(stages), takes)
    assert whole - micro * sum(times) == of(bubble_time_zb_h1, **case)
    assert own - micro * sum(times) == of(bubble_time_zb_h2, **case)


def test_equal_passes_leave_no_bubble():
    """C29: ZB-H2 with TF = TB = TW, and at no other time of the weight gradients."""
    assert of(bubble_time_zb_h2, n_stages=8, t_fwd=2, t_bwd=2, t_wgt=2) == 0
    assert of(zero_bubble, t_fwd=3, t_bwd=5) == 4
    assert of(bubble_time_zb_h2, n_stages=8, t_fwd=3, t_bwd=5, t_wgt=4) == 0
    assert of(bubble_time_zb_h2, n_stages=8, t_fwd=3, t_bwd=5, t_wgt=3) > 0


def test_zero_bubble_fails_with_too_few_microbatches():
    """Counter-example: fewer microbatches than stages leave more than the closed form."""
    takes = {"F": 2, "B": 2, "W": 2}
    orders = [zero_bubble_order(2, 2)(8, 4, s) for s in range(8)]
    _, own = waits(orders, neighbours(8), takes)
    assert own - 4 * 6 > of(bubble_time_zb_h2, n_stages=8, t_fwd=2, t_bwd=2, t_wgt=2)


def interleaved(stages, micro, chunks, s):
    """The order of Narayanan et al.: groups of `stages` microbatches, chunk by chunk."""
    total = micro * chunks

    def place(k, forward):
        chunk = (k % (stages * chunks)) // stages
        m = k // (stages * chunks) * stages + k % stages
        return ("F", m, chunk) if forward else ("BW", m, chunks - 1 - chunk)

    warm = min(2 * (stages - s - 1) + (chunks - 1) * stages, total)
    order = [place(k, True) for k in range(warm)]
    for k in range(total):
        order += [place(k + warm, True)] if k + warm < total else []
        order.append(place(k, False))
    return order


@pytest.mark.parametrize(("stages", "micro", "chunks"), [(2, 4, 2), (4, 8, 2), (4, 8, 3)])
def test_interleaving_divides_the_wait_by_the_virtual_stages(stages, micro, chunks):
    """C29: (P-1)(TF+TB+TW)/v, and as a share of the step (P-1)/(vM+P-1)."""

    def needs(op, s):
        kind, m, c = op
        if kind == "F":
            return [(op, s - 1)] if s else [(("F", m, c - 1), stages - 1)] if c else []
        if s < stages - 1:
            return [(op, s + 1)]
        return [(("BW", m, c + 1), 0)] if c < chunks - 1 else [(("F", m, c), s)]

    orders = [interleaved(stages, micro, chunks, s) for s in range(stages)]
    whole, _ = waits(orders, needs, {"F": 2, "BW": 4})  # one chunk of one stage
    work = micro * chunks * 6
    case = {"n_stages": stages, "n_micro": micro, "n_virtual": chunks}
    times = {"t_fwd": 2 * chunks, "t_bwd": 2 * chunks, "t_wgt": 2 * chunks}
    assert whole - work == of(bubble_time_interleaved, **case, **times)
    assert (whole - work) / whole == pytest.approx(of(bubble_share_interleaved, **case))
    assert (whole - work) / work == pytest.approx(of(bubble_to_work_interleaved, **case))


def test_known_shares():
    """C29: 27.3 % at four stages and eight microbatches, 17.9 % at eight and thirty-two."""
    assert of(bubble_share, n_stages=4, n_micro=8) == pytest.approx(0.273, abs=5e-4)
    assert of(bubble_share, n_stages=8, n_micro=32) == pytest.approx(0.179, abs=5e-4)
