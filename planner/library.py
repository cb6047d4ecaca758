"""The commands as functions: what `planner sensitivity`, `topology`, ... answer, in Python.

Each has the power of its command and answers with an object or a document in place of text.
`planner.solve`, `sweep`, `pareto`, `export`, `check`, `model` and `catalog` stand with what they
do; these are the others. Everything heavy is imported inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planner.sensitivity.elasticities import Elasticities, elasticity_table
from planner.text.console import note
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.calibration.own_profile import CalibratedProfile
    from planner.measurements.entry import Entry
    from planner.measurements.readers.sheets import Measurements
    from planner.protocol.plan import Plan
    from planner.protocol.results.validation_result import ValidationDocument
    from planner.scenario.loading import Source
    from planner.uncertainty.global_study import Study
    from topologies.fabric.fabric import Fabric

Document = Mapping[str, object]
Facts = Mapping[str, str] | Iterable[str]


def sensitivity(
    of: Plan | Source,
    *,
    output: str | None = None,
    sets: Sequence[str] = (),
    switches: bool = False,
    sobol: int | None = None,
    morris: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> Elasticities | Study:
    """Compute the elasticity of an output with respect to each parameter of a scenario.

    Raises InputError with every mistake in the input, or if the answer has no such output;
    Infeasible if nothing keeps the promises.

    Args:
        of: a plan, or what `planner.solve` takes. Of a plan alone come the elasticities of its
            objective, which it has from the multipliers of its geometric program (envelope theorem)
            without another solve; a quantity without influence is absent.
        output: what of the answer is looked at, such as cost, tpot, throughput, tokens or
            over_training; the cost if None. All given quantities are then in the table.
        sets: changes "path.in.file=value" made before.
        switches: seek, for each quantity, the nearest change each way at which another choice is
            the best, by solving again.
        sobol, morris, seed, workers: study what the scenario's `uncertain:` says instead, with so
            many base draws, or trajectories, in so many processes: a `Study` comes back.
    """
    from planner.protocol.plan import Plan
    from planner.protocol.section import largest_elasticities

    if sobol is not None or morris is not None:
        from planner.uncertainty.global_study import run_global_sensitivity

        source = of.scenario if isinstance(of, Plan) else of
        return run_global_sensitivity(
            source, output, sets, sobol=sobol, morris=morris, seed=seed, workers=workers
        )
    if isinstance(of, Plan):
        if output is None and not sets and not switches:
            return Elasticities(largest_elasticities(of.elasticities))
        of = of.scenario
    return elasticity_table(of, output, sets, switches=switches)


@dataclass(frozen=True)
class TopologyReport:
    """A network (`fabric`, a directed graph of links [byte/s]) and what groups on it reach.

    `document` is what `planner topology --json` prints; `str()` is the terminal's text; `warnings`
    are sentences on what the network does not say.
    """

    fabric: Fabric = field(repr=False)
    document: Document = field(repr=False)
    name: str
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        from planner.report.text.topology import topology_text

        return topology_text(self.document)

    def write(self, out: str | Path) -> None:
        """Write the network as .svg, .json, .yaml or .graphml; InputError for another ending."""
        from planner.report.text.topology import write_fabric

        write_fabric(self.fabric, Path(out))


def topology(
    name: str | Path,
    chips: int | None = None,
    *,
    shape: str | None = None,
    twisted: bool = False,
    join: str | None = None,
    leaf: int | None = None,
    oversubscription: float | None = None,
    groups: Sequence[int] = (),
    collective: str | None = None,
    messages: Sequence[float] = (),
    routing: str = "optimal",
) -> TopologyReport:
    """A machine of the catalogue or a network in a file, checked and measured.

    Raises InputError if there is no such machine or file, or it cannot be measured as asked.

    Args:
        chips: how many chips of the machine, by default one domain of it.
        shape: a slice of a torus, "4x4x8"; `twisted` twists it.
        join: what joins domains: spine, rails or clos; a clos has `leaf` network cards on a leaf.
        oversubscription: 4 for 4:1 above leaves or rails.
        groups: sizes of the groups that are measured [chips].
        collective: an operation that is timed too, such as "all-reduce", of `messages` [byte].
        routing: how an all-to-all is sent, "optimal" or "shortest_ecmp".
    """
    from planner.network.network_document import measurements
    from planner.network.network_source import network

    wired = network(
        str(name),
        chips,
        shape,
        twisted=twisted,
        join=join,
        leaf=leaf,
        oversubscription=oversubscription,
    )
    document = measurements(wired, groups, routing, collective=collective, messages=messages)
    return TopologyReport(wired.fabric, document, wired.name, tuple(wired.warnings))


@dataclass(frozen=True)
class Validation:
    """Validation result: predicted against measured values, compared with trivial baselines.

    `document` is what `planner validate --json` prints; `str()` is the terminal's text, `page` an
    HTML page of its own.
    """

    result: ValidationDocument = field(repr=False)
    tables: tuple[tuple[Measurements, Sequence[Entry]], ...] = field(repr=False)

    @cached_property
    def document(self) -> Document:
        """The validation as JSON."""
        return self.result.to_json()

    def __str__(self) -> str:
        from planner.report.text.validation_text import validation_text

        return validation_text(self.result)

    @cached_property
    def page(self) -> str:
        """The validation as an HTML page with pictures."""
        from planner.report.pages.validation_page import page

        return page(self.result)

    @property
    def predictions(self) -> str:
        """Rows of the only table as CSV, with the prediction for each row."""
        from planner.validation.estimates import predictions_text

        ((table, entries),) = self.tables
        return predictions_text(table, entries)

    def _repr_html_(self) -> str:
        return self.page


def validate(
    data: Sequence[str | Path] = (),
    profile: str = "auto",
    *,
    facts: Facts = (),
    models: Sequence[Path] = (),
    by: Sequence[str] = ("engine", "chip", "model"),
) -> Validation:
    """Compare predictions with measurements: errors by part, quantity and group.

    Raises InputError if a file holds no measurements, facts are missing, or the profile is not
    known.

    Args:
        data: files of measurements, or folders of them, of which every table is read that can be;
            without any, what profiles record.
        profile: a profile's name, or "auto" for the one that a plan would take.
        facts: what a file does not say of its runs, {"system": "hgx-h200"} or "system=hgx-h200".
        models: folders of config.json of models that the catalogue lacks.
        by: groupings of the tables: engine, chip, model, maker.
    """
    from planner.measurements.entry import parse_facts
    from planner.validation.estimates import measurement_files, predict_files
    from planner.validation.validation_document import document

    files = measurement_files([Path(path) for path in data])
    made = predict_files(files, profile, parse_facts(_texts(facts)), models)
    for file in made.skipped:
        note(f"planner: {file}", warning=True)
    return Validation(document(profile, made.tables, by, skipped=made.skipped), made.tables)


def calibrate(
    data: Sequence[str | Path],
    name: str,
    out: str | Path | None = None,
    *,
    like: str = "auto",
    measured: Path | None = None,
    facts: Facts = (),
    models: Sequence[Path] = (),
    as_of: str | None = None,
) -> CalibratedProfile:
    """Fit a calibration profile to the user's own runs, starting from a shipped profile.

    Its `profile` is None where the rows identify none, and `why` says so. Raises InputError if a
    file holds no measurements, or a name, a day or a file cannot be used.

    Args:
        data: CSV files, or what vLLM, SGLang and GuideLLM write; folders are looked through.
        name: what the profile is called.
        out: a .toml file that the profile is written to; a scenario names it as `profile:`.
        like: name or file of the profile to start from; "auto" takes the one that a plan would.
        measured: a file of `planner measure`, whose figures limit efficiencies.
        facts, models: as for `validate`.
        as_of: day of the runs, "2026-11-21"; today if None.
    """
    from planner.calibration.own_profile import calibrate_profile, profile_text
    from planner.measurements.entry import parse_facts
    from planner.measurements.readers import read
    from planner.report.files import write

    paths = _files_in(data)
    file, day = _profile_file(name, out, paths), _day(as_of)
    named = parse_facts(_texts(facts))
    files = {label: read(path, models, **named) for label, path in _labelled(paths).items()}
    fit = calibrate_profile(files, name, day, like, measured)
    if fit.profile is not None and file is not None:
        start = str(fit.document["like"])
        comments = [
            f"Written by planner calibrate from runs of one's own, starting from {start}.",
            "Intervals hold 80 %. Errors are on runs that the fit did not see. Bands: measured /",
            "predicted, by what is known of a place: chip and model, the chip alone, neither.",
        ]
        write(file, profile_text(fit.profile, comments, started_from=start))
    return fit


def calibrate_training(
    data: Sequence[str | Path], name: str, out: str | Path | None = None
) -> dict[str, object] | None:
    """A training stack fitted to tables of training layouts; None where files are none.

    Raises InputError for too few rows with a step time, or a name or file that cannot be used.

    Args:
        out: a .toml file that the stack is written to; a scenario names it as `profile:`.
    """
    from planner.calibration.stack_file import stack_table, stack_text
    from planner.measurements.readers import detect_file_kind
    from planner.measurements.readers.sheets import open_tables
    from planner.measurements.readers.training_rows import training_rows
    from planner.measurements.training_steps import TRAINING
    from planner.report.files import write

    paths = _files_in(data)
    if not paths or any(detect_file_kind(open_tables(path)) != TRAINING for path in paths):
        return None
    file = _profile_file(name, out, paths)
    rows = [row for path in paths for row in training_rows(path) if not row.reason]
    table = stack_table(name, rows)
    if file is not None:
        head = "# Written by planner calibrate: a training stack fitted to runs of one's own.\n"
        write(file, head + stack_text(table))
    return table


def _files_in(data: Sequence[str | Path]) -> tuple[Path, ...]:
    from planner.validation.estimates import measurement_files

    files = measurement_files([Path(path) for path in data])
    for file in files.skipped:
        note(f"planner: {file}", warning=True)
    return files.paths


def _labelled(paths: Sequence[Path]) -> dict[str, Path]:
    names = [path.name for path in paths]
    return {x.name if names.count(x.name) == 1 else str(x): x for x in paths}


def _texts(facts: Facts) -> list[str]:
    if isinstance(facts, Mapping):
        return [f"{name}={value}" for name, value in facts.items()]
    return list(facts)


def _profile_file(name: str, out: str | Path | None, paths: Sequence[Path]) -> Path | None:
    """The file that a profile is written to; InputError where its name or the file cannot be used.

    A name that ships is another's, and a file of the measurements is not written over.
    """
    from planner.catalogue.profile import profile_names

    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InputError("--name: expected a name such as our-h200s")
    if name == "auto" or name in profile_names():
        raise InputError(f"--name {name}: is the name of a profile that ships; choose another")
    if out is None:
        return None
    file = Path(out)
    if file.suffix != ".toml":
        raise InputError(f"--out {out}: expected a file that ends in .toml, such as mine.toml")
    if file.is_dir():
        raise InputError(f"--out {out}: is a folder, expected a file such as mine.toml")
    if file.resolve() in [path.resolve() for path in paths]:
        raise InputError(f"--out {file}: is a file of the measurements; name another")
    return file


def _day(text: str | None) -> str:
    if text is None:
        return date.today().isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(f"--as-of {text}: expected a date such as 2026-11-21") from None
