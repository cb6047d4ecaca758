"""EP across racks: over how many chips should the experts of one layer be spread?

Run with `python examples/ep-across-racks.py`; it prints `ep-across-racks.txt`. More chips have
fewer experts to read each, and exchange more slowly once they leave their board or rack. Nothing
here says that a layer should stay in one rack: it comes out.
"""

from collections.abc import Callable
from math import ceil, isclose

from formulas.network.expert_traffic import crossing_batch, crossing_expert, experts_spared
from planner.architecture.counts import model_sizes
from planner.catalogue.chips import chip
from planner.catalogue.models import load
from planner.network import collective_time, place_group
from topologies import machine

MODEL = model_sizes(load("deepseek-v3"))
EXPERTS, ACTIVE, HIDDEN = MODEL.n_experts, MODEL.n_experts_active, MODEL.hidden
EXPERT = MODEL.weight_bytes["routed"] / (MODEL.n_moe_layers * EXPERTS)  # bytes, fp8
FP4 = 4.5 / 8  # nvfp4: four bits, and eight for the scale of sixteen weights
DISPATCH, COMBINE = HIDDEN * (1 + 4 / 128), HIDDEN * 2  # bytes of a token: fp8 and scales, bf16
FABRICS = {
    "boards of 8 H800": ("hgx-h800", "h800"),
    "boards of 8 B200": ("hgx-b200", "b200"),
    "racks of 72 GB200": ("gb200-nvl72", "gb200"),
}
GROUPS = (8, 16, 32, 64, 128, 256)


def exchange(fabric: str, ep: int, tokens: float) -> float:
    """Dispatch and combine of one layer [s], by the fastest library."""
    group = place_group(machine(FABRICS[fabric][0]), ep)
    there = collective_time(group, "dispatch", tokens * ACTIVE * DISPATCH)
    back = collective_time(group, "combine", tokens * ACTIVE * COMBINE)
    return float(there.seconds + back.seconds)


def reading(fabric: str, ep: int, expert: float = EXPERT) -> float:
    """Reading all experts that the fullest chip holds [s]."""
    return ceil(EXPERTS / ep) * expert / chip(FABRICS[fabric][1]).memory_bandwidth


def layer(fabric: str, ep: int, tokens: float, expert: float = EXPERT) -> float:
    """One layer's experts in one step [s]: read, and exchange."""
    return reading(fabric, ep, expert) + exchange(fabric, ep, tokens)


def table(tokens: int) -> None:
    """Times of every group on every fabric, in microseconds; the best marked."""
    print(f"\n{tokens} tokens per chip; us per layer")
    print(f"{'':22}{'EP':>4}" + "".join(f"{ep:8}" for ep in GROUPS))
    for fabric, (name, _) in FABRICS.items():
        domains = [place_group(machine(name), ep).domains for ep in GROUPS]
        total = [layer(fabric, ep, tokens) for ep in GROUPS]
        best = total.index(min(total))
        rows = {
            "domains": domains,
            "exchange": [1e6 * exchange(fabric, ep, tokens) for ep in GROUPS],
            "experts": [1e6 * reading(fabric, ep) for ep in GROUPS],
            "total": [1e6 * t for t in total],
        }
        for title, row in rows.items():
            lead = fabric if title == "domains" else ""
            print(f"{lead:18}{title:>8}" + "".join(f"{value:8.0f}" for value in row))
        print(f"{'':18}{'best':>8}" + f"{'^':>8}".rjust(8 * (best + 1)))


def largest(time: Callable[[float], float], limit: float) -> float:
    """The most tokens per chip at which a time that rises with them is within a limit."""
    low, high = 0.0, 2.0**16
    while not isclose(low, high, rel_tol=1e-9, abs_tol=1e-9):
        middle = (low + high) / 2
        low, high = (middle, high) if time(middle) <= limit else (low, middle)
    return low


def crossing(fabric: str, inner: int, outer: int) -> None:
    """Up to which batch leaving the domain pays, else from which size of experts; both sides."""
    print(f"\n{fabric}: EP{inner} inside one against EP{outer} over several")
    spared = experts_spared.numpy()(n_experts=EXPERTS, n_inner=inner, n_outer=outer)
    case = {"n_spare": spared, "W_chip": chip(FABRICS[fabric][1]).memory_bandwidth}

    def lost(tokens: float) -> float:
        return exchange(fabric, outer, tokens) - exchange(fabric, inner, tokens)

    gain = reading(fabric, inner) - reading(fabric, outer)
    if lost(0) < gain:
        tokens = largest(lost, gain)
        line = (lost(1024) - lost(1)) / 1023
        by_line = {"s_expert": EXPERT, "t_more": lost(1) - line, "x_more": line}
        print(f"  pays up to {tokens:.0f} tokens per chip ", end="")
        print(f"({float(crossing_batch.numpy()(**case, **by_line)):.0f} if exchanges were linear)")
        for b in (tokens / 2, tokens, tokens * 2):
            shown(f"{b:4.0f} tokens", [layer(fabric, ep, b) for ep in (inner, outer)])
        return
    print("  pays at no batch; it would from larger experts on:")
    for b in (1, 128, 1024):
        expert = float(
            crossing_expert.numpy()(**case, t_more=lost(b) / 2, n_own=b, x_more=lost(b) / 2 / b)
        )
        for times in (0.5, 1, 2):
            told = f"{b:4} tokens, {times * expert / EXPERT:5.1f} times the bytes"
            shown(told, [layer(fabric, ep, b, times * expert) for ep in (inner, outer)])


def shown(what: str, sides: list[float]) -> None:
    """Both sides of a comparison."""
    inside, across = sides
    word = "inside" if inside < across else "across"
    word = "equal" if isclose(inside, across, rel_tol=1e-6) else word
    print(f"    {what}: {1e6 * inside:7.0f} us inside, {1e6 * across:7.0f} us across: {word}")


print(f"one MoE layer of deepseek-v3: {EXPERTS} experts of {EXPERT / 1e6:.0f} MB, {ACTIVE} a token")
for tokens in (16, 128, 1024):
    table(tokens)
crossing("boards of 8 H800", 8, 64)
crossing("boards of 8 B200", 8, 64)
crossing("racks of 72 GB200", 64, 128)

print("\nfp4 experts, tokens per chip within a time per layer: racks with EP64, boards with EP8")
sides = (("racks of 72 GB200", 64), ("boards of 8 B200", 8))
for limit in (130e-6, 140e-6, 150e-6, 160e-6, 200e-6, 300e-6, 500e-6):
    rack, board = (
        largest(lambda b, side=side: layer(*side, b, EXPERT * FP4), limit) for side in sides
    )
    print(f"  {1e6 * limit:4.0f} us  {rack:5.0f} and {board:5.0f}: {rack / board:5.1f} times")
print("measured for DeepSeek-R1 at 125 tokens/s per user, all of a step: 4.4 times (InferenceX)")
