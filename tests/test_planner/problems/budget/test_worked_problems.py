"""Worked problems, each against a few lines of SciPy written from the papers' formulas alone."""

import math
from itertools import pairwise
from math import exp, inf, log, log10

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

import planner
from tests.loops import for_all

YEAR = 365.25 * 86400.0
HUGE = 1e300


def chinchilla(e, a, b, alpha, beta):
    """Hoffmann et al. 2022, equation 2."""
    return lambda n, d: e + a / n**alpha + b / d**beta


BESIROGLU = chinchilla(1.8172, 482.01, 2085.43, 0.3478, 0.3658)
SARDANA = chinchilla(1.69, 406.4, 410.7, 0.336, 0.283)
M_A, M_B, M_E, M_POWER = exp(6.255414), exp(7.3049974), exp(0.6254804), 0.3526596


def kaplan(n, d):
    """Kaplan et al. 2020, equation 1.5."""
    return ((6.4e13 / n) ** (0.076 / 0.103) + 1.8e13 / d) ** 0.103


def muennighoff(unique):
    """Muennighoff et al. 2023, equations 5 to 7."""

    def worth(x, knee, reach):
        return min(x, knee) * (1 + reach * (1 - exp(-max(x / knee - 1, 0) / reach)))

    def loss(n, d):
        seen = min(d, unique)
        fed = seen * (M_A / M_B) ** (1 / M_POWER)
        tokens, size = worth(d, seen, 15.387756), worth(n, fed, 5.309743)
        return M_E + M_A / size**M_POWER + M_B / tokens**M_POWER

    return loss


def saturated(experts, first, limit):
    """Clark et al. 2022, equation 8."""
    return 1 / (1 / (experts - 1 + 1 / (1 / first - 1 / limit)) + 1 / limit)


def routed(sparsity):
    """Besiroglu's law at the effective parameters of S-BASE (Clark et al. 2022, equation 9)."""
    a, b, c, first, limit = -0.082, -0.108, 0.009, 1.847, 314.478
    many = saturated(1 + (sparsity - 1) / 0.31, first, limit)
    below = a + c * log10(first)
    power, factor = (a + c * log10(many)) / below, (many / first) ** (b / below)
    return lambda n, d: BESIROGLU(n**power * factor, d)


def abnar(sparsity):
    """Abnar et al. 2025, equation 6, of all parameters and of the active share."""

    def loss(n, d):
        total = n * sparsity
        mixed = 17.26 * sparsity**0.1603 / total**0.1595
        return (
            16612.5 / total**0.5962 + 5455.67 / d**0.3954 + 0.4598 / sparsity**0.1666 + mixed + 0.94
        )

    return loss


def ludziejewski(sparsity):
    """Ludziejewski et al. 2025, equation 6."""
    many = saturated(1 + (sparsity - 1) * 13 / 9, 2.0732, 290.4521)

    def loss(n, d):
        size = 35.91 * many**-0.2285 * n ** (-0.1889 + 0.0098 * log(many))
        return size + 35.98 * many**0.5529 * d ** (-0.1775 - 0.0259 * log(many)) + 1.3637

    return loss


def tokens_for(loss, n, wanted):
    """Tokens at which a size has a loss; infinite where none are enough."""
    if loss(n, 1e19) > wanted:
        return inf
    return exp(brentq(lambda x: loss(n, exp(x)) - wanted, log(1e4), log(1e19), xtol=1e-13))


def lowest(score):
    """The size of least score between 1e6 and 1e14."""
    grid = np.linspace(log(1e6), log(1e14), 400)
    at = int(np.argmin([score(exp(x)) for x in grid]))
    ends = grid[max(at - 1, 0)], grid[min(at + 1, 399)]
    return exp(minimize_scalar(lambda x: score(exp(x)), bounds=ends, method="bounded",
                               options={"xatol": 1e-11}).x)  # fmt: skip


def cheapest(loss, wanted, served=0.0, each=6.0, per=2.0, rl=0.0, fixed=0.0):
    """Size, tokens and cost of the cheapest life at a loss."""

    def cost(n):
        d = tokens_for(loss, n, wanted)
        return log(n * (each * d + per * served + rl) + fixed) if d < inf else HUGE

    n = lowest(cost)
    return n, tokens_for(loss, n, wanted), exp(cost(n))


def best(loss, limit, served=0.0, each=6.0, per=2.0):
    """Size, tokens and loss of the best model at a cost."""

    def trained(n):
        return (limit / n - per * served) / each

    n = lowest(lambda n: loss(n, trained(n)) if trained(n) > 1 else HUGE)
    return n, trained(n), loss(n, trained(n))


def of_many(law, sparsities, wanted, served):
    """The cheapest over sparsities."""
    return min((cheapest(law(s), wanted, served) for s in sparsities), key=lambda found: found[2])


def demand(rate, life, growth, discount, chance):
    """Tokens of an exponential demand, discounted, times the chance that they are served."""
    net = (math.log1p(growth) - math.log1p(discount)) / YEAR
    end = life if life < inf else 400 / -net
    parts = pairwise(np.linspace(0, end, 41))
    return (1 - chance) * sum(quad(lambda t: rate * exp(net * t), a, b)[0] for a, b in parts)


def usd(price, mfu, peak):
    """USD for a FLOP."""
    return price / 3600 / (mfu * peak)


GROWING = {"rate": 1e6, "lifetime": "2 years", "growth": 0.5, "discount": 0.1, "obsolescence": 0.2}
FOREVER = {"rate": 2e5, "lifetime": "forever", "growth": 0.05, "discount": 0.25}
REWARD = {"needed": 0.55, "start": 0.3, "middle": 1e22, "steepness": 2.01}
H100 = {"like": "hgx-h100", "flops": {"bf16": "1 PFLOP/s"}}
PAID = {
    "pretrain": {"system": H100, "mfu": 0.4, "price": "$2/hour"},
    "inference": {"system": [H100, "hgx-a100"], "mfu": 0.2, "price": "$1.80/hour"},
}
LOSS_2 = {"quality": {"loss": 2.0}}

WORKED = {
    "a loss": ({"quality": {"loss": 2.05}, "inference": {"tokens": 1e12}},
               lambda: cheapest(BESIROGLU, 2.05, 1e12)),
    "as good as another": (
        {"quality": {"like": {"n_active": 8e9, "tokens": 15e12}}, "inference": {"tokens": 1e14}},
        lambda: cheapest(BESIROGLU, BESIROGLU(8e9, 15e12), 1e14)),
    "sardana at a cost": ({"law": "sardana-2024", "cost": 1e24, "inference": {"tokens": 1e13}},
                          lambda: best(SARDANA, 1e24, 1e13)),
    "kaplan": ({"law": "kaplan-2020", "quality": {"loss": 2.2}, "inference": {"tokens": 1e12}},
               lambda: cheapest(kaplan, 2.2, 1e12)),
    "kaplan at a cost": ({"law": "kaplan-2020", "cost": 1e22}, lambda: best(kaplan, 1e22)),
    "repeated, served": (
        {"law": "muennighoff-2023", "quality": {"loss": 2.1}, "inference": {"tokens": 1e12},
         "data": {"unique": 1e11}}, lambda: cheapest(muennighoff(1e11), 2.1, 1e12)),
    "repeated at a cost": (
        {"law": "muennighoff-2023", "cost": 9.25e21, "data": {"unique": 25e9}},
        lambda: best(muennighoff(25e9), 9.25e21)),
    "a growing demand": ({**LOSS_2, "inference": GROWING},
                         lambda: cheapest(BESIROGLU, 2.0, demand(1e6, 2 * YEAR, 0.5, 0.1, 0.2))),
    "a demand without end": ({**LOSS_2, "inference": FOREVER},
                             lambda: cheapest(BESIROGLU, 2.0, demand(2e5, inf, 0.05, 0.25, 0))),
    "rollouts": ({**LOSS_2, "inference": {"tokens": 1e12}, "rl": {"tokens": 1e12, "k": 4}},
                 lambda: cheapest(BESIROGLU, 2.0, 1e12, rl=4e12)),
    "a reward": ({**LOSS_2, "inference": {"tokens": 1e12}, "rl": {"reward": REWARD}},
                 lambda: cheapest(BESIROGLU, 2.0, 1e12,
                                  fixed=1e22 * (0.25 / (0.61 - 0.55)) ** (1 / 2.01))),
    "utilisations": (
        {**LOSS_2, "inference": {"tokens": 2e12},
         "phases": {"pretrain": {"mfu": 0.45}, "inference": {"mfu": 0.15}}},
        lambda: cheapest(BESIROGLU, 2.0, 2e12, each=6 / 0.45, per=2 / 0.15)),
    "dollars": ({**LOSS_2, "inference": {"tokens": 2e12}, "objective": "cost", "phases": PAID},
                lambda: cheapest(BESIROGLU, 2.0, 2e12, each=6 * usd(2, 0.4, 1e15),
                                 per=2 * usd(1.8, 0.2, 1e15))),
    "a limit in dollars": ({"cost": "$5M", "inference": {"tokens": 1e13}, "phases": PAID},
                           lambda: best(BESIROGLU, 5e6, 1e13, each=6 * usd(2, 0.4, 1e15),
                                        per=2 * usd(1.8, 0.2, 1e15))),
    "a menu of experts": (
        {"law": "besiroglu-2024 + clark-2022-s-base", "quality": {"loss": 2.1},
         "choose": {"sparsity": [1, 4, 16, 32]}, "inference": {"tokens": 1e12}},
        lambda: of_many(routed, (1, 4, 16, 32), 2.1, 1e12)),
    "abnar": ({"law": "abnar-2025", "quality": {"loss": 2.0}, "choose": {"sparsity": [1, 10, 50]},
               "inference": {"tokens": 1e12}}, lambda: of_many(abnar, (1, 10, 50), 2.0, 1e12)),
    "ludziejewski": (
        {"law": "ludziejewski-2025", "quality": {"loss": 2.3}, "choose": {"sparsity": [1, 4, 16]},
         "inference": {"tokens": 1e11}}, lambda: of_many(ludziejewski, (1, 4, 16), 2.3, 1e11)),
    "llama 3": ({"law": "llama-3-2024", "cost": 3.8e25},
                lambda: (3.8e25 / 6 / (0.299 * 3.8e25**0.537), 0.299 * 3.8e25**0.537, None)),
    "deepseek": ({"law": "deepseek-llm-2024", "cost": 1e20},
                 lambda: (0.1715 * 1e20**0.5243 / 6, 5.8316 * 1e20**0.4757, None)),
}  # fmt: skip


@for_all("name", WORKED)
def test_a_worked_problem_has_its_own_answer(name):
    """Size and tokens to 1e-4, what is made small to 1e-6."""
    asked, other = WORKED[name]
    plan = planner.solve({"problem": "budget", "draws": 0, **asked}).chosen
    size, tokens, score = other()
    assert plan["n_active"] == pytest.approx(size, rel=1e-4)
    assert plan["tokens"]["pretrain"] == pytest.approx(tokens, rel=1e-4)
    if score is not None:
        total = plan["cost"]["total"]
        paid = total["usd"] if plan["objective"] == "usd" else total["flop_paid"]
        assert (plan["loss"] if "cost" in asked else paid) == pytest.approx(score, rel=1e-6)


@pytest.mark.parametrize("served", [1e13, 2e14])
def test_following_equal_pools_costs_what_it_costs(served):
    """Pre-training given what serving takes, the size that is as good, its cost over the least."""
    asked = {"problem": "budget", "draws": 0, "quality": {"loss": 1.98}}
    told = planner.solve({**asked, "inference": {"tokens": served}}).document["heuristic"]
    size = exp(brentq(lambda x: BESIROGLU(exp(x), served / 3) - 1.98, 5, 40, xtol=1e-13))
    least = cheapest(BESIROGLU, 1.98, served)[2]
    assert told["n_active"] == pytest.approx(size, rel=1e-6)
    assert told["worse_by"] == pytest.approx(size * 4 * served / least - 1, rel=1e-5)
