"""Start options of the engine, under the engine's own names."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.scenario.keys.fields import Count, Faults, QuestionRecord, Refusals, unknown_key
from planner.scenario.keys.workload import Choose, Workload

SETTINGS = ("max_num_seqs", "max_num_batched_tokens", "max_model_len")


class EngineSettings(QuestionRecord):
    """Limits set on an engine, by vLLM's names; the plan chooses the limits not given."""

    COUNTS: ClassVar[Mapping[str, str]] = {
        "max_num_seqs": "seq",
        "max_num_batched_tokens": "token",
        "max_model_len": "token",
    }

    max_num_seqs: Count | None = Field(
        None, description="most sequences of one copy of attention, which memory is kept for [seq]"
    )
    max_num_batched_tokens: Count | None = Field(
        None, description="most tokens of a step of one copy, which memory is kept for [token]"
    )
    max_model_len: Count | None = Field(
        None, description="tokens of the longest request that is let in, answer included [token]"
    )

    @model_validator(mode="before")
    @classmethod
    def _record_of_engine(cls, data: Any) -> Any:
        """An engine as a record of its name, version and limits is all these keys."""
        engine = data.get("engine") if isinstance(data, Mapping) else None
        keys = {"name": "engine", "version": "engine_version"} | {x: x for x in SETTINGS}
        if not isinstance(engine, Mapping):
            return data
        beside = {key: value for key, value in data.items() if key != "engine"}
        faults: Faults = [(("engine", x), unknown_key(x, keys)) for x in engine if x not in keys]
        twice = [x for x in engine if keys.get(x) in beside]
        faults += [(("engine", x), f"{keys[x]} stands beside it; leave one out") for x in twice]
        if isinstance(engine.get("version"), int | float):
            faults += [(("engine", "version"), 'write it in quotes, such as "0.20"')]
        if faults:
            raise Refusals(faults)
        return {**beside, "engine": None, **{keys[name]: x for name, x in engine.items()}}

    @field_validator("max_num_batched_tokens")
    @classmethod
    def _as_many_as_sequences(cls, value: int | None, info: ValidationInfo) -> int | None:
        seats = info.data.get("max_num_seqs")
        if value is not None and seats is not None and value < seats:
            raise ValueError(
                f"{value} tokens a step are fewer than max_num_seqs {seats}, which take one each"
            )
        return value

    @field_validator("workload", check_fields=False)
    @classmethod
    def _let_in(cls, value: Workload, info: ValidationInfo) -> Workload:
        longest = info.data.get("max_model_len")
        mean = value.input_tokens.mean + value.output_tokens.mean
        if longest is not None and mean > longest:
            raise ValueError(
                f"requests of {mean:g} tokens are longer than the {longest} of max_model_len, and "
                "the engine refuses them; shorten workload, or raise max_model_len"
            )
        return value

    @field_validator("choose", check_fields=False)
    @classmethod
    def _chunks_of_a_step(cls, value: Choose, info: ValidationInfo) -> Choose:
        budget = info.data.get("max_num_batched_tokens")
        if budget is not None and value.chunk and min(value.chunk) > budget:
            words = f"no step takes {min(value.chunk)} tokens: max_num_batched_tokens is {budget}"
            raise Refusals([(("chunk",), f"{words}; lower one or raise the other")])
        return value
