"""Models by published name: shapes kept as trimmed configurations, each with source and date.

One file per name in the folder `models`. An entry either holds the structural keys of a published
configuration (the language model's, laid flat) or is `like` another one with some keys changed.
Published totals are kept beside them for comparison; what is counted never depends on them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from planner.architecture import Model, from_config
from planner.text.errors import CatalogueError
from planner.text.tables import file_names

HUB = re.compile(r"Hugging Face ([\w.-]+/[\w.-]+)")
_FIGURES = {"total": "published_total", "active": "published_active", "source": "published_source"}


@dataclass(frozen=True)
class ModelRecord:
    """Catalogue record of a model: its configuration, source and published figures.

    `published_total` and `published_active` are the vendor's figures [param], the latter in the
    `convention` that matches our count (all, no_input_embedding, no_embedding_no_head);
    `verified` is `secondary` (read in a transcription) or `no` (unread), empty without a figure.
    """

    name: str
    source: str
    as_of: str
    config: Mapping[str, Any]
    note: str = ""
    like: str = ""
    published_total: float | None = None
    published_active: float | None = None
    convention: str = ""
    published_source: str = ""
    verified: str = ""


@cache
def model_names() -> tuple[str, ...]:
    """Every model name, sorted."""
    return file_names("planner.catalogue", "models", ".json")


@cache
def record(name: str) -> ModelRecord:
    """The entry called `name`; raises CatalogueError with the nearest known name."""
    if name not in model_names():
        raise CatalogueError.unknown("model", name, model_names())
    file = resources.files("planner.catalogue").joinpath("models", f"{name}.json")
    entry = json.loads(file.read_text(encoding="utf-8"))
    config = entry.get("config", {})
    if "like" in entry:
        config = {**record(entry["like"]).config, **config}
    texts = {key: entry[key] for key in ("source", "as_of", "note", "like") if key in entry}
    figures = {_FIGURES.get(key, key): each for key, each in entry.get("published", {}).items()}
    return ModelRecord(**texts, **figures, name=name, config=config)


def repository(name: str) -> str | None:
    """Hugging Face repository of the checkpoint of the model called `name`; None if not there.

    Raises CatalogueError with the nearest known name.
    """
    match = HUB.search(record(name).source)
    return match and match.group(1)


def model_of_repository(place: str) -> str | None:
    """Name of the model whose checkpoint is in a repository; None if no model matches."""
    wanted = place.lower()
    return next(
        (name for name in model_names() if (repository(name) or "").lower() == wanted), None
    )


@cache
def load(name: str) -> Model:
    """The layers of the model called `name`; raises CatalogueError with the nearest known name."""
    entry = record(name)
    return from_config(
        entry.config,
        name,
        where=f"catalogue model {name}",
        source=f"{entry.source} ({entry.as_of})",
    )
