"""Timings of geometric programs: `pytest tests/benches/bench_geometric.py -m benchmark`."""

from __future__ import annotations

from typing import Any

import cvxpy  # noqa: F401  loaded beforehand, so that no first solve is charged for it
import pytest
import sympy as sp

from planner.programs.geometric import GeometricProgram, Program

pytestmark = pytest.mark.benchmark

Figures = dict[sp.Symbol, float]


def symbols(names: str) -> tuple[sp.Symbol, ...]:
    return tuple(sp.symbols(names, positive=True))


def serving() -> tuple[GeometricProgram, Figures]:
    """Fifteen constraints on batch, step time, prefill time and chips."""
    B, T, tp, pp, ep, Tp = symbols("B T tp pp ep Tp")
    N, Na, L, kv, F, W, M, net, lat, price, bw, E, k, s, c = symbols(
        "N N_active L b_kv F W M W_net t_lat price b_w E k s c"
    )
    T_max, ttft, I, O, layers, n_max, h, cov = symbols("T_max ttft I O layers n_max h coverage")
    comp, mem, comm, cost = symbols("T_comp T_mem T_comm C_tok")
    problem = GeometricProgram("serving")
    for symbol, high in ((B, 1e5), (tp, 64), (pp, 16), (ep, 256)):
        problem.choose(symbol, within=(1, high))
    problem.choose(T, within=(1e-6, 10))
    problem.choose(Tp, within=(1e-6, 100))
    problem.define(
        sp.Eq(cov, 1 - (1 - k / E) ** B, evaluate=False),
        sp.Eq(comp, 2 * Na * B / (F * tp * pp), evaluate=False),
        sp.Eq(mem, (N * bw * (0.1 + 0.9 * cov) / (tp * pp) + B * L * kv / (tp * pp)) / W),
        sp.Eq(comm, 2 * layers * (B * h / net + lat) / pp, evaluate=False),
        sp.Eq(cost, price * tp * pp * (T + Tp / O) / B, evaluate=False),
        relax={cov: c * B**s},
    )
    problem.roof(T, compute=comp, memory=mem, network=comm, both=sp.Max(comp, mem) + comm)
    problem.roof(Tp, compute=2 * Na * I / (F * tp * pp) + layers * lat, memory=N * bw / (W * tp))
    fit = N * bw / (tp * pp) + B * L * kv / (tp * pp) + h * B
    problem.subject("weights and cache fit", sp.Le(fit, M), promise=True)
    problem.subject("step is fast enough", sp.Le(T * pp, T_max), promise=True)
    problem.subject("first token is fast enough", sp.Le(Tp * pp + T, ttft), promise=True)
    problem.subject("chips", sp.Le(tp * pp, n_max))
    problem.subject("experts", sp.Le(ep, E))
    problem.subject("expert group", sp.Le(tp, ep))
    problem.minimise(cost)
    figures = {
        N: 671e9, Na: 37e9, L: 4096, kv: 70e3, F: 1e15, W: 3.35e12, M: 141e9, net: 4e11, lat: 5e-6,
        price: 2 / 3600, bw: 1, E: 256, k: 8, s: 0.4, c: 0.05, T_max: 0.05, ttft: 2.0, I: 2000,
        O: 500, layers: 61, n_max: 64, h: 14336,
    }  # fmt: skip
    return problem, figures


def budget() -> tuple[GeometricProgram, Figures]:
    """Three variables: parameters, training tokens, served tokens' share of the bill."""
    n, d, r = symbols("n d r")
    A, Bd, alpha, beta, gap, compute, use, least = symbols("A Bd alpha beta gap price use least")
    problem = GeometricProgram("budget")
    for symbol in (n, d):
        problem.choose(symbol, within=(1e6, 1e16))
    problem.choose(r, within=(1e-6, 1e6))
    problem.subject("loss", sp.Le(A * n**-alpha + Bd * d**-beta, gap), promise=True)
    problem.subject("reinforcement", sp.Ge(r * d, least * n))
    problem.minimise(compute * (6 * n * d + 2 * n * use + r * n))
    figures = {
        A: 406.4, Bd: 410.7, alpha: 0.34, beta: 0.28, gap: 0.3, compute: 1e-18, use: 1e12,
        least: 1.0,
    }  # fmt: skip
    return problem, figures


CASES = {"serving": serving, "budget": budget}


def compile_and_solve(problem: GeometricProgram, figures: Figures) -> float:
    return problem.compile(figures).solve(figures).value


def compiled(case: str) -> tuple[Program, Figures]:
    problem, figures = CASES[case]()
    program = problem.compile(figures)
    program.solve(figures)
    return program, figures


@pytest.mark.parametrize("case", CASES)
def test_first_solve(benchmark: Any, case: str) -> None:
    """Lowering, compilation and one solve of a problem just declared."""
    make = CASES[case]
    solved = benchmark.pedantic(compile_and_solve, setup=lambda: (make(), {}), rounds=15)
    assert solved > 0


@pytest.mark.parametrize("case", CASES)
def test_solve_again(benchmark: Any, case: str) -> None:
    """The same program with one figure changed."""
    program, figures = compiled(case)
    symbol = program.givens[0]
    turn = iter(range(10**9))
    solved = benchmark(
        lambda: program.solve(figures | {symbol: figures[symbol] * (1 + next(turn) * 1e-6)})
    )
    assert solved.lower_bound <= solved.value


@pytest.mark.parametrize("case", CASES)
def test_elasticities(benchmark: Any, case: str) -> None:
    """All elasticities of a solution, derivatives compiled before."""
    program, figures = compiled(case)
    solution = program.solve(figures)
    solution.elasticities()
    assert benchmark(solution.elasticities).keys() == set(program.givens)
