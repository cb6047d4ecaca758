"""Workload of the machine: lengths, demand, promises, and the choices left open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import NormalDist, linear_regression
from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.scenario.keys import fields
from planner.scenario.keys.fields import Faults, ListKey, Quantity, Record, Seconds
from planner.text.errors import QuantityError, quote
from planner.text.quantities import has_unit, parse

MAX_LENGTH_LOG_SD = 5.0  # standard deviation of the logarithm of a length
DISPATCH = ("random", "prefix")  # how requests find a replica and a rank
MAX_WORD = "max"  # a demand: as much as can be served


@dataclass(frozen=True)
class Distribution:
    """Lengths of prompts or answers [token]: mean and coefficient of variation.

    Given as a number (cv 0), `{mean, cv}`, or `{quantiles: {p50: 3000, p90: 9000}}`, which are
    fitted by a log-normal (least squares of the logarithms on the normal quantiles).
    """

    mean: float
    cv: float = 0.0
    quantiles: tuple[tuple[float, float], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Demand:
    """Arrivals: `value` requests per second, or output tokens per second (`per` says which).

    Infinitely many stand for as many as can be served.
    """

    value: float
    per: str  # "request" | "token"

    def requests_per_s(self, output_tokens: float) -> float:
        """Requests per second at this mean number of output tokens [seq/s]."""
        return self.value if self.per == "request" else self.value / output_tokens


@dataclass(frozen=True)
class _Lengths(fields.FieldType):
    least: float = 1.0

    def schema(self) -> dict[str, object]:
        number = Quantity("tokens").schema()
        share = {"type": "number", "minimum": 0}
        moments = fields.mapping_schema({"mean": number, "cv": share}, ["mean"])
        quantiles = {"quantiles": {"type": "object", "additionalProperties": number}}
        return {"oneOf": [number, moments, fields.mapping_schema(quantiles, ["quantiles"])]}

    def read(self, value: object) -> Distribution:
        if isinstance(value, Distribution):
            return value
        if not isinstance(value, dict):
            return Distribution(Quantity("tokens", least=self.least).read(value))
        readers: dict[str, Callable[[object], Any]] = {
            "mean": Quantity("tokens", least=self.least).read,
            "cv": Quantity("number", zero=True, at_most=100.0).read,
            "quantiles": _quantiles,
        }
        faults: Faults = [((x,), fields.unknown_key(x, readers)) for x in value if x not in readers]
        if "quantiles" in value and ("mean" in value or "cv" in value):
            faults.append((("quantiles",), "give either mean and cv, or quantiles"))
        elif "quantiles" not in value and "mean" not in value:
            faults.append((("mean",), "missing required key 'mean'"))
        items = [(key, value[key]) for key in readers if key in value]
        read = fields.read_items(items, lambda key, item: readers[key](item), faults)
        if faults:
            raise fields.Refusals(faults)
        if "quantiles" not in read:
            return Distribution(**read)
        try:
            # Mean and coefficient of variation of the log-normal through the quantiles.
            points = read["quantiles"]
            normal = [NormalDist().inv_cdf(probability) for probability, _ in points]
            sigma, height = linear_regression(normal, [math.log(tokens) for _, tokens in points])
            if sigma > MAX_LENGTH_LOG_SD:
                raise ValueError("these quantiles are too wide for a distribution of lengths")
            mean = math.exp(height + sigma**2 / 2)
            return Distribution(mean, math.sqrt(math.expm1(sigma**2)), points)
        except ValueError as error:
            raise fields.Refusals([(("quantiles",), error)]) from None


Lengths = Annotated[Distribution, _Lengths()]


@dataclass(frozen=True)
class _DemandKind(fields.FieldType):
    def schema(self) -> dict[str, object]:
        examples = ["10 requests/s", "5000 tokens/s", MAX_WORD]
        return {"type": ["string", "number"], "examples": examples}

    def read(self, value: object) -> Demand:
        if isinstance(value, Demand):
            return value
        if value == MAX_WORD:
            return Demand(math.inf, "request")
        try:
            return Demand(Quantity("request_rate").read(value), "request")
        except QuantityError as error:
            try:
                tokens = parse(value, "token_rate") if has_unit(value) else None
            except QuantityError:
                tokens = None
            if tokens is None:
                raise ValueError(
                    f'{error}; output tokens such as "5000 tokens/s" are read too, and '
                    f"{MAX_WORD}: the largest load that the chips serve"
                ) from None
        if tokens == 0:
            raise ValueError(f"expected a value above zero, got {quote(value)}")
        return Demand(tokens, "token")


class Workload(Record):
    """Requests: how long, how many."""

    input_tokens: Lengths = Field(description="prompt length [token], a number or a distribution")
    output_tokens: Lengths = Field(description="answer length [token], a number or a distribution")
    demand: Annotated[Demand, _DemandKind()] | None = Field(
        None,
        description="arrivals, requests/s or output tokens/s, or max: as many as can be served; "
        "null: one unit, no fleet",
    )
    utilisation: Annotated[float, Quantity("share", below=1.0)] | None = None
    """share of its most that the busiest pool serves, requests at random; in place of a demand"""
    spare_replicas: Annotated[int, fields.IntegerField(least=0)] = 0
    """replicas that may be down while the promises hold: 1 for N+1"""
    headroom: Annotated[float, Quantity("share", zero=True, below=1.0)] = 0.0
    """share of the sequence slots kept free under demand, 0 <= x < 1"""
    concurrency: fields.Count | None = None
    """closed loop: this many requests always in flight"""
    routing_skew: Annotated[float, Quantity("number", least=1.0, at_most=1000.0)] = Field(
        1.0,
        description="tokens of the fullest expert rank over those that even routing gives it, "
        "copies of experts included: 1 / balancedness",
    )
    cached_input: Annotated[float, Quantity("share", zero=True, below=1.0)] = 0.0
    """share of the input that a prefix cache serves where it has room, 0 <= x < 1"""
    conversations: fields.Count | None = None
    """conversations at a time whose contexts the prefix cache must keep; their room is counted"""
    dispatch: Annotated[str, fields.EnumKey(DISPATCH)] = "random"
    """prefix: requests go where their prefix was read, and each rank keeps its part of them"""

    @field_validator("spare_replicas", "headroom")
    @classmethod
    def _of_a_fleet(cls, value: float, info: ValidationInfo) -> float:
        if value and info.field_name == "headroom" and info.data.get("utilisation") is not None:
            raise ValueError("utilisation says already how much is used; leave one of the two out")
        if value and info.data.get("demand") is info.data.get("utilisation") is None:
            raise ValueError("give demand with it: without arrivals there is no load to leave room")
        return value

    @field_validator("utilisation")
    @classmethod
    def _one_load(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("demand") is not None:
            raise ValueError("a demand says how busy pools are; give utilisation in its place")
        return value

    @field_validator("conversations")
    @classmethod
    def _of_a_cache(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and not info.data.get("cached_input"):
            raise ValueError("give cached_input with it: it counts only with a prefix cache")
        return value

    @property
    def arrivals(self) -> Demand | None:
        """Random arrivals: the demand, or with a utilisation the maximum that can be served."""
        return self.demand if self.utilisation is None else Demand(math.inf, "request")

    @field_validator("concurrency")
    @classmethod
    def _one_loop(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("utilisation") is not None:
            raise ValueError("give utilisation (an open loop) or concurrency (a closed loop)")
        if value is not None and info.data.get("demand") is not None:
            raise ValueError("give demand (an open loop) or concurrency (a closed loop), not both")
        return value


class Limits(Record):
    """Limits of the site; each is optional."""

    power: Annotated[float, Quantity("power")] | None = None
    """of all chips paid, cooling included [J/s]"""


class Promises(Record):
    """Service-level promises; each is optional."""

    ttft: Seconds | None = Field(None, description="time to first token [s]")
    ttft_p95: Seconds | None = None
    """time to first token that 5 % of the requests exceed, under demand or concurrency [s]"""
    ttft_p99: Seconds | None = None
    """time to first token that 1 % of the requests exceed, under demand or concurrency [s]"""
    tpot: Seconds | None = Field(None, description="mean time per output token [s]")
    e2e: Seconds | None = Field(None, description="whole request, ttft + (output - 1)*tpot [s]")
    cache_fits: Annotated[float, Quantity("share", zero=True, below=1.0)] | None = None
    """share of time in which caches of random arrivals have room; 0.99 under demand when absent"""
    tokens_per_s_per_user: Annotated[float, Quantity("token_rate")] | None = None
    """speed of one sequence [token/s], the inverse of tpot"""
    chance: Annotated[float, Quantity("share", below=1.0)] | None = None
    """chance with which each promised time holds; when absent 50 %, or 70 % where no run of such a
    model, chip and engine was measured"""

    @field_validator("tokens_per_s_per_user")
    @classmethod
    def _one_speed(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("tpot") is not None:
            raise ValueError("give tpot or its inverse tokens_per_s_per_user, not both")
        return value

    @property
    def slowest_tpot(self) -> float | None:
        """The promised time per output token, however it was given [s]."""
        if self.tokens_per_s_per_user is not None:
            return 1 / self.tokens_per_s_per_user
        return self.tpot


def _quantiles(value: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, Mapping) or len(value) < 2:
        raise ValueError(
            f"expected at least two quantiles such as {{p50: 3000, p90: 9000}}, got {quote(value)}"
        )
    faults: Faults = []
    length = Quantity("tokens", least=1.0)
    read = fields.read_items(
        value.items(), lambda key, tokens: (_probability(key), length.read(tokens)), faults
    )
    points = sorted(read.values())
    for (low, shorter), (high, longer) in pairwise(points):
        if low == high or shorter > longer:
            faults.append(((), "expected lengths that grow with distinct probabilities"))
            break
    return fields.check_faults(tuple(points), faults)


def _probability(key: object) -> float:
    text = str(key)[:20]
    try:
        value = float(text[1:]) / 100 if text[:1] in "pP" else parse(text, "share")
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise ValueError(f"expected a quantile such as p50 or 0.5, got {quote(key)}")
    return value


class _Axes(Record):
    """The sizes of a layout."""

    tp: ListKey | None = Field(None, description="chips that shard attention")
    pp: ListKey | None = Field(None, description="pipeline stages")
    cp: ListKey | None = None
    """parts of a context; tried for long prompts when absent, else 1"""
    dcp: ListKey | None = Field(None, description="chips of tp that share contexts by tokens")
    dp_attention: ListKey | None = Field(None, description="copies of attention in a replica")
    ep: ListKey | None = Field(None, description="groups the experts are spread over")
    tp_expert: ListKey | None = Field(None, description="chips that shard one expert")
    overlap: fields.Overlaps | None = None
    """whether two half-batches of a pass work and send in turn; both tried when absent"""


class PoolChoice(_Axes):
    """Limits on the layout of one of two pools; absent limits default to those of the question."""

    replicas: ListKey | None = Field(None, description="replicas of this pool")


class Choose(_Axes):
    """Limits on, or values of, the choices; absent choices are free."""

    replicas: ListKey | None = Field(None, description="independent copies of the model")
    redundant_experts: fields.Copies | None = None
    """routed experts of a layer that are held once more; 0 when absent"""
    batch: ListKey | None = Field(None, description="sequences in flight over all replicas")
    mode: fields.Modes | None = Field(None, description="one pool, two pools, or one phase alone")
    weights: fields.Dtypes | None = Field(None, description="dtype of the weights")
    kv: fields.Dtypes | None = Field(None, description="dtype of the key-value cache")
    activations: fields.Dtypes | None = Field(None, description="dtype of the activations")
    chunk: ListKey | None = Field(None, description="tokens of prompt per prefill chunk [token]")
    prefill: PoolChoice | None = Field(None, description="of the pool that prefills, if two")
    decode: PoolChoice | None = Field(None, description="of the pool that decodes, if two")


class PoolLayoutInUse(Record):
    """The layout of a pool in use; of a model without experts ep and tp_expert are 1."""

    tp: fields.Count = 1
    pp: fields.Count = 1
    cp: fields.Count = 1
    dcp: fields.Count = 1
    dp_attention: fields.Count = 1
    ep: fields.Count | None = None
    tp_expert: fields.Count | None = None
    replicas: fields.Count | None = None
    overlap: Annotated[str, fields.EnumKey(fields.OVERLAPS)] = "none"

    @model_validator(mode="after")
    def _experts_fill_the_stage(self) -> Self:
        if self.ep is not None and self.tp_expert is not None:
            chips = self.tp * self.dp_attention
            if self.ep * self.tp_expert not in (1, chips):
                raise ValueError(
                    f"ep * tp_expert = {self.ep * self.tp_expert} must equal "
                    f"tp * dp_attention = {chips}: the experts re-partition the same chips"
                )
        return self


class Current(PoolLayoutInUse):
    """The layout in use today, evaluated for comparison with the chosen layout."""

    redundant_experts: Annotated[int, fields.IntegerField(least=0)] = 0
    batch: fields.Count | None = Field(None, description="sequences in flight over all replicas")
    batch_per_replica: fields.Count | None = Field(None, description="the most that one holds")
    mode: Annotated[str, fields.EnumKey(fields.MODES)] | None = None
    prefill: PoolLayoutInUse | None = Field(None, description="of the pool that prefills, if two")
    decode: PoolLayoutInUse | None = Field(None, description="of the pool that decodes, if two")
    chip: str | None = Field(None, description="which of the systems it runs on, by its chip")
    weights: fields.Dtype | None = None
    kv: fields.Dtype | None = None
    activations: fields.Dtype | None = None
    chunk: fields.Count | None = None

    @model_validator(mode="after")
    def _one_pool_or_two(self) -> Self:
        axes = PoolLayoutInUse.model_fields.keys() & self.model_fields_set
        axes |= self.model_fields_set & {"chip", "batch_per_replica"}
        if (self.prefill is None) != (self.decode is None) or (self.prefill and axes):
            raise ValueError("give the layout of one pool, or those of both prefill and decode")
        return self
