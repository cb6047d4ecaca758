"""One measurement of serving in the catalogue's words, or the reason why it has no prediction.

Beside it the network between its chips, and the profile and the adjustments that hold for it.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property

from planner.architecture.counts import ModelSizes
from planner.catalogue import chips as cards
from planner.catalogue.chips import Chip
from planner.catalogue.coefficient_spread import RunContext
from planner.catalogue.figures import month_count
from planner.catalogue.profile import Profile, profile
from planner.measurements.published_names import aliases
from topologies import Machine, TopologyError, machine

ONE_CHIP = {"tp": 1, "pp": 1, "dp_attention": 1, "ep": 1, "tp_expert": 1}
AXES = {"TP": "tp", "PP": "pp", "DP": "dp_attention", "EP": "ep"}


@dataclass(frozen=True)
class NotComputed:
    """A row without a prediction and why; `quantity` where only one of its values has none."""

    id: str
    reason: str
    quantity: str = ""


@dataclass(frozen=True)
class RunPool:
    """Pool of the two of a disaggregated run: `workers` equal workers of `chips` each.

    `low` and `high` hold the number of workers of four in five such runs; they equal `workers`
    where the table gives it, or the script that started them (`stated`). A worker that decodes runs
    `most` requests at once, 0 where its memory alone limits them.
    """

    layout: Mapping[str, int]
    chips: int
    workers: int
    low: int
    high: int
    stated: bool
    most: float = 0.0


@dataclass(frozen=True)
class RunPools:
    """The two pools of a disaggregated run, and how many requests were in flight over both."""

    prefill: RunPool
    decode: RunPool
    concurrency: float


@dataclass(frozen=True)
class Measurement:
    """One measured time of one replica.

    `quantity` is `step` (one decode step, or per token under speculation), `ttft` (the whole
    batch's prompts), `e2e` (a static batch, prompts and all steps) or `tpot` (mean under load at
    a concurrency); `seconds` its value [s]. `batch` are sequences over the replica, lengths are
    in tokens; `layout` holds ways by axis, None where it was not understood. `drafts` is the
    number of speculated tokens per step, `speculated` whether any were, None where the table does
    not say; `looped` says that `batch` requests were kept in flight by a closed loop, prompts
    included. `leanest` are the sizes in the narrowest formats that the table leaves possible, for
    the bound; None where it leaves no choice. `group` names model, chip and engine.

    With `pools` the run was disaggregated: `layout`, `chips` and `batch` are those of one worker
    of the pool that makes the quantity (decode for `tpot`, whose steps hold no prompt; prefill for
    `ttft`, where `batch` prompts wait or run at a worker).

    `repeats` is the id of an earlier row that is the same run, empty for a first one: a repeat is
    predicted, but counts neither in a fit nor in a score. `assumed` says what was taken for a
    number that the table does not give, empty where it gives all.

    `as_of` is the day of the run, empty where nobody says. Of a closed loop, `even` says that all
    requests have the same lengths, `mixed` that an engine which reads prompts before it decodes on
    was told to share their steps, and its engine looked for new requests every `poll` decode
    steps and held them back for `hold`. `by_sequence` says that chips hold the caches of sequences
    of their own, where they would hold copies of the same KV heads. Of `halves` above one, two
    half-batches of every pass overlapped. `chunk` are the prompt tokens that a pass reads where the
    run's script says so, 0 where the engine's own number holds [token]; `most` the requests that a
    replica runs at once, 0 where its memory alone limits them.
    """

    id: str
    source: str
    engine: str
    model: str
    sizes: ModelSizes
    chip: Chip
    machine: str | None
    chips: int
    layout: Mapping[str, int] | None
    batch: float
    prompt: float
    output: float
    context: float
    quantity: str = ""
    seconds: float = 0.0
    quality: str = ""
    drafts: int = 0
    precision: str = ""
    version: str = ""
    looped: bool = False
    leanest: ModelSizes | None = None
    pools: RunPools | None = None
    speculated: bool | None = None
    repeats: str = ""
    assumed: str = ""
    as_of: str = ""
    even: bool = False
    mixed: bool = False
    poll: float = 0.0
    hold: float = 0.0
    by_sequence: bool = False
    halves: int = 1
    chunk: float = 0.0
    most: float = 0.0

    @property
    def chip_name(self) -> str:
        """Catalogue name of the chip."""
        return self.chip.name

    @property
    def pooled(self) -> bool:
        """True if prefill and decode ran on different chips."""
        return self.pools is not None

    @property
    def group(self) -> str:
        """Model, chip and engine: rows of one group are never split between fit and test."""
        return f"{self.model} {self.chip.name} {self.engine}"


@dataclass(frozen=True)
class CollectiveRow:
    """One measured time of a collective.

    `size` counts as nccl-tests does; of dispatch and combine it is what a chip would send if its
    own group were like the others [byte]. `sweep` marks the sweeps that profiles are fitted on.
    """

    chip: str
    operation: str
    algorithm: str
    n: int
    nodes: int
    size: float
    seconds: float
    system: str
    sweep: bool
    source: str


@dataclass(frozen=True)
class Readings:
    """Content of a file of measurements: rows, and refused values with the reason.

    `columns` names the column set. Every data line of the file is accounted for: its number is the
    id of at least one entry of `rows` or `refused`. `lines` counts the data lines. `models` are
    the configurations that were read for models that the catalogue does not hold.
    """

    columns: str
    rows: tuple[Measurement, ...]
    refused: tuple[NotComputed, ...]
    lines: int
    models: Mapping[str, str] = field(default_factory=dict)

    def reason(self, line: str, *quantities: str) -> str:
        """Reason why values of a line were refused: all values, or those of some quantities."""
        refused = self._refused_by_line.get(line, ())
        reasons = [x.reason for x in refused if not quantities or x.quantity in ("", *quantities)]
        return "; ".join(dict.fromkeys(reasons))

    @cached_property
    def _refused_by_line(self) -> Mapping[str, list[NotComputed]]:
        by_line: dict[str, list[NotComputed]] = defaultdict(list)
        for value in self.refused:
            by_line[value.id].append(value)
        return by_line


def as_layout(text: str, chips: int, experts: int) -> dict[str, int] | None:
    """Ways by axis of a free-text layout such as TP8, TP8EP4, EP32/DP32, DP8(attn)+EP8 or DEP4.

    Expert ways alone over all chips mean copies of attention, as wide expert parallelism is run.
    PaLM's WS-2D cuts every matrix over all chips. None where the text names no axis or does not
    multiply to the number of chips.
    """
    text = text.split(",", maxsplit=1)[0].strip()
    if text == "single":
        return dict(ONE_CHIP)
    if text.startswith("layer-split"):
        return {**ONE_CHIP, "pp": chips}
    if text.startswith("WS-2D"):
        return {**ONE_CHIP, "tp": chips}
    joined = re.fullmatch(r"(D|T)EP(\d+)", text)
    if joined:
        ways = {"dp_attention" if joined[1] == "D" else "tp": int(joined[2]), "ep": int(joined[2])}
    else:
        ways = {AXES[axis]: int(n) for axis, n in re.findall(r"(TP|PP|DP|EP)(\d+)", text)}
        if "CP" in text or not ways:
            return None
        if set(ways) == {"ep"} and ways["ep"] == chips:
            ways["dp_attention"] = chips
    layout = {**ONE_CHIP, **ways}
    stage = layout["tp"] * layout["dp_attention"]
    if stage * layout["pp"] != chips or stage % layout["ep"]:
        return None
    return {**layout, "tp_expert": stage // layout["ep"] if experts else 1}


SINGLE_CHIP_RATE = 1e21  # byte/s inside a group of one chip


@cache
def network_for_chips(chip: str, name: str | None, chips: int) -> Machine | None:
    """Return the machine that joins `chips` chips of a kind; None if no link is known.

    Args:
        chip: catalogue name of the chip.
        name: the machine that usually joins such chips, None for none.
        chips: chips of one replica or worker.

    Cards without a machine of their own, and groups larger than theirs, meet on the PCI Express of
    their host; a single chip meets nobody.
    """
    if chips == 1:
        return Machine.from_figures("alone", 1, SINGLE_CHIP_RATE)
    if name is not None:
        joined = machine(name)
        with suppress(TopologyError):  # a torus may have no slice of this number of chips
            joined = machine(name, chips) if joined.kind == "torus" else joined
            if joined.scale_out is not None or chips <= joined.chips_per_domain:
                return joined
    link = cards.chip(chip).pcie if chip in cards.chip_names() else None
    return None if link is None else Machine.from_figures("pcie", chips, link)


def skip_reason(row: Measurement) -> str:
    """Reason why no step of a row can be estimated; empty string if it can."""
    if row.layout is None:
        return "the layout is not understood"
    if network_for_chips(row.chip.name, row.machine, row.chips) is None:
        return f"no network is known that joins {row.chips} {row.chip.name}"
    return ""


DEFAULT_AGE_MONTHS = 3.0  # months before the profile's date, if the row's date is unknown
RUNS, STEADY_PROFILE = "engines-2026", "steady-2024"
RECENT_ENGINE_YEAR = 2025  # engines of this year and later are those of the runs


def engine_name(row: Measurement) -> str:
    """The engine without the year that some tables add."""
    name, _, year = row.engine.rpartition("-")
    return name if name and year.isdigit() else row.engine


def is_new(row: Measurement) -> bool:
    """True if the engine name ends in a year from RECENT_ENGINE_YEAR on."""
    year = row.engine.rpartition("-")[2]
    return year.isdigit() and int(year) >= RECENT_ENGINE_YEAR


def row_context(row: Measurement, as_of: str) -> RunContext:
    """The row's place as seen by a profile of a date."""
    engine = engine_name(row)
    day = row.as_of or aliases().released.get(f"{engine} {row.version}", "")
    return RunContext.of(
        row.sizes,
        row.chip,
        engine=engine,
        version=row.version,
        months=month_count(day, as_of) if day else DEFAULT_AGE_MONTHS,
        pooled=row.pooled,
        # No table gives the queueing time in front of a prefill pool.
        assumed=bool(row.assumed) or (row.pooled and row.quantity == "ttft"),
    )


def row_profile(row: Measurement, wanted: str) -> Profile:
    """The profile that speaks for a row.

    Raises CatalogueError if there is no such profile.

    Args:
        wanted: a profile's name, or `auto`: that of whole engines for runs and for engines of 2025
            and later, that of steady batches for other static rows.
    """
    if wanted != "auto":
        return profile(wanted)
    return profile(RUNS if row.looped or is_new(row) else STEADY_PROFILE)
