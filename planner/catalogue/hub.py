"""Models by their name on the Hugging Face Hub: their configurations, cached and pinned by commit.

What is downloaded once is read from the cache from then on, without network, at the commit that it
was: an answer of today is that of tomorrow. `owner/name@commit` names another commit. No weights
are downloaded: config.json, and hf_quant_config.json where there is one.
"""

import os
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from planner.text.errors import CatalogueError, MissingExtra

REPO_ID = re.compile(r"([A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})(?:@([0-9a-f]{40}))?")
SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".txt", ".md", ".py")  # of files, not of models
CONFIG, QUANTISATION = "config.json", "hf_quant_config.json"
TIMEOUT_S = 10.0  # seconds that the Hub may take to answer


@dataclass(frozen=True)
class HubConfig:
    """Configuration of a repository at a commit, and its local path."""

    repository: str
    commit: str
    path: Path

    @property
    def name(self) -> str:
        """The name that says the commit too."""
        return f"{self.repository}@{self.commit}"


class NoSuchFile(CatalogueError):  # noqa: N818 - it names what is missing
    """A repository has no file of that name."""


def is_hub_name(text: str) -> bool:
    """True if a text may be the name of a repository, and is no name of a file."""
    return REPO_ID.fullmatch(text) is not None and not text.lower().endswith(SUFFIXES)


def cache() -> Path:
    """Folder of downloads from the Hub."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "token-planner" / "hub"


def hub_config(text: str) -> HubConfig:
    """Configuration of a model on the Hub; from the local cache if present.

    Raises CatalogueError where the Hub has none, or cannot be reached; MissingExtra without the
    package that asks it.
    """
    match = REPO_ID.fullmatch(text)
    if match is None:
        raise CatalogueError(f"{text[:80]!r} is no name of a model on the Hub")
    repository, commit = match[1], match[2]
    owner, name = repository.split("/")
    pin = cache() / owner / f"{name}.commit"
    if commit is None and pin.is_file():
        commit = pin.read_text("utf-8").strip()
    if commit is not None:
        path = cache() / owner / commit / name / CONFIG
        if path.is_file():
            return HubConfig(repository, commit, path)
    return _downloaded(repository, commit, pin)


def _downloaded(repository: str, wanted: str | None, pin: Path) -> HubConfig:
    """The configuration as the Hub has it now, or had it at a commit, kept in the cache."""
    owner, name = repository.split("/")
    text, commit = _fetched(repository, CONFIG, wanted)
    folder = cache() / owner / commit / name
    with suppress(NoSuchFile):
        _stored(folder / QUANTISATION, _fetched(repository, QUANTISATION, commit)[0])
    _stored(folder / CONFIG, text)
    if wanted is None:
        _stored(pin, f"{commit}\n".encode())
    return HubConfig(repository, commit, folder / CONFIG)


def _fetched(repository: str, file: str, commit: str | None) -> tuple[bytes, str]:
    """A file of a repository, and the commit that it is of."""
    try:
        from huggingface_hub import constants, errors, hf_hub_download
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "hub", f"the Hub's model {repository}") from error
    fetch: Callable[..., str] = hf_hub_download
    unreachable = CatalogueError(
        f"{repository} is not in the cache and the Hugging Face Hub cannot be reached; connect "
        "once, or give the path of its config.json"
    )
    if not _reachable(os.environ.get("HF_ENDPOINT") or constants.ENDPOINT):
        raise unreachable
    try:
        path = Path(
            fetch(
                repository, file, revision=commit, endpoint=os.environ.get("HF_ENDPOINT"),
                cache_dir=cache() / "downloads", etag_timeout=TIMEOUT_S,
            )
        )  # fmt: skip
    except errors.LocalEntryNotFoundError as error:
        raise unreachable from error
    except errors.EntryNotFoundError as error:
        raise NoSuchFile(f"{repository} has no {file} on the Hugging Face Hub") from error
    except errors.GatedRepoError as error:
        raise CatalogueError(
            f"{repository} is gated: accept its terms on the Hugging Face Hub and set HF_TOKEN, or "
            "give the path of its config.json"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CatalogueError(f"{repository} has no commit {commit} on the Hub") from error
    except errors.RepositoryNotFoundError as error:
        raise CatalogueError(
            f"the Hugging Face Hub has no model {repository}, or it is private (HF_TOKEN lets "
            "you in)"
        ) from error
    except (errors.HfHubHTTPError, OSError) as error:
        reason = str(error).split("\n")[0][:120]
        raise CatalogueError(f"the Hugging Face Hub did not give {repository}: {reason}") from error
    return path.read_bytes(), path.parent.name


def _reachable(endpoint: str) -> bool:
    """True if the endpoint accepts a connection; a configured proxy counts as reachable.

    The package asks again for half a minute before it gives up, which nobody at a terminal wants.
    """
    from urllib.request import getproxies  # a web client, which a name alone does not need

    if getproxies():
        return True
    address = urlsplit(endpoint)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        with socket.create_connection((address.hostname or "", port), TIMEOUT_S):
            return True
    except OSError:
        return False


def _stored(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)
