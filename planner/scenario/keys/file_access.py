"""Whether a scenario may point to files: anywhere, below one folder, or nowhere.

What answers somebody else's scenario (a server, an agent's tool) opens no path that stands in it,
and does not say whether there is one: it is refused where names are read, before it is opened.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FileAccess:
    """Where files may lie that a scenario names: below `folder`, nowhere if it is None."""

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
