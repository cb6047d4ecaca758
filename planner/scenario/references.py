"""The model and the system of a scenario: a catalogue name, a path, or an inline description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path as FilePath
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, ValidationError, ValidationInfo, field_validator
from pydantic_core import CoreSchema, core_schema

from planner.catalogue.chips import MATH
from planner.catalogue.systems import REQUIRED, System, system, system_from, system_names
from planner.errors import did_you_mean, quoted
from planner.quantities import show
from planner.scenario.fields import DTYPES, Count, Kind, Path, Quantity, Record, Refusals, Word

__all__ = [
    "File",
    "ModelDescription",
    "ModelField",
    "SystemDescription",
    "SystemField",
    "resolved_system",
]

LONGEST_NAME = 1000
MODEL_REQUIRED = ("total_params", "kv_bytes_per_token")
FILE_SUFFIXES = (".json", ".yaml", ".yml", ".toml")
Found = list[tuple[Path, str | ValueError]]


@dataclass(frozen=True)
class File:
    """A file a scenario points to: `given` as written there, `path` as found."""

    given: str
    path: FilePath


class _Flops(Kind):
    """Dense peaks by dtype [flop/s]."""

    def read(self, value: object) -> dict[str, float]:
        if not isinstance(value, Mapping) or not value:
            raise ValueError(
                f"expected dense peaks by dtype such as {{bf16: 989 TFLOP/s}}, got {quoted(value)}"
            )
        found: Found = []
        peaks: dict[str, float] = {}
        for dtype, peak in value.items():
            if dtype not in MATH:
                hint = did_you_mean(dtype, MATH) or f" (known: {', '.join(MATH)})"
                found.append(((dtype,), f"unknown key {quoted(dtype)}{hint}"))
                continue
            try:
                peaks[dtype] = Quantity("compute").read(peak)
            except ValueError as error:
                found.append(((dtype,), error))
        if found:
            raise Refusals(found)
        return peaks

    def schema(self) -> dict[str, Any]:
        peak = Quantity("compute").schema()
        return {
            "type": "object",
            "properties": dict.fromkeys(MATH, peak),
            "additionalProperties": False,
            "minProperties": 1,
        }


class SystemDescription(Record):
    """A system varied in place (`like`), or in full; links one way, peaks dense."""

    like: str | None = Field(None, description="a catalogue name, varied by the other keys")
    memory: Annotated[float, Quantity("size")] | None = Field(
        None, description="capacity per chip [byte]"
    )
    memory_bandwidth: Annotated[float, Quantity("bandwidth")] | None = Field(
        None, description="per chip [byte/s]"
    )
    flops: Annotated[dict[str, float], _Flops()] | None = Field(
        None, description="dense peak by dtype, 2 FLOP per multiply-add [flop/s]"
    )
    scale_up: Annotated[float, Quantity("bandwidth")] | None = Field(
        None, description="fast network, per chip and one way [byte/s]"
    )
    scale_out: Annotated[float, Quantity("bandwidth")] | None = Field(
        None, description="network between domains, per chip and one way [byte/s]"
    )
    chips_per_domain: Count | None = Field(None, description="chips joined by the fast network")
    sram: Annotated[float, Quantity("size")] | None = Field(
        None, description="on-chip memory [byte]"
    )
    power: Annotated[float, Quantity("power")] | None = Field(None, description="per chip [J/s]")
    price: Annotated[float, Quantity("price")] | None = Field(
        None, description="per chip [USD/(chip*s)]"
    )

    @field_validator("like")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value is not None:
            system(value)
        return value

    @field_validator("flops")
    @classmethod
    def _dense(cls, value: dict[str, float] | None, info: ValidationInfo) -> dict[str, float] | None:
        like = info.data.get("like")
        if value is None or like is None:
            return value
        chip = system(like).chip
        found: Found = []
        for dtype, peak in value.items():
            if chip.computes(dtype) and _double(peak, chip.peak(dtype)):
                dense = show(chip.peak(dtype), "compute")
                found.append(
                    (
                        (dtype,),
                        f"expected the dense peak, got {show(peak, 'compute')}, twice the "
                        f"catalogue's {dense}; this looks like the sparse figure, "
                        f'did you mean "{dense}"?',
                    )
                )
        if found:
            raise Refusals(found)
        return value

    @field_validator("scale_up", "scale_out")
    @classmethod
    def _one_way(cls, value: float | None, info: ValidationInfo) -> float | None:
        like = info.data.get("like")
        if value is None or like is None:
            return value
        known = getattr(system(like), str(info.field_name))
        if known is not None and _double(value, known):
            raise ValueError(
                f"expected the bandwidth one way, got {show(value, 'bandwidth')}, twice the "
                f"catalogue's {show(known, 'bandwidth')}; this looks like the bidirectional "
                f'figure, did you mean "{show(known, "bandwidth")}"?'
            )
        return value


class ModelDescription(Record):
    """A model varied in place (`like`), or an abstract one of a few numbers."""

    like: str | File | None = Field(None, description="a catalogue name or a path to a config.json")
    weights: Annotated[str, Word(DTYPES)] | None = Field(None, description="dtype of the weights")
    kv: Annotated[str, Word(DTYPES)] | None = Field(
        None, description="dtype of the key-value cache"
    )
    activations: Annotated[str, Word(DTYPES)] | None = Field(
        None, description="dtype of the activations"
    )
    total_params: Annotated[float, Quantity("params")] | None = Field(
        None, description="all parameters [param]"
    )
    active_params: Annotated[float, Quantity("params")] | None = Field(
        None, description="parameters one token passes through [param]; all when absent"
    )
    bytes_per_weight: Annotated[float, Quantity("bytes_per_param", at_most=8.0)] | None = Field(
        None, description="[byte/param], in place of weights"
    )
    kv_bytes_per_token: Annotated[float, Quantity("bytes_per_token", zero=True)] | None = Field(
        None, description="key-value bytes per cached token [byte/token]"
    )
    attention_flops_per_cached_token: (
        Annotated[float, Quantity("flop_per_token", zero=True)] | None
    ) = Field(None, description="attention arithmetic per cached token [flop/token]")
    state_bytes_per_sequence: Annotated[float, Quantity("size", zero=True)] | None = Field(
        None, description="state that does not grow with context [byte/seq]"
    )
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


class _Reference:
    """Reads a name, a path or a mapping; `record` gives the mapping's JSON Schema."""

    record: type[Record]
    many = False

    def read(self, value: Any, info: ValidationInfo) -> Any:
        raise TypeError("a reference reads values")

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        shape: list[CoreSchema] = [core_schema.str_schema(), handler.generate_schema(self.record)]
        if self.many:
            shape.append(core_schema.list_schema(core_schema.union_schema(list(shape))))
        return core_schema.with_info_plain_validator_function(
            self.read, json_schema_input_schema=core_schema.union_schema(list(shape))
        )


class _ModelReference(_Reference):
    record = ModelDescription

    def read(self, value: Any, info: ValidationInfo) -> str | File | ModelDescription:
        if isinstance(value, File | ModelDescription):
            return value
        if not isinstance(value, Mapping):
            return _named_model(value, info)
        missing: Found = []
        if value.get("like") is None:
            missing = [
                ((key,), f"missing required key '{key}' (or give like: a model to vary)")
                for key in MODEL_REQUIRED
                if value.get(key) is None
            ]
            if value.get("weights") is None and value.get("bytes_per_weight") is None:
                missing.append((("weights",), "missing required key 'weights', such as fp8"))
        return _nested(ModelDescription, value, info, missing)


class _SystemReference(_Reference):
    record = SystemDescription
    many = True

    def read(self, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, list | tuple):
            return self._list(value, info)
        if isinstance(value, File | SystemDescription):
            return value
        if not isinstance(value, Mapping):
            return _named_system(value, info)
        missing: Found = []
        if value.get("like") is None:
            missing = [
                ((key,), f"missing required key '{key}' (or give like: a system to vary)")
                for key in REQUIRED
                if value.get(key) is None
            ]
        return _nested(SystemDescription, value, info, missing)

    def _list(self, value: list[Any] | tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        if not value:
            raise ValueError("expected at least one system, got an empty list")
        found: Found = []
        systems = []
        for index, item in enumerate(value):
            try:
                if isinstance(item, list | tuple):
                    raise ValueError("expected a system, got a list in a list")
                systems.append(self.read(item, info))
            except ValueError as error:
                found.append(((index,), error))
        if found:
            raise Refusals(found)
        return tuple(systems)


ModelField = Annotated[str | File | ModelDescription, _ModelReference()]
SystemField = Annotated[
    str | File | SystemDescription | tuple[str | File | SystemDescription, ...],
    _SystemReference(),
]


def resolved_system(choice: str | File | SystemDescription) -> System | File:
    """The system of a reference; a topology file stays a file."""
    if isinstance(choice, File):
        return choice
    return system(choice) if isinstance(choice, str) else system_from(dict(choice))


def _double(value: float, known: float) -> bool:
    return abs(value - 2 * known) <= 0.005 * known


def _nested(record: type[Record], value: Any, info: ValidationInfo, missing: Found) -> Any:
    try:
        read = record.model_validate(dict(value), context=info.context)
    except ValidationError as error:
        raise Refusals([*missing, ((), error)]) from None
    if missing:
        raise Refusals(missing)
    return read


def _named_model(value: object, info: ValidationInfo) -> str | File:
    return _name_or_file(value, "model", "deepseek-v3", _model_names(), info)


def _named_system(value: object, info: ValidationInfo) -> str | File:
    return _name_or_file(value, "system", "hgx-h200", system_names(), info)


def _name_or_file(
    value: object, kind: str, example: str, known: tuple[str, ...], info: ValidationInfo
) -> str | File:
    """A known name as it is, else an existing regular file beside the scenario."""
    if isinstance(value, FilePath):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a {kind} such as {example}, got {quoted(value)}")
    if value in known:
        return value
    folder = (info.context or {}).get("folder") or FilePath()
    try:
        path = (folder / FilePath(value).expanduser()) if len(value) <= LONGEST_NAME else None
        if path is not None and path.is_file():
            return File(value, path)
        is_folder = path is not None and path.is_dir()
    except (OSError, ValueError, RuntimeError):
        path, is_folder = None, False
    if is_folder and ("/" in value or value.endswith(".")):
        raise ValueError(f"expected a file, but {quoted(value)} is a directory")
    if "/" in value or "\\" in value or value.endswith(FILE_SUFFIXES):
        hint = did_you_mean(value.rsplit("/", 1)[-1].lower(), known)
        raise ValueError(f"no {kind} file {quoted(value)} is found{hint}")
    hint = did_you_mean(value, known) or f" (planner catalog {kind}s lists them)"
    raise ValueError(f"unknown {kind} {quoted(value)}{hint}")


@cache
def _model_names() -> tuple[str, ...]:
    folder = resources.files("planner.catalogue").joinpath("models")
    return tuple(sorted(entry.name.rsplit(".", 1)[0] for entry in folder.iterdir()))
