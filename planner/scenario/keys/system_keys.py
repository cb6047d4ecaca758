"""The system of a scenario: a catalogue name (varied in place or not), a file, a description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import (
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from planner.benchmark import chip_mismatch, read_measured
from planner.catalogue.chips import MATH
from planner.catalogue.systems import REQUIRED_CHIP_KEYS, System, parse_system, system, system_names
from planner.scenario.keys import fields
from planner.scenario.keys.fields import Count, Faults, Quantity, Record, Refusals, check_faults
from planner.scenario.keys.references import File, name_or_file, nested
from planner.text.errors import InputError, did_you_mean, quote
from planner.text.quantities import show

if TYPE_CHECKING:
    from planner.scenario.keys.workload import Choose

FILES = ("topology", "measured")
WEIGHT_ONLY = ("int8", "int4")
LINKS = ("scale_up", "scale_out", "chips_per_domain")  # what a topology file says itself


class _Flops(fields.FieldType):
    """Dense peaks by dtype [flop/s]."""

    def read(self, value: object) -> dict[str, float]:
        if not isinstance(value, Mapping) or not value:
            raise ValueError(
                f"expected dense peaks by dtype such as {{bf16: 989 TFLOP/s}}, got {quote(value)}"
            )

        def read_peak(dtype: str, peak: object) -> float:
            if dtype not in MATH:
                raise ValueError(fields.unknown_key(dtype, MATH))
            return Quantity("compute").read(peak)

        faults: Faults = []
        peaks = fields.read_items(value.items(), read_peak, faults)
        return check_faults(peaks, faults)

    def schema(self) -> dict[str, object]:
        peak = Quantity("compute").schema()
        return {
            "type": "object",
            "properties": dict.fromkeys(MATH, peak),
            "additionalProperties": False,
            "minProperties": 1,
        }


FileKey = Annotated[File | None, WithJsonSchema({"type": "string"})]


class SystemDescription(Record):
    """A system varied in place (`like`), or in full; links one way, peaks dense."""

    like: str | None = Field(None, description="a catalogue name, varied by the other keys")
    memory: fields.SizeField | None = Field(None, description="capacity per chip [byte]")
    memory_bandwidth: fields.Bandwidth | None = Field(None, description="per chip [byte/s]")
    flops: Annotated[dict[str, float], _Flops()] | None = None
    """dense peak by dtype, 2 FLOP per multiply-add [flop/s]"""
    scale_up: fields.Bandwidth | None = None
    """fast network, per chip and one way [byte/s]"""
    scale_out: fields.Bandwidth | None = None
    """network between domains, per chip and one way [byte/s]"""
    chips_per_domain: Count | None = Field(None, description="chips joined by the fast network")
    sram: fields.SizeField | None = Field(None, description="on-chip memory [byte]")
    power: Annotated[float, Quantity("power")] | None = Field(None, description="per chip [J/s]")
    price: fields.Rent | None = Field(None, description="per chip [USD/(chip*s)]")
    topology: FileKey = Field(None, description="a topology file: how such chips are wired")
    measured: FileKey = None
    """a file of planner measure: what such a chip sustains"""

    @field_validator("topology", mode="before")
    @classmethod
    def _wired(cls, value: object, info: ValidationInfo) -> File | None:
        file = _file(value, "topology", "pod.yaml", info)
        twice = [key for key in LINKS if file and info.data.get(key) is not None]
        if twice:
            raise ValueError(f"the file says how chips are wired; leave {', '.join(twice)} out")
        return file

    @field_validator("measured", mode="before")
    @classmethod
    def _timed(cls, value: object, info: ValidationInfo) -> File | None:
        file = _file(value, "measured chip", "my-chip.toml", info)
        if file is None:
            return None
        try:
            read_measured(file.path)
        except InputError as error:
            raise Refusals(
                [((), f"{file.written}: {each.path}: {each.message}") for each in error.mistakes]
                or [((), error)]
            ) from None
        return file

    @model_validator(mode="after")
    def _of_this_chip(self) -> SystemDescription:
        if self.measured is not None and self.like is not None:
            reason = chip_mismatch(read_measured(self.measured.path), _described(self).chip)
            if reason is not None:
                raise Refusals([(("measured",), f"{self.measured.written}: {reason}")])
        return self

    @field_validator("like")
    @classmethod
    def _in_catalogue(cls, value: str | None) -> str | None:
        if value is not None and value not in system_names():
            hint = did_you_mean(value, system_names()) or " (planner catalog systems lists them)"
            raise ValueError(f"unknown system {quote(value)}{hint}")
        return value

    @field_validator("flops")
    @classmethod
    def _dense(
        cls, value: dict[str, float] | None, info: ValidationInfo
    ) -> dict[str, float] | None:
        like = info.data.get("like")
        if value is None or like is None:
            return value
        chip = system(like).chip
        faults: Faults = []
        for dtype, peak in value.items():
            if chip.computes(dtype) and _double(peak, chip.peak(dtype)):
                words = _twice("dense peak", "sparse", peak, chip.peak(dtype), "compute")
                faults.append(((dtype,), words))
        return check_faults(value, faults)

    @field_validator("scale_up", "scale_out")
    @classmethod
    def _one_way(cls, value: float | None, info: ValidationInfo) -> float | None:
        like = info.data.get("like")
        if value is None or like is None:
            return value
        rate = getattr(system(like), str(info.field_name))
        if rate is not None and _double(value, rate):
            words = _twice("bandwidth one way", "bidirectional", value, rate, "bandwidth")
            raise ValueError(words)
        return value


def _file(value: object, kind: str, example: str, info: ValidationInfo) -> File | None:
    if value is None:
        return value
    file = name_or_file(value, kind, example, (), info)
    return file if isinstance(file, File) else None


SystemReference = str | File | SystemDescription
SystemChoice = SystemReference | tuple[SystemReference, ...]


def _systems(value: object, info: ValidationInfo) -> SystemChoice:
    if not isinstance(value, list | tuple):
        return _system(value, info)
    if not value:
        raise ValueError("expected at least one system, got an empty list")
    return tuple(fields.read_each(value, lambda item: _system(item, info)))


def _system(value: object, info: ValidationInfo) -> SystemReference:
    if isinstance(value, File | SystemDescription):
        return value
    if isinstance(value, list | tuple):
        raise ValueError("expected a system, got a list in a list")
    if not isinstance(value, Mapping):
        return name_or_file(value, "system", "hgx-h200", system_names(), info)
    return nested(SystemDescription, value, info, REQUIRED_CHIP_KEYS)


_Written = str | SystemDescription
SystemField = Annotated[
    SystemChoice, PlainValidator(_systems, json_schema_input_type=_Written | list[_Written])
]


def resolved_system(choice: str | File | SystemDescription) -> System | File:
    """The system of a reference; a topology file stays a file."""
    if isinstance(choice, File):
        return choice
    if isinstance(choice, str):
        return system(choice)
    wired, timed = choice.topology, choice.measured
    return replace(
        _described(choice),
        file=wired.path if wired else None,
        measured=timed.path if timed else None,
    )


def _described(choice: SystemDescription) -> System:
    return parse_system({key: value for key, value in choice if key not in FILES})


def _double(value: float, figure: float) -> bool:
    return abs(value - 2 * figure) <= 0.005 * figure


def _twice(wanted: str, likely: str, value: float, figure: float, dimension: str) -> str:
    right = show(figure, dimension)
    return (
        f"expected the {wanted}, got {show(value, dimension)}, twice the catalogue's {right}; "
        f'this looks like the {likely} figure, did you mean "{right}"?'
    )


def arithmetic_mistakes(
    choose: Choose, system: System
) -> list[tuple[fields.Path, str | ValueError]]:
    """Mistakes for each requested dtype that the chip cannot multiply."""
    chip = system.chip
    units = ", ".join(chip.flops)

    def lacks(key: str, dtype: str, remedy: str = "") -> tuple[fields.Path, str | ValueError]:
        return (key,), f"the chip {chip.name} has no {dtype} arithmetic (it has {units}){remedy}"

    if choose.activations:  # then weights are only stored
        return [
            lacks("activations", dtype) for dtype in choose.activations if not chip.computes(dtype)
        ]
    return [
        lacks("weights", dtype, f"; give activations: bf16 to keep only the weights in {dtype}")
        for dtype in choose.weights or ()
        if not (dtype in (*WEIGHT_ONLY, "fp32") or chip.computes(dtype))
    ]
