"""Names and paths in a scenario: their resolution, and mappings read in their place.

What answers somebody else's scenario (a server, an agent's tool) opens no path that stands in it,
and does not say whether there is one: it is refused where names are read, before it is opened.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import PlainValidator, ValidationError, ValidationInfo, WithJsonSchema

from planner.scenario.keys.fields import Faults, Record, Refusals
from planner.text.errors import CatalogueError, did_you_mean, quote
from planner.text.tables import file_names

R = TypeVar("R", bound=Record)
LONGEST_NAME = 1000
FILE_SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".csv", ".xml", ".txt")


@dataclass(frozen=True)
class FileAccess:
    """Permission to read the files a scenario names: those below `folder`, none if it is None."""

    folder: Path | None = None

    def path_of(self, written: str) -> Path | None:
        """The file below the folder, links followed; None where it leads out of it or is none."""
        if self.folder is None:
            return None
        root = self.folder.resolve()
        try:
            path = (root / written).resolve()
            return path if path.is_relative_to(root) and path.is_file() else None
        except (OSError, ValueError, RuntimeError):
            return None


ACCESS: ContextVar[FileAccess | None] = ContextVar("file_access", default=None)
"""None: a scenario is the user's own, and points wherever it says."""


@dataclass(frozen=True)
class File:
    """A file that a scenario points to: `written` as in the scenario, `path` as found."""

    written: str
    path: Path

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: object) -> dict[str, str]:
        """In a scenario it is the text of its path."""
        return {"type": "string"}


@dataclass(frozen=True)
class HubFile(File):
    """The configuration of a model on the Hub, in the cache; `written` names its commit."""

    repository: str


def nested(
    record: type[R],
    value: Mapping[str, object],
    info: ValidationInfo,
    required: Sequence[str],
    more: Faults | None = None,
) -> R:
    """The mapping as a record, or every refusal of it together with the `required` keys it lacks.

    `like` a catalogue's entry nothing is required; `more` is refused in any case.
    """
    kind = record.__name__.removesuffix("Description").lower()
    missing: Faults = [
        ((key,), f"missing required key '{key}' (or give like: a {kind} to vary)")
        for key in required
        if value.get("like") is None and value.get(key) is None
    ]
    missing += more or []
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
    """A known name or a file read before unchanged, else a regular file beside the scenario."""
    if isinstance(value, File):
        return value
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a {kind} such as {example}, got {quote(value)}")
    if value in names:
        return value
    access = ACCESS.get()
    if access is not None:
        path = access.path_of(value) if len(value) <= LONGEST_NAME else None
        if path is not None:
            return File(value, path)
        where = "no file is read here" if access.folder is None else "nor a file of the folder"
        raise ValueError(f"unknown {kind} {quote(value)}{did_you_mean(value, names)} ({where})")
    folder = (info.context or {}).get("folder") or Path()
    try:
        path = (folder / Path(value).expanduser()) if len(value) <= LONGEST_NAME else None
        if path is not None and path.is_file():
            return File(value, path)
        is_folder = path is not None and path.is_dir()
    except (OSError, ValueError, RuntimeError):
        path, is_folder = None, False
    if is_folder and ("/" in value or value.endswith(".")):
        raise ValueError(f"expected a file, but {quote(value)} is a directory")
    if "/" in value or "\\" in value or value.endswith(FILE_SUFFIXES):
        hint = did_you_mean(value.rsplit("/", 1)[-1].lower(), names)
        raise ValueError(f"no {kind} file {quote(value)} is found{hint}")
    lists = f" (planner catalog {kind}s lists them)" if names else f"; a file, such as {example}"
    hint = did_you_mean(value, names) or lists
    raise ValueError(f"unknown {kind} {quote(value)}{hint}")


AUTO = "auto"


def _profile(value: object, info: ValidationInfo) -> str | File:
    """A profile's name, or the path of a file, which must be a sound profile."""
    if isinstance(value, str) and len(value) > LONGEST_NAME:
        raise ValueError(f"expected a name such as auto, got {quote(value)}")
    name = value.strip() if isinstance(value, str) else value
    names = (AUTO, *file_names("planner.catalogue", "profiles", ".toml"))
    reference = name_or_file(name, "profile", AUTO, names, info)
    if isinstance(reference, File) and reference is not value:
        _read(reference)
    return reference


ProfileField = Annotated[
    str | File, PlainValidator(_profile), WithJsonSchema({"type": "string", "minLength": 1})
]


def profile_reference(reference: str | File) -> str:
    """The profile of a scenario as `choose_profile` takes it: a name, or the path of a file."""
    return str(reference.path) if isinstance(reference, File) else reference


def _read(file: File) -> None:
    """Raises ValueError where the file is no profile."""
    from planner.catalogue.profile import profile
    from planner.catalogue.profile_choice import profile_fault

    if file.path.suffix != ".toml":
        raise ValueError(
            f"expected a .toml file that planner calibrate wrote, got {quote(file.written)}"
        )
    try:
        read_profile = profile(str(file.path))
    except CatalogueError as error:
        raise ValueError(str(error).replace(str(file.path), file.written)) from None
    reason = profile_fault(read_profile)
    if reason is not None:
        raise ValueError(f"{file.written}: is no sound profile: {reason}")
