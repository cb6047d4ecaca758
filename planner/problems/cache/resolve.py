"""A cache question in numbers: the model's cache and arithmetic, the chip, the tiers."""

from dataclasses import dataclass
from datetime import date

from planner.architecture.counts import Sizes, abstract_sizes, sizes
from planner.architecture.huggingface import read_config
from planner.catalogue import listed_prices, models
from planner.catalogue.systems import System
from planner.problems.cache.question import CacheScenario, CacheTier
from planner.protocol.plan import DataSource
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import resolved_system
from planner.scenario.keys.uncertain import LEFT_ASIDE
from planner.text.errors import CatalogueError, FieldError

FORWARD = 2.0  # flop/(param*token): a multiply and an add
HBM = "HBM"
LISTED = "hgx-host-dram"  # which device of a kind stands for it where the catalogue is asked
OF_KIND = {"dram": LISTED, "flash": "micron-9650-30.7tb"}


@dataclass(frozen=True)
class HeldTier:
    """A tier in base units.

    Parameters
    ----------
    price : of a byte [USD/(byte*s)].
    capacity, read_rate : of one device [byte], [byte/s]; None where it is not known.
    shared : chips that share one device.
    price_from : where the price stands, in words.
    """

    name: str
    kind: str
    price: float
    capacity: float | None
    read_rate: float | None
    shared: int
    price_from: str


@dataclass(frozen=True)
class CacheTask:
    """What a scenario asks, in numbers: symbols' values for one chip, tiers, sources.

    `values` are those of the equations of `formulas.economics.tiers` with one chip for the domain:
    what a token costs does not depend on how many read it. HBM is the first of the `tiers`.
    """

    values: dict[str, float]
    prefix: float | None
    tiers: tuple[HeldTier, ...]
    price: listed_prices.Price
    warnings: tuple[str, ...]
    data: tuple[DataSource, ...]


def resolve_cache(question: CacheScenario) -> CacheTask:
    """The numbers of a question; raises InputError for what cannot be looked up."""
    assert isinstance(question.system, str) or not isinstance(question.system, tuple | File)
    machine = resolved_system(question.system)
    if not isinstance(machine, System):
        raise FieldError(("system", "give the chip: {like: hgx-h200, topology: ...}"))
    counted, source, unread = _counted(question)
    chip, dtype = machine.chip, counted.activation_dtype
    if not chip.computes(dtype):
        words = f"{chip.name} does not multiply in {dtype}; give weights: bf16"
        raise FieldError(("weights", words))
    price = _price(question, machine)
    prompt = question.prefix or 1.0
    pairs = sum(c.pairs(prompt) * c.flop_per_pair_prefill for c in counted.caches)
    values = {
        "n_chips": 1.0,
        "p_chip": price.value,
        "D_step": price.value,
        "M": chip.memory,
        "F": chip.peak(dtype),
        "N_active": float(counted.n_active["no_input_embedding"]),
        "c_fwd": FORWARD,
        "e_pf": question.prefill_efficiency,
        "b_kv": counted.kv_bytes_per_token,
        "L_in": prompt,
        # The equation has a mean context of half the prompt; windows and indexers reach less far.
        "a_kv": 2 * pairs / prompt**2 if question.attention else 0.0,
        "t_ans": question.answer,
        "n_share": float(question.sharing),
    }
    if not values["b_kv"]:
        raise FieldError(("model", f"{counted.name} keeps no cache that grows with the context"))
    tiers, notes = _tiers(question)
    hbm = HeldTier(HBM, "hbm", price.value / chip.memory, chip.memory, None, 1, "rent of the chip")
    data = [source, DataSource(f"price of {chip.name}", price.source, price.as_of or None)]
    data += [DataSource(f"tier {each.name}", each.price_from, None) for each in tiers]
    warnings = [*filter(None, [price.warning(date.today())]), *notes, *unread]
    warnings += [LEFT_ASIDE] if question.uncertain is not None else []
    return CacheTask(values, question.prefix, (hbm, *tiers), price, tuple(warnings), tuple(data))


def _counted(question: CacheScenario) -> tuple[Sizes, DataSource, tuple[str, ...]]:
    """The model's sizes in the dtypes asked for, where they stand, and what was not understood."""
    model, weights, kv = question.model, question.weights, question.kv
    name: str | File | None = model.like if isinstance(model, ModelDescription) else model
    if isinstance(model, ModelDescription):
        weights, kv = weights or model.weights, kv or model.kv
        if name is None:
            counted = abstract_sizes(model, weights, kv, model.activations)  # type: ignore[arg-type]
            return counted, DataSource("model", "described in the scenario", None), ()
    assert name is not None
    if isinstance(name, File):
        layers, data = (
            read_config(name.path),
            DataSource(f"model {name.written}", name.written, None),
        )
    else:
        layers, record = models.load(name), models.record(name)
        data = DataSource(f"model {name}", record.source, record.as_of)
    return sizes(layers, weights, kv), data, layers.warnings


def _price(question: CacheScenario, machine: System) -> listed_prices.Price:
    """The rent of a chip: given, given in the system, or the catalogue's."""
    value = question.price if question.price is not None else machine.price
    if value is not None:
        return listed_prices.given_price(value)
    try:
        return listed_prices.default_price(machine.chip.name)
    except CatalogueError as error:
        raise FieldError(("price", str(error))) from None


def _tiers(question: CacheScenario) -> tuple[tuple[HeldTier, ...], list[str]]:
    """The tiers beside HBM, and what to know of them; raises FieldError without any price."""
    if isinstance(question.tiers, str):
        rows = [CacheTier(like=name, shared=8 if kind == "dram" else 1)
                for kind, name in OF_KIND.items()]  # fmt: skip
        left = len(listed_prices.tier_names()) - len(rows)
        notes = [f"one device stands for each kind; planner catalog tiers lists {left} more"]
    else:
        rows, notes = list(question.tiers), []
    tiers = [
        _tier_of(row, place, isinstance(question.tiers, str)) for place, row in enumerate(rows)
    ]
    names = [each.name for each in tiers]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise FieldError(("tiers", f"two tiers are called {repeated}; give them names"))
    return tuple(tiers), notes


def _tier_of(row: CacheTier, place: int, listed: bool) -> HeldTier:
    """One tier: the catalogue's figures, varied as given."""
    device: listed_prices.Tier | None = (
        listed_prices.tier(row.like) if row.like is not None else None
    )
    kind = device.kind if device else "own"
    capacity = row.capacity or (device.capacity if device else None)
    rate = row.read_rate or (device.read_rate if device else None)
    name = row.name or row.like or f"tier {place + 1}"
    if row.price is not None:
        per_byte, whole = row.price
        price = per_byte if per_byte is not None else (whole or 0.0) / (capacity or 1.0)
        return HeldTier(name, kind, price, capacity, rate, row.shared, "given")
    figure = listed_prices.tier_price(kind)
    if figure is None:
        path = "tiers" if listed else f"tiers.{place}.price"
        words = f"no price of {name} is known; give one, such as $0.10/GB/month"
        raise FieldError((path, words))
    source = f"{figure.source} ({figure.as_of})"
    return HeldTier(name, kind, figure.base, capacity, rate, row.shared, source)
