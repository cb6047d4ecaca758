"""The profile of a scenario: a name, `auto`, or a file of one's own beside the scenario."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from planner.catalogue.profile import profile, profile_names
from planner.catalogue.profile_checks import unsound
from planner.scenario.keys.references import File, name_or_file
from planner.text.errors import CatalogueError, quoted

AUTO = "auto"
LONGEST = 1000


class _ProfileReference:
    """Reads a name or the path of a file, which must be a sound profile."""

    def read(self, value: Any, info: ValidationInfo) -> str | File:
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
    ) -> dict[str, Any]:
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
