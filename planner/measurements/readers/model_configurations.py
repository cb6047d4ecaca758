"""Configurations in folders for models that the catalogue does not hold.

A folder holds them as `org--Name_config.json`, or as `config.json` in a folder `Name` or
`org/Name`. An entry of the catalogue with the very name of an id wins; so does one that an id names
but for its tuning, unless a file of that id has another shape. Any other file of the very name
comes next, then a file that the id names but for tuning, release or format.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from planner.architecture import sizes
from planner.architecture.huggingface import read_config
from planner.measurements import published_names
from planner.measurements.readers.sheets import Sheet
from planner.text.errors import InputError, ModelError

BESIDE = "hf_configs"  # a folder of this name beside a file of measurements is looked into
PATTERNS = ("*_config.json", "*/config.json", "*/*/config.json")
QUANT = "_hf_quant_config.json"  # stands beside a configuration


@dataclass(frozen=True)
class Configurations:
    """Files of configurations by the letters of the models' names, one mapping for each folder.

    `beside` is the folder of the measurements, where paths in them begin.
    """

    folders: tuple[Mapping[str, str], ...]
    beside: Path

    def cell(self, published: str) -> str:
        """What stands for a model's name: the name itself, or a configuration and the name."""
        path = published_names.CONFIG.fullmatch(published)
        if path is not None:
            near = self.beside / published
            return str(near) if path[2] is None and near.is_file() else published
        if not published or published_names.is_entry(published):
            return published
        configuration, entry = self._configuration(published), _entry(published)
        if configuration is not None and not (entry and _same_shape(configuration, entry)):
            return f"{configuration}#{published}"
        nearest = None if configuration or entry else self._nearest(published)
        return f"{nearest}#{published}" if nearest else published

    def located(self, table: Sheet, column: str | None) -> tuple[Sheet, dict[str, str]]:
        """The table with `cell` in a column, and the file of each name that has one."""
        if column is None:
            return table, {}
        at = table.columns.index(column)
        cells = {name: self.cell(name) for name in {row[at].strip() for row in table.rows}}
        rows = tuple(
            (*row[:at], cells[row[at].strip()], *row[at + 1 :])
            if cells[row[at].strip()] != row[at].strip()
            else row
            for row in table.rows
        )
        return replace(table, rows=rows), used_configurations(cells.values())

    def _configuration(self, published: str) -> str | None:
        """The file of the very name; with the organisation, if a folder holds several."""
        name = published_names.letters(published.rstrip("/").split("/")[-1])
        for files in self.folders:
            path = files.get(_full_name(published)) or files.get(name)
            if path is not None:
                return path
        return None

    def _nearest(self, published: str) -> str | None:
        matches = (published_names.named_in(published, files) for files in self.folders)
        return next((file for file in matches if file is not None), None)


def configurations(folders: Sequence[Path], measurements: Path) -> Configurations:
    """The configurations in folders, and in the folder BESIDE that stands beside a file.

    Raises InputError if one of the folders is none, or holds no configuration.
    """
    folders_read = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"--models {folder}: is no folder")
        files = _files(folder)
        if not files:
            names = "org--Name_config.json, or Name/config.json"
            raise InputError(f"--models {folder}: holds no configuration ({names})")
        folders_read.append(files)
    beside = measurements.parent / BESIDE
    if beside.is_dir() and beside not in folders:
        folders_read.append(_files(beside))
    return Configurations(tuple(folders_read), measurements.parent)


def used_configurations(cells: Iterable[str]) -> dict[str, str]:
    """The file of each name that has one."""
    matches = (published_names.CONFIG.fullmatch(cell) for cell in cells)
    return {each[2] or each[1]: each[1] for each in matches if each is not None}


def _files(folder: Path) -> dict[str, str]:
    """Files of a folder by the letters of names, with and without organisation."""
    names: dict[str, str] = {}
    for pattern in PATTERNS:
        for file in sorted(folder.glob(pattern)):
            within = file.relative_to(folder)
            name = "/".join(within.parts[:-1]) or file.name.removesuffix("_config.json")
            if not file.name.endswith(QUANT):
                names.setdefault(name.replace("--", "/", 1), str(file))
    paths = {_full_name(name): path for name, path in names.items()}
    for place in range(3):  # a name that is whole goes before one without its last words
        for name, path in names.items():
            for key in published_names.spellings(name)[place : place + 1]:
                paths.setdefault(key, path)
    return paths


def _full_name(name: str) -> str:
    """Letters of a name with its organisation; none, where it has none."""
    organisation, slash, rest = name.strip().rstrip("/").rpartition("/")
    return "/".join(map(published_names.letters, (organisation, rest) if slash else (rest,)))


def _entry(published: str) -> str | None:
    try:
        return published_names.model_of(published).name
    except published_names.Refused:
        return None


def _same_shape(file: str, entry: str) -> bool:
    """Whether a configuration has the shape of an entry, as far as it can be read."""
    try:
        configured = sizes(read_config(file), None, None)
    except ModelError:
        return True
    shape = attrgetter("n_layers", "hidden", "n_total")
    return bool(shape(configured) == shape(published_names.sizes_of(entry, None, None)))
