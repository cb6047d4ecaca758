"""A scaling law by name, from a file, from a mapping, or fitted to points of the user's own.

A file is TOML, YAML or JSON of the shape of a catalogue entry: `form`, `coefficients` (a number,
or `value` with `error`, or `low` and `high`), and where wanted `title`, `source`, `as_of`,
`scope`, `range`, `settings`, `covariance`. In place of coefficients, `fit: points.csv` fits the
form of Hoffmann's third approach. `law: NAME` with `routing: NAME` puts a routed law on a dense
one, as does the text `besiroglu-2024 + clark-2022-s-base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.catalogue.scaling_laws import Covariance, law, law_names
from planner.laws.law_entry import entry_faults, entry_of
from planner.laws.scaling import ScalingLaw, of_catalogue
from planner.scenario.loading import read
from planner.text.errors import FieldError, InputError, quoted

__all__ = ["ScalingLaw", "scaling_law"]

FILES = (".toml", ".yaml", ".yml", ".json")
FIT_KEYS = ("fit", "drop_highest", "resamples", "seed", "title", "name")


def scaling_law(
    source: str | Path | Mapping[str, Any] | ScalingLaw, folder: Path | None = None
) -> ScalingLaw:
    """The law of a catalogue name, two names with a plus, a file, or a mapping.

    Parameters
    ----------
    source
        See the module. A CSV file is fitted.
    folder
        That of the scenario, against which a relative path is read.

    Raises
    ------
    CatalogueError
        If no law is called so.
    InputError
        If a file cannot be read or is no law, with every mistake.
    FieldError
        If a mapping is no law, or a law gives a reward and no loss; at `law`.
    """
    if isinstance(source, ScalingLaw):
        return source
    if isinstance(source, Mapping):
        return _of_mapping(source, "law", folder)
    text = str(source)
    suffix = Path(text).suffix.lower()
    if suffix in FILES:
        return _of_file(_placed(text, folder), folder)
    if suffix == ".csv":
        return _fitted({"fit": text}, folder, Path(text).stem)
    if "+" in text:
        dense, _, routing = (part.strip() for part in text.partition("+"))
        return scaling_law(dense, folder).routed_by(scaling_law(routing, folder))
    return _loss_law(text)


def _loss_law(name: str) -> ScalingLaw:
    entry = law(name)
    if entry.form == "sigmoid":
        known = ", ".join(each for each in law_names() if law(each).form == "chinchilla")
        raise FieldError(
            ("law", f"{name} gives a reward over reinforcement learning and no loss; a loss is "
                    f"given by {known} and others"),
        )  # fmt: skip
    return of_catalogue(entry)


def _of_file(path: Path, folder: Path | None) -> ScalingLaw:
    tree = read(path)
    if tree.mistakes:
        raise InputError(tree.mistakes)
    if not isinstance(tree.data, Mapping):
        raise InputError(tree.mistake((), f"expected a law, got {quoted(tree.data)}"))
    try:
        return _of_mapping(tree.data, "", path.parent, path.stem)
    except FieldError as error:
        faults = [(tuple(p for p in at.split(".") if p), text) for at, text in error.faults]
        raise InputError(tree.mistake(at, text) for at, text in faults) from None


def _of_mapping(
    given: Mapping[str, Any], at: str, folder: Path | None, name: str = "given"
) -> ScalingLaw:
    """A law from a mapping that stands at a dotted path."""
    name = str(given.get("name", name))
    if "law" in given or "routing" in given:
        return _pair(given, at, folder)
    if "fit" in given:
        return _fitted(given, folder, name, at)
    faults = entry_faults(given)
    if faults:
        raise FieldError(*((".".join(p for p in (at, path) if p), text) for path, text in faults))
    return of_catalogue(entry_of(name, given))


def _pair(given: Mapping[str, Any], at: str, folder: Path | None) -> ScalingLaw:
    """A dense law, bearing a routed one where there is one."""
    if set(given) - {"law", "routing", "name"} or not isinstance(given.get("law"), str | Mapping):
        raise FieldError((at or "law", "expected law: NAME, and with it routing: NAME"))
    files = [x for x in given.values() if str(x).lower().endswith(FILES)]
    if not at and files:
        raise FieldError(("law", f"a file of a law cannot name another file, {quoted(files[0])}"))
    dense = scaling_law(given["law"], folder)
    if "routing" not in given:
        return dense
    return dense.routed_by(scaling_law(given["routing"], folder))


def _fitted(given: Mapping[str, Any], folder: Path | None, name: str, at: str = "") -> ScalingLaw:
    """The law fitted to a CSV file of points."""
    from planner.laws.law_fit import COORDINATES, fit_law

    wrong = [key for key in given if key not in FIT_KEYS]
    wrong += [x for x in ("drop_highest", "resamples", "seed") if not _counts(given.get(x, 0))]
    if wrong or not isinstance(given["fit"], str):
        path = ".".join(part for part in (at, wrong[0] if wrong else "fit") if part)
        raise FieldError((path, f"expected fit: points.csv, with whole {', '.join(FIT_KEYS[1:4])}"))
    options = {x: int(given[x]) for x in ("drop_highest", "resamples", "seed") if x in given}
    found = fit_law(_placed(given["fit"], folder), **options)
    spread, correlation = found.spread_and_correlation
    size, tokens = found.points.size, found.points.tokens
    return ScalingLaw(
        name=name,
        form="chinchilla",
        title=str(given.get("title", f"fit of {Path(found.points.file).name}")),
        source=f"{len(found.points)} points of {Path(found.points.file).name}",
        as_of="given",
        scope=f"{len(found.points)} runs of {Path(found.points.file).name}",
        values=found.values,
        errors=found.errors,
        covariance=Covariance(
            COORDINATES, spread, correlation, f"{len(found.resamples)} resamples of the points"
        ),
        limits={
            "n": (float(size.min()), float(size.max())),
            "d": (float(tokens.min()), float(tokens.max())),
            "sparsity": (1.0, 1.0),
        },
        note=f"root mean square {found.scatter:.2g} in the logarithm of the loss",
    )


def _placed(text: str, folder: Path | None) -> Path:
    path = Path(text).expanduser()
    return path if folder is None or path.is_absolute() else folder / path


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 100_000
