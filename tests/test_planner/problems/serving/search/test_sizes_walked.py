"""The benchmark of sizes in small: it runs, memory stays within a GB, time hardly grows."""

from tests.cases.serving_sizes import SYSTEMS, SizedAnswer, counts, growth, walked


def test_counts_span_all_sizes() -> None:
    many = counts(60)
    assert (len({*many}), many[0], many[-1]) == (60, 1, 100_000)
    assert any(count % 2 for count in many)


def test_a_power_law_is_read() -> None:
    answers = [SizedAnswer("", n, True, 0.1 * n**0.3, 0) for n in (1, 10, 1000)]
    assert abs(growth(answers) - 0.3) < 1e-9


def test_few_sizes_are_walked() -> None:
    (answer,) = walked([next(iter(SYSTEMS))], [9])
    assert answer.feasible
    assert answer.peak <= 1e9
