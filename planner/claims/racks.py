"""The physical column of C14 to C28: real racks, networks, laws and deployments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.catalogue.scaling_laws import law
from planner.catalogue.systems import system
from planner.claims.figure import PhysicalFigure, chip_case, figure_of, model_case, record

V3 = "deepseek-v3"
SHEET = "data sheets"
DRAINS = ("a100", "h100", "h200", "b200", "b300", "gb200", "gb300", "rubin")
LAWS = ("clark-2022-s-base", "clark-2022-rl-r", "clark-2022-hash", "clark-2022-refit")
FAST_RACKS = ("hgx-h100", "gb200-nvl72", "gb300-nvl72")
BATCH = 2400.0
FP8_OUT, BF16_BACK = 1.0, 2.0


def drains() -> tuple[PhysicalFigure, ...]:
    """C14: memory over bandwidth."""
    return tuple(
        figure_of(name, "drain_time", chip_case(name, "bf16"), SHEET, "ms") for name in DRAINS
    )


def floors() -> tuple[PhysicalFigure, ...]:
    """C15: the weights' share of the memory, which is the shortest step over the drain time."""
    return tuple(
        figure_of(f"{V3} on {count} {name}", "floor_over_drain",
                  chip_case(name, "fp8", count) | model_case(V3), SHEET, "%")
        for name, count in (("h200", 8), ("gb200", 72))
    )  # fmt: skip


def routed_returns() -> tuple[PhysicalFigure, ...]:
    """C18: effective parameters by each fit, and the exponent that S-BASE's own counts give."""
    experts, active, total, dense = record("clark-models", "experts", "active", "total", "dense")
    case = {"N_active": 3.7e8, "one_param": 1.0, "n_experts": experts}
    figures = []
    for name in LAWS:
        values = case | law(name).values
        expert = {"E_hat": figure_of("", "saturated_experts", values, name).value or 0.0}
        figures.append(
            figure_of(
                f"{name}", "effective_parameters", values | expert, name, "billion parameters"
            )
        )
    gained = figure_of(
        "dense model of about the same loss over active",
        "parameter_gain",
        {"N_eff": dense, "N_active": active},
        "clark-models",
    )
    resident = figure_of(
        "total over active", "sparsity", {"N_total": total, "N_active": active}, "clark-models"
    )
    best = (figures[0].value or 0.0) / 0.37
    exponent = figure_of(
        "exponent, S-BASE fit",
        "sparsity_return",
        {"x_gain": best, "sigma": resident.value or 0.0},
        LAWS[0],
    )
    return (*figures, gained, resident, exponent)  # fmt: skip


def domains() -> tuple[PhysicalFigure, ...]:
    """C19: chips of one fast domain, as packages."""
    (packages,) = record("rubin-ultra", "packages")
    figures = [
        PhysicalFigure(name, float(system(name).chips_per_domain or 0), "packages", "", SHEET)
        for name in ("hgx-h100", "gb200-nvl72", "vera-rubin-nvl72")
    ]
    return (*figures, PhysicalFigure("rubin ultra", packages, "packages", "", "rubin-ultra"))


def expert_traffic() -> tuple[PhysicalFigure, ...]:
    """C20: DeepSeek-V3's expert traffic in a rack of 72, and what 2400 sequences take."""
    case = model_case(V3) | {
        "b_disp": FP8_OUT, "b_comb": BF16_BACK, "n_group": 72.0, "B": BATCH, "m_pos": 1.0,
    }  # fmt: skip
    rack = system("gb200-nvl72")
    rates = (("scale-up", rack.scale_up), ("scale-out", rack.scale_out))
    return (
        figure_of("bytes per token and layer", "expert_layer_bytes", case, V3, "kB"),
        figure_of("bytes per token", "expert_bytes", case, V3, "MB"),
        *(
            figure_of(f"2400 sequences, {what} of gb200-nvl72", "expert_exchange_time",
                      case | {"r_up": rate or 0.0}, f"{V3}; gb200-nvl72", "ms")
            for what, rate in rates
        ),
    )  # fmt: skip


def slowdowns() -> tuple[PhysicalFigure, ...]:
    """C21: how much slower the network out of the rack is, and the exchange over two racks."""
    figures = []
    for name in FAST_RACKS:
        rack = system(name)
        case = {"r_up": rack.scale_up or 0.0, "r_out": rack.scale_out or 0.0, "n_span": 2.0}
        figures.append(figure_of(name, "slowdown", case, name))
        figures.append(figure_of(f"{name}, over two domains", "scale_out_penalty", case, name))
    return tuple(figures)


def implied_batches() -> tuple[PhysicalFigure, ...]:
    """C22: the batch at which DeepSeek-V3 on H100 has an output five times its input price."""
    case = chip_case("h100", "fp8") | model_case(V3) | {"rho_price": 5.0, "L_ctx": 0.0}
    return (figure_of(f"{V3} on h100, ratio of five, short context", "batch_for_ratio", case,
                      SHEET),)  # fmt: skip


def copies() -> tuple[PhysicalFigure, ...]:
    """C24: weights on each of DeepSeek's 144 chips, with its copies and without."""
    chips, resident = record("deepseek-service", "chips", "experts_held")
    case = model_case(V3)
    case |= {
        "n_chips": chips,
        "B": 0.0,
        "L_ctx": 0.0,
        "n_copies": chips,
        "r_copies": resident / case["n_experts"],
    }
    once = case | {"n_copies": 1.0, "r_copies": 1.0}
    return tuple(
        figure_of(what, "memory_with_copies", values, "deepseek-service", "GB")
        for what, values in ((f"{V3} as deployed on 144", case), ("divided evenly", once))
    )  # fmt: skip


def weight_reads() -> tuple[PhysicalFigure, ...]:
    """C26: reading DeepSeek-V3 once, by a domain of 8 and one of 72."""
    figures = []
    for name in ("hgx-h100", "gb200-nvl72"):
        rack = system(name)
        case = chip_case(rack.chip.name, "fp8") | model_case(V3)
        case |= {"n_domain": float(rack.chips_per_domain or 0)}
        figures.append(figure_of(f"{V3} on {name}", "domain_weight_time", case, SHEET, "ms"))
    return tuple(figures)


def shipments() -> tuple[PhysicalFigure, ...]:
    """C27: moving 2400 vectors of DeepSeek-V3 in BF16, over every port of a rack and over one."""
    rate = system("gb200-nvl72").scale_out or 0.0
    case = model_case(V3) | {"B_micro": BATCH, "b_act": BF16_BACK, "r_hop": rate, "m_pos": 1.0}
    return tuple(
        figure_of(f"2400 vectors over {ports} port{'s' * (ports > 1)}", "shipping_time",
                  case | {"n_nic": float(ports)}, f"{V3}; gb200-nvl72", "ms")
        for ports in (72, 1)
    )  # fmt: skip


def rack_memories() -> tuple[PhysicalFigure, ...]:
    """C28: memory of racks of 72."""
    return tuple(
        figure_of(name, "rack_memory", chip_case(system(name).chip.name, "fp8")
                  | {"n_domain": 72.0}, name, "TB")
        for name in ("gb200-nvl72", "gb300-nvl72")
    )  # fmt: skip


FIGURES: Mapping[str, Callable[[], tuple[PhysicalFigure, ...]]] = {
    "C14": drains,
    "C15": floors,
    "C18": routed_returns,
    "C19": domains,
    "C20": expert_traffic,
    "C21": slowdowns,
    "C22": implied_batches,
    "C24": copies,
    "C26": weight_reads,
    "C27": shipments,
    "C28": rack_memories,
}
