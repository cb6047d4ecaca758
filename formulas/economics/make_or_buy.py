"""Make or buy: tokens on rented chips against a host's price, at a mix, a use and a demand.

Chips are paid for by time, so that a token costs the less the more of what they can serve is
served; a host is paid by the token. The two meet at one use, and so at one demand.
"""

from formulas.algebra.notation import *

HOURLY_RENT = "chips are paid for by time, busy or not"

host_mix_price = Equation.of(
    C_host,
    (1 - w_out) * ((1 - w_found) * p_host_in + w_found * p_host_hit) + w_out * p_host_out,
    "the host finds as much of the input in its cache",
    when(w_out <= 1),
    when(w_found <= 1),
    source=derived,
)

cost_at_use = Equation.of(C_use, C_full / u_use, HOURLY_RENT, when(u_use <= 1), source=derived)

break_even_use = derive(
    "share of full use at which renting costs what buying does",
    begin(C_full / u_use, C_host, why="a token costs the same either way", of=(cost_at_use,)),
    solve(u_use, C_full / C_host, named=u_even),
    assumes=(HOURLY_RENT, "above one where even full chips cost more"),
)

cost_at_demand = Equation(
    "cost of a token where fleets are rented whole",
    C_use,
    n_fleets * p_fleet / X_want,
    assumes=(HOURLY_RENT, "fleets are rented whole", when(X_want <= n_fleets * X_full)),
    source=derived,
)

break_even_demand = derive(
    "demand at which one fleet costs what buying does",
    begin(p_fleet / X_want, C_host, why="one fleet, whose bill the demand shares out"),
    solve(X_want, p_fleet / C_host, named=X_even),
    assumes=(HOURLY_RENT, "within what the fleet serves"),
)

fleets_from_which_renting_stays_cheaper = derive(
    "whole fleets from which renting is cheaper at every larger demand",
    begin(
        (n_fleets + 1) * p_fleet / (n_fleets * X_full),
        C_host,
        why="the worst demand is just above what n fleets serve, where one more is rented",
    ),
    solve(n_fleets, p_fleet / (C_host * X_full - p_fleet)),
    assumes=(
        HOURLY_RENT,
        when(p_fleet < C_host * X_full, why="full chips are cheaper than the host"),
    ),
)

implied_markup = Equation.of(
    mu_host, C_host / C_full, "a host rents at our price and fills its chips", source=derived
)
