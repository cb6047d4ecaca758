"""Derive your own: how busy must a chip be for owning it to cost less than renting?

Run with `python examples/derive-your-own.py`; it prints `derive-your-own.txt`. The figures put in
at the end illustrate; they are nobody's prices.
"""

import numpy as np

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.export import export
from formulas.nomenclature.dimensions import UnitError
from formulas.nomenclature.lecture import p_chip
from formulas.nomenclature.sources import derived
from formulas.nomenclature.symbols import symbol

P_own = symbol("P_own", "USD/chip", "price of a chip with its share of the machine")
T_own = symbol("T_own", "s", "time a bought chip stays in service")
p_own = symbol("p_own", "USD/(chip*s)", "power, space and staff of one chip for one second")
u_own = symbol("u_own", "1", "share of its time that a bought chip is busy")
c_own = symbol("c_own", "USD/(chip*s)", "cost of one busy second of a bought chip")

own_cost = Equation(
    "cost of one busy second of a bought chip",
    c_own,
    (P_own / T_own + p_own) / u_own,
    assumes=("paid for whether busy or not", "no interest, and nothing left at the end"),
    source=derived,
)

break_even = (
    Derivation("how busy a chip must be for owning to beat renting", assumes=own_cost.assumes)
    .begin(own_cost.rhs, p_chip, why="a busy second costs the same, bought or rented")
    .solve(u_own, (P_own / T_own + p_own) / p_chip)
)

by_purchase = (
    Derivation("the same, by the price of the chip alone", assumes=own_cost.assumes)
    .begin(own_cost.rhs, p_chip, why=break_even.steps[0].why)
    .drop(p_own / u_own, beside=P_own / (T_own * u_own), why="running costs little")
    .solve(u_own, P_own / (T_own * p_chip))
)

# What comes with it: every step checked, and a document of all of it.
print(export((own_cost, break_even, by_purchase), "markdown"))

# Numbers: NumPy arrays in, arrays out, every symbol in its base unit.
hour, year = 3600, 365.25 * 24 * 3600
case = {"P_own": 40_000, "T_own": 4 * year, "p_own": 0.45 / hour}
busy = break_even.numpy("p_chip")
rents = np.array([2.0, 2.5, 3.5])
for rent, share in zip(rents, busy(rents / hour, **case), strict=True):
    print(f"rent of ${rent:.2f}/hour: owning wins from {share:.0%} busy")

# What moves the answer, and how much the short rule neglects.
print("percent per percent of P_own:", break_even.equation().elasticity(P_own))
for neglected, size in by_purchase.strain(case | {"p_chip": 2.5 / hour}).items():
    print(f"{neglected}: {size:.0%} of what is kept")

# A slip does not pass: neither a wrong step nor a wrong unit.
for slip in (P_own / T_own / p_chip, (P_own + p_own) / p_chip):
    try:
        break_even.replayed({2: {"claim": slip}})
    except (DerivationError, UnitError) as error:
        print(f"\n{type(error).__name__}: {error}")
