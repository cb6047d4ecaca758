"""Parts of a sweep beside its output: written whole or not at all, found again, put together.

`FILE.parts/` holds `manifest.json` and one file for each chunk, named by its first and last point
and by the sweep it belongs to. A run that is killed leaves whole parts only.
"""

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from planner.protocol.columns import Columns
from planner.report.files import linked, write
from planner.sweep.formats import PARTS, Meta, assembled, encoded, kind_of, meta_of, rows_in
from planner.text.console import note
from planner.text.errors import InputError, SolverError

MANIFEST = "manifest.json"
LOCK = "lock"
NAMED = re.compile(r"(\d{12})-(\d{12})\.([0-9a-f]{12})\.(\w+)")


class Parts:
    """The parts of one sweep, and the file they will be.

    Raises InputError if the folder holds parts of another sweep, or of this one and `resume` is not
    asked for.

    Parameters
    ----------
    out : the file; its ending says of which kind.
    meta : what the sweep is: its `digest`, `version`, `points`, units and scenario.
    """

    def __init__(self, out: Path, meta: Meta, *, resume: bool) -> None:
        self.out = out
        self.kind = kind_of(out)
        self.meta = meta
        self.folder = out.with_name(f"{out.name}.parts")
        self.digest = str(meta["digest"])[:12]
        self.ranges: list[tuple[int, int, Path]] = []
        try:
            linked(out)
            # Before anything is read or written: the manifest is of the run that has the lock.
            self._lock = _locked(self.folder / LOCK)
        except OSError as error:
            raise InputError(f"{out} cannot be written: {error.strerror or error}") from error
        try:
            self._refuse_other(resume)
            write(self.folder / MANIFEST, json.dumps(meta, indent=2, default=str))
            self.ranges = self._sound()
        except BaseException:
            self.close()
            raise

    @classmethod
    def finished(cls, out: Path, meta: Meta) -> bool:
        """Whether the file is this very sweep, complete; InputError if it is another one."""
        if not out.is_file() or out.with_name(f"{out.name}.parts").exists():
            return False
        there = meta_of(out, kind_of(out))
        if there and all(there[key] == meta[key] for key in ("digest", "version")):
            return True
        raise InputError(
            f"--resume {out}: is no unfinished sweep of this scenario and grid; "
            "name another --out, or leave --resume out to write it anew"
        )

    @property
    def done(self) -> int:
        """Points that are kept."""
        return sum(last - first + 1 for first, last, _ in self.ranges)

    def missing(self, points: int) -> list[tuple[int, int]]:
        """Ranges (first, last) of points that no part holds."""
        ranges, start = [], 0
        for first, last, _ in sorted(self.ranges):
            if first > start:
                ranges.append((start, first - 1))
            start = last + 1
        return [*ranges, (start, points - 1)] if start < points else ranges

    def keep(self, first: int, last: int, columns: Columns) -> None:
        """Write the rows of points `first` to `last`.

        Raises SolverError if the disk is full or broken.
        """
        part = self.folder / f"{first:012d}-{last:012d}.{self.digest}.{PARTS[self.kind]}"
        write(part, encoded(columns, self.kind, {"digest": self.meta["digest"]}))
        self.ranges.append((first, last, part))

    def finish(self) -> dict[str, int]:
        """Put the parts together, and remove them; how many rows have each status.

        Raises SolverError if the disk is full or broken; the parts are kept.
        """
        target = linked(self.out)
        # One name in every run: what a killed one left is written over. The lock keeps others out.
        whole = target.with_name(f".{target.name[:200]}.part")
        try:
            ordered = [part for *_, part in sorted(self.ranges)]
            statuses = assembled(ordered, whole, self.kind, self.meta)
            if self.kind != "parquet":
                beside = self.out.with_name(f"{self.out.name}.meta.json")
                (self.folder / MANIFEST).replace(beside)
            whole.replace(target)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SolverError(f"{self.out} cannot be written: {reason}") from error
        finally:
            whole.unlink(missing_ok=True)
        shutil.rmtree(self.folder)  # under the lock: a run that waits for it begins a new folder
        self.close()
        return statuses

    def close(self) -> None:
        """Let another run have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _refuse_other(self, resume: bool) -> None:
        """Refuse a folder that this sweep must not touch."""
        try:
            manifest = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            manifest = {}
        parts = [match for name in _names(self.folder) if (match := NAMED.fullmatch(name))]
        if not parts:
            return
        if foreign := [part[0] for part in parts if part[3] != self.digest]:
            raise InputError(
                f"{self.folder / min(foreign)}: is of another scenario or grid; "
                "name another --out, or remove the folder"
            )
        if manifest.get("version", self.meta["version"]) != self.meta["version"]:
            raise InputError(
                f"{self.folder}: was begun by version {manifest['version']}, this is "
                f"{self.meta['version']}; name another --out, or remove the folder"
            )
        if not resume:
            raise InputError(
                f"{self.folder}: holds an unfinished sweep; go on with --resume, "
                "or remove the folder to begin anew"
            )

    def _sound(self) -> list[tuple[int, int, Path]]:
        """Whole parts of the folder; torn ones are removed and will be computed again."""
        sound: list[tuple[int, int, Path]] = []
        for name in sorted(_names(self.folder)):
            part, match = self.folder / name, NAMED.fullmatch(name)
            if name.endswith(".part"):
                part.unlink(missing_ok=True)  # what a killed run was writing
            if match is None or match[4] != PARTS[self.kind]:
                continue
            first, last = int(match[1]), int(match[2])
            overlaps = bool(sound) and first <= sound[-1][1]
            if overlaps or rows_in(part, self.kind) != last - first + 1:
                note(f"{part}: is torn; its points are computed again", warning=True)
                part.unlink()
                continue
            sound.append((first, last, part))
        return sound


def _names(folder: Path) -> Sequence[str]:
    return os.listdir(folder)


def _locked(file: Path) -> int | None:
    """Hold the folder against a second run; given up by the system when this run ends, however."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        return None
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return lock
    except OSError as error:
        os.close(lock)
        raise InputError(f"{file.parent}: another run is at work on this sweep") from error
    os.close(lock)  # of a run that ended in this moment and took its folder with it
    return _locked(file)
