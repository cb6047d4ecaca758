"""What a plan of one pool gives: price, fill, rates, times, energy and bill (two: `pools`).

Everything here follows from how long a replica works on a request (`T_slot`), on its prompt
(`T_pf_busy`) and on its answer (`T_out`), and from the two times that a user sees. The roofline
gives the same symbols (`ROOFLINE`), so that one price is that of the bound and of the estimate.

Without arrivals the share of the slots in use (`r_fill`) is given. Under a load it follows from
what arrives; where as many requests as possible are wanted, from how busy promises let a replica
be.
"""

from formulas.algebra.notation import *

ASSUME_IDLE_CHIPS_PAID = "idle chips are paid too"
LITTLES_LAW = little_1961.at("the number served")
PRICES = lecture_equations.at("equation 4")
BOTH = L_in + L_out

# --- how full the slots are -------------------------------------------------------------------
carried_load = Equation(
    "share of the slots that a load keeps in use",
    r_load,
    X_arr * T_slot / (n_up * one_seq),
    assumes=("a steady state", "replicas share the load evenly, the spare ones are down"),
    source=LITTLES_LAW,
)

allowed_load = Equation(
    "share of the slots in use where as many requests are served as promises allow",
    r_load,
    r_busy * (1 - x_free),
    assumes=("requests wait for slots, not slots for requests",),
)

realised_fill = Equation(
    "share of the slots in use, spare replicas counted",
    r_fill,
    r_load * n_up / n_rep,
    assumes=("spare replicas are empty",),
)

given_fill = Equation(
    "share of the slots in use of the replicas that run, all of them",
    r_load,
    r_fill,
    assumes=("no replica is spare",),
)

replica_arrivals = Equation.of(
    x_load, r_load * one_seq / T_slot, "a steady state", source=LITTLES_LAW
)

replica_rate = Equation.of(
    X_rep,
    r_busy * (1 - x_free) * one_seq / T_slot,
    "requests wait for slots, not slots for requests",
)

request_rate = Equation.of(
    X_seq, one_seq * n_rep * r_fill / T_slot, "replicas share the load evenly"
)

sequences_in_plan = Equation.of(n_seqs, B * n_rep * r_fill, "replicas share the load evenly")

# --- times ------------------------------------------------------------------------------------
first_token = Equation(
    "time from arrival to first token",
    T_first,
    T_ttft + T_wait,
    assumes=("a prompt is read at once when its turn comes",),
)

immediate_first_token = Equation(
    "time from arrival to first token where nobody waits", T_first, T_ttft, assumes=("no queue",)
)

FIRST_OF_A_LOOP = Equation(
    "time from arrival to first token in a closed loop",
    T_first,
    T_loop,
    assumes=("the prompts of others are waited for",),
)

first_token_quantile = Equation(
    "time to first token that a given share of the requests exceed",
    T_first,
    T_ttft + T_tail,
    assumes=("the prompt is of mean length; that its own is longer counts as delay",),
)

request_latency = Equation.of(
    T_e2e, T_first + L_dec * one_seq * T_tpot, "steps take their mean time"
)

# By the phases that a pool runs.
LATENCY = {
    "aggregated": request_latency,
    "decode": Equation(
        "time from first to last token, of a pool that only decodes",
        T_e2e,
        L_dec * one_seq * T_tpot,
        assumes=("steps take their mean time",),
    ),
    "prefill": Equation(
        "time from arrival to the end of the prompt, of a pool that only reads",
        T_e2e,
        T_first,
        assumes=("the prompt alone",),
    ),
}

requests_in_plan = Equation(
    "requests in flight over all replicas, those that wait counted",
    n_inside,
    X_seq * T_e2e,
    assumes=("a steady state",),
    source=little_1961.at("the theorem"),
)

tokens_per_user = Equation.of(X_user, 1 / T_tpot, "first token excluded")

output_token_rate = Equation.of(X_out, X_seq * L_out, "a steady state")

input_token_rate = Equation.of(X_in, X_seq * L_in, "tokens found in a prefix cache are counted")

tokens_per_chip = Equation.of(X_chip, X_out / n_chips, "idle chips count")

# --- money and energy of one pool ---------------------------------------------------------------
bill = Equation.of(C_bill, p_chip * n_chips, ASSUME_IDLE_CHIPS_PAID)

power_bill = Equation.of(C_power, p_power * n_chips, ASSUME_IDLE_CHIPS_PAID)


def _per_request(of_a_chip: Expr) -> Expr:
    return of_a_chip * n_chips * T_slot / (n_rep * r_fill * one_seq)


request_price = Equation.of(C_seq, _per_request(p_chip), ASSUME_IDLE_CHIPS_PAID, source=PRICES)

mixed_price = Equation.of(C_mix, request_price.rhs / BOTH, ASSUME_IDLE_CHIPS_PAID, source=PRICES)

input_price = Equation(
    "price of an input token",
    C_in,
    p_chip * n_chips * x_pf * T_pf_busy / (n_rep * r_fill * L_in * one_seq),
    assumes=("input bears prefill's share of chip time",),
    source=PRICES,
)

output_price = Equation(
    "price of an output token",
    C_out,
    p_chip * n_chips * T_out / (n_rep * r_fill * L_out * one_seq),
    assumes=("output bears decode's share of chip time",),
    source=PRICES,
)

request_energy = Equation.of(E_seq, _per_request(P_chip), "all chips count, idle ones too")


def _energy(name: str, tokens: Expr) -> Equation:
    return Equation(name, E_tok, request_energy.rhs / tokens, assumes=request_energy.assumes)


mixed_energy = _energy("energy of a token at the scenario's mix", BOTH)
input_energy = _energy("energy of a prompt token, of a pool that only reads", L_in)
output_energy = _energy("energy of a generated token, of a pool that only decodes", L_out)

ASSUME_ELECTRICITY_ONLY = "of electricity alone: nothing of making chips and buildings"
request_carbon = Equation.of(m_seq, m_grid * E_seq, ASSUME_ELECTRICITY_ONLY)
token_carbon = Equation.of(m_tok, m_grid * E_tok, ASSUME_ELECTRICITY_ONLY)

# --- a pool that has one phase only, and the roofline --------------------------------------------


def _roofline(what: str, estimate: Expr, bound: Expr) -> Equation:
    return Equation(
        f"{what}, no faster than the roofline", estimate, bound,
        assumes=("perfect overlap, no overhead",), source=lecture_equations.at("equation 1"),
    )  # fmt: skip


ROOFLINE = (
    _roofline("time a replica spends per prompt", T_pf_busy, T_pf_busy_bound),
    _roofline("time to first token", T_ttft, T_ttft_bound),
    _roofline("time per output token", T_tpot, T_tpot_bound),
)
ROOFLINE_SLOT = (_roofline("time a replica spends per request", T_slot, T_slot_bound),)

# Equations of the slot, or of its decode part, for a pool that lacks a phase.
READING_SLOT = (
    Equation(
        "time a replica spends per request, of a pool that only reads prompts",
        T_slot,
        x_pf * T_pf_busy,
        assumes=("nothing is decoded",),
    ),
)
DECODING = {
    "decode": Equation(
        "time a replica spends decoding per request, of a pool that only decodes",
        T_out,
        T_slot,
        assumes=("no prompt is read",),
    ),
    "aggregated": Equation(
        "time a replica spends decoding per request, what is left of its slot",
        T_out,
        T_slot - x_pf * T_pf_busy,
        assumes=("input bears the time of its prompt",),
    ),
}

# --- which of them apply --------------------------------------------------------------------------
# Load: the share of slots is given, the arrival rate is given, or the maximum load is served.
FILLS = {
    "none": (given_fill, replica_arrivals),
    "given": (carried_load, realised_fill, replica_arrivals),
    "most": (allowed_load, realised_fill, replica_arrivals),
}
COMMON = (
    request_rate, sequences_in_plan, first_token, requests_in_plan, tokens_per_user,
    output_token_rate, input_token_rate, tokens_per_chip, bill, power_bill, request_price,
    input_price, output_price, mixed_price, request_energy,
)  # fmt: skip
# Cost and energy of a token, by the phases that a pool runs.
PRICE = {"aggregated": mixed_price, "decode": output_price, "prefill": input_price}
ENERGY = {"aggregated": mixed_energy, "decode": output_energy, "prefill": input_energy}


def one_pool(mode: str, load: str) -> tuple[Equation, ...]:
    """Outputs of a pool in a mode, under a load (`none`, `given` or `most`)."""
    return (*FILLS[load], *COMMON, LATENCY[mode], ENERGY[mode], request_carbon, token_carbon)
