"""The model of a scenario: a catalogue name, a config.json, or a description, varied in place."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, PlainValidator, ValidationInfo, field_validator

from planner.catalogue.hub import hub_config, is_hub_name
from planner.catalogue.models import model_names, model_of_repository
from planner.scenario.keys.fields import Count, Dtype, Faults, Params, Quantity, Record
from planner.scenario.keys.references import ACCESS, File, HubFile, name_or_file, nested
from planner.text.quantities import show

MODEL_REQUIRED = ("total_params", "kv_bytes_per_token")


class ModelDescription(Record):
    """A model varied in place (`like`), or an abstract one of a few numbers."""

    like: str | File | None = Field(None, description="a catalogue name or a path to a config.json")
    weights: Dtype | None = Field(None, description="dtype of the weights")
    kv: Dtype | None = Field(None, description="dtype of the key-value cache")
    activations: Dtype | None = Field(None, description="dtype of the activations")
    total_params: Params | None = Field(None, description="all parameters [param]")
    active_params: Params | None = None
    """parameters one token passes through [param]; all when absent"""
    bytes_per_weight: Annotated[float, Quantity("bytes_per_param", at_most=8.0)] | None = None
    """[byte/param], in place of weights"""
    kv_bytes_per_token: Annotated[float, Quantity("bytes_per_token", zero=True)] | None = None
    """key-value bytes per cached token [byte/token]"""
    attention_flops_per_cached_token: (
        Annotated[float, Quantity("flop_per_token", zero=True)] | None
    ) = Field(None, description="attention arithmetic per cached token [flop/token]")
    state_bytes_per_sequence: Annotated[float, Quantity("size", zero=True)] | None = None
    """state that does not grow with context [byte/seq]"""
    layers: Count | None = None
    hidden: Count | None = Field(None, description="width of the residual stream")

    @field_validator("like", mode="before")
    @classmethod
    def _named(cls, value: object, info: ValidationInfo) -> str | File | None:
        return None if value is None else _named_model(value, info)

    @field_validator("active_params")
    @classmethod
    def _not_more(cls, value: float | None, info: ValidationInfo) -> float | None:
        total = info.data.get("total_params")
        if value is not None and total is not None and value > total:
            raise ValueError(
                f"expected at most total_params = {show(total, 'params')}, "
                f"got {show(value, 'params')}"
            )
        return value

    @field_validator("bytes_per_weight")
    @classmethod
    def _one_size(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and info.data.get("weights") is not None:
            raise ValueError("give weights (a dtype) or bytes_per_weight, not both")
        return value


def _model(value: object, info: ValidationInfo) -> str | File | ModelDescription:
    if isinstance(value, File | ModelDescription):
        return value
    if not isinstance(value, Mapping):
        return _named_model(value, info)
    missing: Faults = []
    if all(value.get(key) is None for key in ("like", "weights", "bytes_per_weight")):
        missing.append((("weights",), "missing required key 'weights', such as fp8"))
    return nested(ModelDescription, value, info, MODEL_REQUIRED, missing)


ModelField = Annotated[
    str | File | ModelDescription,
    PlainValidator(_model, json_schema_input_type=str | ModelDescription),
]


def config_warnings(question: object, key: str = "") -> tuple[str, ...]:
    """Warnings about all model configurations that a question names, at any depth."""
    if isinstance(question, File):
        if key not in ("model", "like", "draft_model"):
            return ()
        from planner.architecture import read_config

        return read_config(question.path).warnings
    pairs: Iterable[tuple[str, object]] = ()
    if isinstance(question, BaseModel):
        pairs = question
    elif isinstance(question, Mapping):
        pairs = question.items()
    elif isinstance(question, tuple | list):
        pairs = ((key, inner) for inner in question)
    return tuple(dict.fromkeys(x for name, inner in pairs for x in config_warnings(inner, name)))


def _named_model(value: object, info: ValidationInfo) -> str | File:
    folder = (info.context or {}).get("folder") or Path()
    if isinstance(value, str) and is_hub_name(value) and not (folder / value).exists():
        name = model_of_repository(value)
        if name is not None:
            return name
        if ACCESS.get() is None:  # what answers others asks nobody
            config = hub_config(value)
            return HubFile(config.name, config.path, config.repository)
    return name_or_file(value, "model", "deepseek-v3", model_names(), info)
