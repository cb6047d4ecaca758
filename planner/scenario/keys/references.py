"""What a scenario points to by name or by path, and how a mapping in its place is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from planner.catalogue.profile import profile, profile_names
from planner.catalogue.profile_checks import unsound
from planner.scenario.keys.fields import Faults, Record, Refusals
from planner.text.errors import CatalogueError, did_you_mean, quoted

R = TypeVar("R", bound=Record)
LONGEST_NAME = 1000
FILE_SUFFIXES = (".json", ".yaml", ".yml", ".toml")


@dataclass(frozen=True)
class File:
    """A file a scenario points to: `written` as it stands there, `path` as found."""

    written: str
    path: FilePath

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: object) -> dict[str, str]:
        """In a scenario it is the text of its path."""
        return {"type": "string"}


class Reference:
    """Reads a name, a path or a mapping; `record` gives the mapping's JSON Schema."""

    record: type[Record]
    many = False

    def read(self, value: object, info: ValidationInfo) -> object:
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


def nested(
    record: type[R], value: Mapping[str, object], info: ValidationInfo, missing: Faults
) -> R:
    """The mapping as a record, or every refusal of it together with the `missing` keys."""
    try:
        read = record.model_validate(dict(value), context=info.context)
    except ValidationError as error:
        raise Refusals([*missing, ((), error)]) from None
    if missing:
        raise Refusals(missing)
    return read


def name_or_file(
    value: object, kind: str, example: str, names: tuple[str, ...], info: ValidationInfo
) -> str | File:
    """A known name as it is, else an existing regular file beside the scenario."""
    if isinstance(value, FilePath):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a {kind} such as {example}, got {quoted(value)}")
    if value in names:
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
        hint = did_you_mean(value.rsplit("/", 1)[-1].lower(), names)
        raise ValueError(f"no {kind} file {quoted(value)} is found{hint}")
    lists = f" (planner catalog {kind}s lists them)" if names else f"; a file, such as {example}"
    hint = did_you_mean(value, names) or lists
    raise ValueError(f"unknown {kind} {quoted(value)}{hint}")


AUTO = "auto"
LONGEST = 1000


class _ProfileReference:
    """Reads a name or the path of a file, which must be a sound profile."""

    def read(self, value: object, info: ValidationInfo) -> str | File:
        if isinstance(value, File):
            return value
        if isinstance(value, str) and len(value) > LONGEST:
            raise ValueError(f"expected a name such as auto, got {quoted(value)}")
        name = value.strip() if isinstance(value, str) else value
        reference = name_or_file(name, "profile", AUTO, (AUTO, *profile_names()), info)
        if isinstance(reference, File):
            _read(reference)
        return reference

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"type": "string", "minLength": 1}


ProfileField = Annotated[str | File, _ProfileReference()]


def wanted_profile(reference: str | File) -> str:
    """The profile of a scenario as `choose_profile` takes it: a name, or the path of a file."""
    return str(reference.path) if isinstance(reference, File) else reference


def _read(file: File) -> None:
    """Raises ValueError where the file is no profile."""
    if file.path.suffix != ".toml":
        raise ValueError(
            f"expected a .toml file that planner calibrate wrote, got {quoted(file.written)}"
        )
    try:
        read_profile = profile(str(file.path))
    except CatalogueError as error:
        raise ValueError(str(error).replace(str(file.path), file.written)) from None
    reason = unsound(read_profile)
    if reason is not None:
        raise ValueError(f"{file.written}: is no sound profile: {reason}")
