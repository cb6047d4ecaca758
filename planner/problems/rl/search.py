"""The best pools of a question: every layout of a replica, every split of the chips, exactly.

A question of reinforcement learning with system, price, framework and weights looked up.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from planner.architecture.counts import model_sizes
from planner.architecture.huggingface import read_config
from planner.catalogue import models
from planner.catalogue.listed_prices import Price, chip_rent
from planner.catalogue.systems import System
from planner.catalogue.training.training_stacks import RlFramework, rl_framework
from planner.problems import training
from planner.problems.rl.question import RlQuestion
from planner.problems.rl.rollouts import Replica, Rollouts, rollouts
from planner.protocol.plan import DataSource
from planner.scenario.keys.model_keys import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.keys.system_keys import resolved_system
from planner.scenario.keys.uncertain import IGNORED_NOTE
from planner.text.errors import FieldError, error_paths, errors_at
from planner.text.quantities import base_units
from planner.text.wording import degrees


@dataclass(frozen=True)
class ResolvedRl:
    """Everything that does not depend on the pools; `weight_bytes` are sent after learning."""

    question: RlQuestion
    system: System
    price: Price
    framework: RlFramework
    weight_bytes: float
    data: tuple[DataSource, ...]
    warnings: tuple[str, ...]


def resolve_rl(question: RlQuestion) -> ResolvedRl:
    """Resolve a scenario; raises FieldError for unknown or unsupported values."""
    assert not isinstance(question.system, tuple)  # a list is refused as it is read
    system = resolved_system(question.system)
    if isinstance(system, File) or system.file is not None:
        words = "a topology file is not read for learning yet; give a system of the catalogue"
        raise FieldError(("system", words))
    with errors_at("price"):
        price = chip_rent(system.chip.name, question.price, system.price)
    framework = rl_framework(question.framework)
    data = (
        DataSource(f"price of {system.chip.name}", price.source, price.as_of),
        DataSource(f"framework {framework.name}", framework.source, framework.as_of),
    )
    warnings = [price.warning(date.today()) or ""]
    warnings += [IGNORED_NOTE] * (question.uncertain is not None)
    name = question.model.like if isinstance(question.model, ModelDescription) else question.model
    assert name is not None  # the question refuses a model without layers
    model = read_config(name.path) if isinstance(name, File) else models.load(name)
    weights = question.training.state.weights * float(model_sizes(model).n_total)
    return ResolvedRl(question, system, price, framework, weights, data,
                      tuple(filter(None, warnings)))  # fmt: skip


SEPARATE_PARTS = ("dp_exposed", "optimizer", "offload_exposed")  # terms that a forward pass has not
MAX_SPLITS = 2_000  # of the chips that are searched, each with every replica
REPORTED_PATHS = ("model", "system", "price", "chips")  # keys that the scenario has itself


@dataclass(frozen=True)
class TrainerTime:
    """Scoring and learning on a pool: its layout as the training planner has it, and its time."""

    chips: int
    point: Any
    choice: str
    updates: int
    layers: float
    seconds: float


def best_trainer_layout(question: RlQuestion, chips: int) -> TrainerTime | None:
    """Best training layout on `chips` chips; None if no layout fits into memory.

    Raises FieldError for what the training planner refuses.
    """
    from formulas.training.reinforcement import learning_time

    with error_paths(_placed):
        search = training.PROBLEM.search(_training_question(question, chips))
    if not search.feasible:
        return None
    point = search.plan
    terms = point.time_per_step.terms
    layers = point.step_time - sum(terms.get(name, 0.0) for name in SEPARATE_PARTS)
    seconds = learning_time.numpy()(
        n_upd=float(question.work.updates), T_opt=point.step_time,
        n_fwd=float(question.forwards), T_layers=layers,
    )  # fmt: skip
    return TrainerTime(chips, point, search.choice, question.work.updates, layers, float(seconds))


def _training_question(question: RlQuestion, chips: int) -> Any:
    """One optimiser step on a pool as a training question; sequences are packed."""
    pool, work = question.training, question.work
    keys = {
        "problem": "training", "model": question.model, "system": question.system, "chips": chips,
        "work": {"global_batch": f"{work.batch} sequences", "sequence": work.sequence},
        "precision": pool.precision, "state": pool.state, "choose": pool.choose,
        "price": question.price, "profile": pool.profile,
    }  # fmt: skip
    with base_units():
        return training.QUESTION.model_validate(keys)


def _placed(path: str) -> str:
    key = path.partition(".")[0]
    if key == "work":
        return "work"
    return path if key in REPORTED_PATHS else f"training.{path}"


@dataclass(frozen=True)
class Pools:
    """Both pools and the time of a step [s]; on policy they are the same chips."""

    resolution: ResolvedRl
    rollouts: Rollouts
    learning: TrainerTime
    sent: float
    seconds: float

    @property
    def choice(self) -> str:
        """The pools in short words."""
        replica = self.rollouts.replica
        writes = f"{self.rollouts.chips} generate ({degrees(replica.pp, replica.tp, 1, 1)})"
        return f"{writes}, {self.learning.chips} train ({self.learning.choice})"


@dataclass
class PoolTally:
    """Search result: number of pool pairs seen and fitting, and the timed pairs, fastest first."""

    seen: int = 0
    fitting: int = 0
    ranked: list[Pools] = field(default_factory=list)


def search_pools(resolution: ResolvedRl, *, every: bool = False) -> PoolTally:
    """Every layout of a replica with every split of the chips.

    A split whose rollouts alone take longer than the best step is not laid out for learning, unless
    `every` one is asked for.
    Raises FieldError for what either planner refuses, and where no split is left.
    """
    question, framework = resolution.question, resolution.framework
    tally, learned = PoolTally(), dict[int, TrainerTime | None]()
    refused: list[FieldError] = []
    best = math.inf
    replicas = [replica for replica in _replicas(question) if replica.chips <= question.chips]
    for writing, learns in _splits(question, resolution.system):
        for replica in replicas:
            tally.seen += 1
            writes = rollouts(replica, writing)
            if writes is None:
                continue
            alone = framework.rollouts * writes.seconds
            if alone >= best and not every:
                tally.fitting += 1
                continue
            if learns not in learned:
                learned[learns] = _learned(question, learns, refused)
            learner = learned[learns]
            if learner is None:
                continue
            tally.fitting += 1
            pools = _timed(resolution, writes, learner)
            tally.ranked.append(pools)
            best = min(best, pools.seconds)
    if not tally.ranked and refused and len(refused) == len(learned):
        raise refused[0]
    tally.ranked.sort(key=lambda pools: pools.seconds)
    return tally


def require_pools(resolution: ResolvedRl) -> None:
    """Raise FieldError as a search would: if a planner refuses its pool, or without a split."""
    question = resolution.question
    for replica in _replicas(question):
        if replica.chips <= question.chips:
            replica.check()
    refused = []
    for chips in {learns for _, learns in _splits(question, resolution.system)}:
        try:
            with error_paths(_placed):
                training.PROBLEM.check(_training_question(question, chips))
            return
        except FieldError as error:
            refused.append(error)
    raise refused[0]


def _replicas(question: RlQuestion) -> Iterator[Replica]:
    pool = question.rollout
    powers = [2**k for k in range(question.chips.bit_length()) if 2**k <= question.chips]
    for tp in pool.tp or powers:
        for pp in pool.pp or (1,):
            yield Replica(question, tp, pp)


def _splits(question: RlQuestion, system: System) -> Iterator[tuple[int, int]]:
    """Chips that write and chips that learn, the most that write first."""
    chips = question.chips
    if question.policy == "on":
        yield chips, chips
        return
    unit = question.unit or math.gcd(chips, system.chips_per_domain or chips)
    unit = unit if unit < chips else 1
    every = range(unit, chips, unit)
    chosen = every if question.split is None else [n for n in question.split if n in every]
    if not chosen:
        words = f"both pools have multiples of {unit} chips (unit); of {chips} none is left"
        raise FieldError(("split", words))
    if len(chosen) > MAX_SPLITS:
        words = f"{chips:,} chips in units of {unit} are {len(chosen):,} splits"
        remedy = f"what would work: unit: {unit * -(-len(chosen) // MAX_SPLITS)}, or split: N"
        raise FieldError(("chips", f"{words}, more than the {MAX_SPLITS:,} searched; {remedy}"))
    for writing in reversed(chosen):
        yield writing, chips - writing


def _timed(resolution: ResolvedRl, writes: Rollouts, learner: TrainerTime) -> Pools:
    framework, sent = resolution.framework, _sent(resolution, writes)
    numbers = framework.rollouts, framework.learning, framework.beside
    times = np.array([[writes.seconds, learner.seconds, sent]])
    (seconds,) = step_function(resolution.question)(times, numbers)
    return Pools(resolution, writes, learner, sent, float(seconds))


def step_equation(question: RlQuestion) -> str:
    """The equation of a step in `formulas.training.reinforcement`."""
    if question.policy == "on":
        return "step_in_turn"
    return "step_in_flight" if question.lag > 1 else "step_side_by_side"


def _sent(resolution: ResolvedRl, writes: Rollouts) -> float:
    """Time to transfer the new weights to every replica [s]."""
    from formulas.training.reinforcement import weight_transfer

    system = resolution.system
    rate = system.scale_out or system.scale_up or system.chip.memory_bandwidth
    return float(weight_transfer.numpy()(
        W_sent=resolution.weight_bytes, g_roll=float(writes.replica.chips), R_sent=rate
    ))  # fmt: skip


def step_function(
    question: RlQuestion,
) -> Callable[[np.ndarray, tuple[float, float, float]], np.ndarray]:
    """Function from pool times (n, 3), two factors and an extra time [s] to step times (n,) [s]."""
    from formulas.training import reinforcement as equations

    function = getattr(equations, step_equation(question)).numpy()

    def step(pools: np.ndarray, numbers: tuple[float, float, float]) -> np.ndarray:
        names = ("T_roll", "T_learn", "T_synced", "x_roll", "x_learn", "T_beside")
        values = dict(zip(names, (*pools.T, *numbers), strict=True))
        return np.asarray(function(**{name: values[name] for name in function.kernel.names}))

    return step


def _learned(question: RlQuestion, chips: int, refused: list[FieldError]) -> TrainerTime | None:
    try:
        return best_trainer_layout(question, chips)
    except FieldError as error:
        refused.append(error)
        return None


def min_step_seconds(question: RlQuestion) -> float:
    """The arithmetic of learning and scoring at the peak of all chips: no step is shorter [s]."""
    learner = best_trainer_layout(question, question.chips)
    if learner is None:
        return 0.0
    point = learner.point
    done = point.mfu * point.step_time * point.chips_used / question.chips
    passes = 1 + question.forwards / 3
    return float(passes * learner.updates * done)
