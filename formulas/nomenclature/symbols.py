"""The nomenclature: every symbol once, with its unit and its meaning.

All symbols are positive: it is what makes roots, logarithms and Max safe. This is the only module
that makes SymPy symbols: `symbol` registers a quantity, a second registration of a name is refused;
`auxiliary` makes a variable of an optimisation problem, which no equation holds. Without suffix a
symbol means the whole domain (all chips of one replica), with `_chip` one chip. A file of equations
takes its symbols by `from formulas.nomenclature.ROOM import *` and writes them as a blackboard does.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import sympy as sp

from formulas.nomenclature.dimensions import Unit, unit

SYMBOLS: dict[str, sp.Symbol] = {}

_UNITS: dict[sp.Symbol, Unit] = {}
_MEANINGS: dict[sp.Symbol, str] = {}
_LATEX: dict[sp.Symbol, str] = {}
_OWNED_BY_SYMPY = frozenset("EINOQS") | {"C"}


class SymbolError(ValueError):
    """A name that no symbol bears, one that bears a symbol already, or a value it cannot take."""


def symbol(name: str, unit_text: str, meaning: str, latex: str | None = None) -> sp.Symbol:
    """A positive symbol, registered once.

    Raises
    ------
    SymbolError
        If the name is taken, or is one that SymPy gives a meaning of its own (E I N O Q S C).
    UnitError
        If the unit cannot be read.
    """
    if name in SYMBOLS:
        raise SymbolError(f"the symbol {describe(name)} is registered already")
    if name in _OWNED_BY_SYMPY:
        raise SymbolError(f"{name!r} alone means something else to SymPy; choose another name")
    x = sp.Symbol(name, positive=True)
    _UNITS[x] = unit(unit_text)
    _MEANINGS[x] = meaning
    _LATEX[x] = latex or _subscripted(name)
    SYMBOLS[name] = x
    return x


def auxiliary(name: str, **assumptions: bool) -> sp.Symbol:
    """A variable of an optimisation problem or a substitution: no unit, no meaning, unregistered.

    Parameters
    ----------
    name
        How it prints; it should not be that of a registered symbol.
    assumptions
        What SymPy may assume of it, such as `nonnegative=True`.
    """
    return sp.Symbol(name, **assumptions)


def unit_of_symbol(x: sp.Symbol | str) -> Unit:
    """The unit of a registered symbol."""
    return _UNITS[_registered(x)]


def meaning(x: sp.Symbol | str) -> str:
    """What a registered symbol stands for, in words."""
    return _MEANINGS[_registered(x)]


def latex_names() -> dict[sp.Symbol, str]:
    """LaTeX of every symbol, as `sympy.latex(symbol_names=...)` takes it."""
    return dict(_LATEX)


def describe(name: str) -> str:
    """`'L_ctx' (tokens of context held per sequence) [token/seq]`, for messages."""
    if name not in SYMBOLS:
        return repr(name)
    x = SYMBOLS[name]
    return f"{name!r} ({_MEANINGS[x]}) [{_UNITS[x]}]"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean 'L_ctx' (...) [token/seq]?`, or nothing when no candidate is near."""
    candidates = list(candidates)
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    near = near or [c for c in candidates if c.lower() == name.lower()][:1]
    return f"; did you mean {describe(near[0])}?" if near else ""


def _registered(x: sp.Symbol | str) -> sp.Symbol:
    name = x if isinstance(x, str) else x.name
    registered = SYMBOLS.get(name)
    if registered is None or (not isinstance(x, str) and registered != x):
        raise SymbolError(f"no symbol {name!r} is registered{did_you_mean(name, SYMBOLS)}")
    return registered


def _subscripted(name: str) -> str:
    """`L_ctx` as L with an upright subscript."""
    head, _, tail = name.partition("_")
    head = head if len(head) == 1 else rf"\mathrm{{{head}}}"
    return head if not tail else rf"{head}_{{\mathrm{{{tail.replace('_', ','):s}}}}}"


# fmt: off
# ruff: noqa: E501  (a table reads better whole)
# name = symbol(name, unit, meaning, latex where the rule L_ctx -> L with subscript does not serve)

# A step and what it works on
B          = symbol("B",          "seq",                "sequences decoded together in one step")
g          = symbol("g",          "token/seq",          "tokens emitted per sequence and step")
m_pos      = symbol("m_pos",      "token/seq",          "positions computed per sequence and step", "m")
L_ctx      = symbol("L_ctx",      "token/seq",          "tokens of context held per sequence")
L_in       = symbol("L_in",       "token/seq",          "tokens of the prompt of one sequence")
L_out      = symbol("L_out",      "token/seq",          "tokens generated per sequence")
L_pass     = symbol("L_pass",     "token/seq",          "tokens of one sequence computed in one pass")

# A model
N_total    = symbol("N_total",    "param",              "parameters held in memory")
N_active   = symbol("N_active",   "param",              "parameters one token passes through")
b_w        = symbol("b_w",        "byte/param",         "bytes per parameter")
b_kv       = symbol("b_kv",       "byte/token",         "key-value bytes per token of context")
c_fwd      = symbol("c_fwd",      "flop/(param*token)", "arithmetic per active parameter and token, forward")
a_kv       = symbol("a_kv",       "flop*seq/token**2",  "attention arithmetic per position and cached token")
n_layers   = symbol("n_layers",   "1",                  "layers that keep keys and values")
n_kv       = symbol("n_kv",       "1",                  "key-value heads of a layer")
d_head     = symbol("d_head",     "1",                  "width of one head")
b_el       = symbol("b_el",       "byte/token",         "bytes of one cached number, for each token")
r_kv       = symbol("r_kv",       "1",                  "width of the shared latent that is cached")
r_rope     = symbol("r_rope",     "1",                  "width of the positional key cached beside the latent")
n_experts  = symbol("n_experts",  "1",                  "routed experts of a layer")
k_experts  = symbol("k_experts",  "1",                  "routed experts that one token visits", "k")
coverage   = symbol("coverage",   "1",                  "share of the routed experts read in a step", r"\kappa")
sigma      = symbol("sigma",      "1",                  "total over active parameters", r"\sigma")
N_dense    = symbol("N_dense",    "param",              "parameters every token passes through")
N_routed   = symbol("N_routed",   "param",              "parameters of all routed experts")
k_least    = symbol("k_least",    "1",                  "least share of the routed experts that a step can read")
N_touched  = symbol("N_touched",  "param",              "parameters read from memory in one step")

# A machine
F          = symbol("F",          "flop/s",             "arithmetic rate of the domain")
W          = symbol("W",          "byte/s",             "memory bandwidth of the domain")
M          = symbol("M",          "byte",               "memory of the domain")
M_used     = symbol("M_used",     "byte",               "memory in use in the domain")
M_chip     = symbol("M_chip",     "byte/chip",          "memory in use on one chip")
n_chips    = symbol("n_chips",    "chip",               "chips of the domain")
n_stages   = symbol("n_stages",   "1",                  "pipeline stages")
B_micro    = symbol("B_micro",    "seq",                "sequences of one microbatch", r"B_{\mu}")
p_chip     = symbol("p_chip",     "USD/(chip*s)",       "price of one chip for one second", r"p_{\mathrm{chip}}")

# Times of a step
T_comp     = symbol("T_comp",     "s",                  "time of the arithmetic of one step")
T_w        = symbol("T_w",        "s",                  "time to read the weights once")
T_kv       = symbol("T_kv",       "s",                  "time to read every cache of the batch once")
T_mem      = symbol("T_mem",      "s",                  "time of the memory traffic of one step")
T_step     = symbol("T_step",     "s",                  "time of one step")
T_floor    = symbol("T_floor",    "s",                  "least time of one step, at any batch")
T_drain    = symbol("T_drain",    "s",                  "time to read the whole memory once")

# Efficiencies: attained over peak
e_w        = symbol("e_w",        "1",                  "attained share of bandwidth, reading weights")
e_kv       = symbol("e_kv",       "1",                  "attained share of bandwidth, reading caches")
e_c        = symbol("e_c",        "1",                  "attained share of the arithmetic peak")
e_net      = symbol("e_net",      "1",                  "attained share of network bandwidth")

# Batches and contexts at which something changes
B_crit     = symbol("B_crit",     "seq",                "batch at which arithmetic and memory take equal time")
B_0        = symbol("B_0",        "token",              "positions per step at which arithmetic equals reading the weights")
L_star     = symbol("L_star",     "1",                  "cached tokens whose reading takes as long as the arithmetic of one position", r"L_{*}")
L_a        = symbol("L_a",        "token/seq",          "context at which attention equals the arithmetic of the weights")
L_kink     = symbol("L_kink",     "token/seq",          "context at which a step turns from arithmetic to memory")
L_never    = symbol("L_never",    "token/seq",          "context beyond which no batch makes a step arithmetic-bound")
x_batch    = symbol("x_batch",    "1",                  "cost of a sequence over its arithmetic floor")
T_seq      = symbol("T_seq",      "s/seq",              "time of a step divided by its sequences")

T_pos      = symbol("T_pos",      "s/token",            "time of a pass divided by its positions")
L_cross    = symbol("L_cross",    "token/seq",          "tokens per pass at which a pass turns to arithmetic")

# Fast and slow modes, relative to the normal one
w_fix      = symbol("w_fix",      "1",                  "share of the normal step that does not depend on the batch", "w")
s_fast     = symbol("s_fast",     "1",                  "speed over the normal speed", "s")
s_most     = symbol("s_most",     "1",                  "largest speed over the normal speed")
beta_B     = symbol("beta_B",     "1",                  "batch over the normal batch", r"\beta_{B}")
x_price    = symbol("x_price",    "1",                  "price over the normal price")

# Memory
L_max      = symbol("L_max",      "token/seq",          "longest context that fits every sequence of the batch")
B_max      = symbol("B_max",      "seq",                "largest batch that fits")
n_domain   = symbol("n_domain",   "chip",               "chips of one scale-up domain, one pipeline stage")

# Money
C_tok      = symbol("C_tok",      "USD/token",          "cost of one generated token")
C_in       = symbol("C_in",       "USD/token",          "cost of one prompt token")
C_out      = symbol("C_out",      "USD/token",          "cost of one generated token, as sold")
D_step     = symbol("D_step",     "USD/s",              "price of the domain for one second")
rho_price  = symbol("rho_price",  "1",                  "price of an output token over that of an input token", r"\rho")
# fmt: on

__all__ = list(SYMBOLS)  # what `import *` brings into a file of equations
