"""Calibrate a profile on a user's own rows: fit, held-out errors against baselines, file."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.benchmark import ceilings, read_measured
from planner.calibration import cross_validation
from planner.calibration.cross_validation import constant, score
from planner.calibration.own_fit import OwnFit, leave_one_out, own_fit, predict_times, seen_by_rows
from planner.calibration.sample import (
    BELOW_BOUND,
    Sample,
    UserRows,
    data_hull,
    fitted_row_digests,
    own_rows,
    own_sample,
    row_conditions,
    row_digest,
)
from planner.catalogue.profile import COEFFICIENTS, IN_SAMPLE, Band, Profile
from planner.catalogue.profile_choice import choose_profile, profile_fault
from planner.catalogue.systems import system, system_names
from planner.measurements.measurement import Measurement, Readings, engine_name
from planner.protocol.document import to_document
from planner.protocol.results import calibration_result as results
from planner.text.errors import InputError
from planner.text.tables import NumberFormat, toml_key, toml_lines

WORST_ROWS_SHOWN = 3  # rows that are named
MAX_REPEAT_RATIO = 1.15  # maximum ratio of two repeats by chance (6 % each, 90 %)


@dataclass(frozen=True)
class CalibratedProfile:
    """The profile, None where the rows identify none, and the result that says all of it."""

    profile: Profile | None
    result: results.FittedCalibration | results.RefusedCalibration

    @property
    def document(self) -> dict[str, object]:
        """The result as JSON."""
        return dict(to_document(self.result))

    @property
    def why(self) -> str:
        """Reason why no profile was fitted; empty string if there is a profile."""
        return self.result.why if isinstance(self.result, results.RefusedCalibration) else ""


def calibrate_profile(
    files: Mapping[str, Readings], name: str, as_of: str, like: str, measured: Path | None = None
) -> CalibratedProfile:
    """A profile fitted on the rows of files, by name, starting from a shipped one.

    Raises CatalogueError if there is no profile `like`; InputError if the measured chip is not that
    of the rows, or the file is none.

    Args:
        as_of: the day that the profile is dated.
        like: name or file of the profile to start from, `auto` for the one that a plan would take.
        measured: a file of `planner measure`, whose figures limit efficiencies.
    """
    rows = own_rows(files)
    head = (name, as_of, _files(files), _counts(rows))
    why = _too_few(rows)
    if why:
        return CalibratedProfile(None, results.RefusedCalibration(*head, "not identified", why))
    start, notes = _start(rows.usable, like)
    sample = own_sample(rows, start.as_of)
    base = seen_by_rows(start, sample.places)
    limits = _limits(rows.usable, measured)
    fit = own_fit(sample, base, limits)
    runs = len({row.id for row in sample.rows})
    left, what = leave_one_out(sample, base, limits) if runs > 1 else (None, "")
    measured_bands = cross_validation.own_bands(left) if left else {}
    scores = _scores(sample, start, left)
    coverage = cross_validation.own_coverage(left) if left else {}
    profile = replace(
        _profile(fit, sample, start, measured_bands),
        name=name,
        as_of=as_of,
        source=f"{', '.join(files)}: {runs} run{'s' * (runs > 1)} of one's own, starting from "
        f"{start.name}",
        runs=runs,
        errors=_errors(scores, coverage),
    )
    result = results.FittedCalibration(
        *head,
        "fitted",
        like=start.name,
        engine=profile.engine,
        chips=profile.chips,
        models=profile.models,
        left_out_by=what,
        errors=scores,
        coefficients=fit.coefficients,
        adjustments=[
            results.FittedAdjustment(a.of, a.scope, a.factor, a.interval)
            for a in fit.profile.adjustments[len(base.adjustments) :]
        ],
        bands=_fitted_bands(profile, start, coverage, measured_bands),
        worst=_worst(sample, left) if left else [],
        limits=limits,
        notes=[*notes, *_beside(scores, start, sample.rows), *inconsistent_repeats(sample.rows)],
    )
    return CalibratedProfile(profile, result)


def _files(files: Mapping[str, Readings]) -> list[results.CalibrationFile]:
    return [
        results.CalibrationFile(name, one.columns, one.lines, dict(sorted(one.models.items())))
        for name, one in files.items()
    ]


def _counts(rows: UserRows) -> results.CalibrationRows:
    runs, used = {row.id for row in rows.usable}, len(rows.usable)
    values = used + sum(rows.left_out.values())
    return results.CalibrationRows(rows.lines, values, used, len(runs), rows.left_out, rows.refused)


def _too_few(rows: UserRows) -> str:
    """Reason why the rows identify no coefficient, in a sentence; empty if a run is usable."""
    runs = len({row.id for row in rows.usable})
    if runs:
        return ""
    reason = "no run can be used"
    below = rows.left_out.get(BELOW_BOUND, 0)
    if below > len(rows.usable):
        reason += f", {below:,} values are faster than the bound"
        hint = "check chip, formats, layout and units of the rows"
    else:
        hint = "a profile needs one run at least, better some at different batches"
    return f"{reason}: nothing can be identified; {hint}"


def _start(rows: Sequence[Measurement], like: str) -> tuple[Profile, list[str]]:
    """The profile to start from: for most of the rows, where their chips ask for several."""
    chips = Counter(row.chip.name for row in rows)
    chip = max(sorted(chips), key=lambda name: chips[name])
    engines = sorted({engine_name(row) for row in rows})
    start, borrowed = choose_profile(like, chip, engines)
    unsound_reason = profile_fault(start)
    if unsound_reason is not None:
        raise InputError(f"{like}: is no sound profile: {unsound_reason}")
    return start, [borrowed] if borrowed else []


def _limits(rows: Sequence[Measurement], path: Path | None) -> Mapping[str, float]:
    """Upper limits of the efficiencies, from the file of a measured chip; empty without a file."""
    if path is None:
        return {}
    measured, refusals = read_measured(path), []
    for row in {row.chip.name: row for row in rows}.values():
        links = {
            one.scale_up
            for one in map(system, system_names())
            if one.chip.name == row.chip.name and one.topology == row.machine
        }
        link = links.pop() if len(links) == 1 else None
        try:
            return ceilings(measured, row.chip, link)
        except InputError as error:
            refusals.append(str(error))
    raise InputError(f"{path.name}: {refusals[0]}")


def _scores(
    sample: Sample, start: Profile, left: cross_validation.LeftOut | None
) -> dict[str, results.MethodScores]:
    """Errors by quantity: of the profile before, of fits that did not see a row, of baselines."""
    before, roofs = predict_times(sample, start), sample.columns.roofline
    scores_by_quantity = {}
    for name, mask in cross_validation.quantities(sample).items():
        if not mask.any():
            continue
        seconds = sample.seconds[mask]
        folds = left.fold[mask] if left else np.zeros(len(seconds))
        scaled = constant(roofs[mask], seconds, cross_validation.folds(folds))
        scores_by_quantity[name] = results.MethodScores(
            before=score(before[mask], seconds),
            after=score(left.estimate[mask], seconds) if left else None,
            constant=score(scaled, seconds),
            roofline=score(roofs[mask], seconds),
        )
    return scores_by_quantity


def _beside(
    scores: Mapping[str, results.MethodScores], start: Profile, rows: Sequence[Measurement]
) -> list[str]:
    """Notes on the errors of the starting profile: in sample, untested, or not improved."""
    digests = fitted_row_digests(start.name)
    seen = sum(row_digest(row) in digests for row in rows) if digests else 0
    if seen:
        return [
            f"IN SAMPLE: {start.name} was fitted on {seen:,} of these {len(rows):,} values, so its "
            "errors as it is are no errors on rows left out"
        ]
    after = [(each.after, each.before) for each in scores.values() if each.after]
    if not after:
        return ["one run leaves none to test on: the error after it is not known"]
    if any(now.mean < before.mean for now, before in after):
        return []
    return [
        f"on rows left out this profile errs no less than {start.name} as it is: these rows ask "
        "for none of their own"
    ]


def inconsistent_repeats(rows: Sequence[Measurement]) -> list[str]:
    """Sentences on configurations whose rows differ by more than `MAX_REPEAT_RATIO`."""
    alike = defaultdict(list)
    for row in rows:
        alike[row_conditions(row)].append(row)
    sentences = []
    for members in alike.values():
        low, high = (end(members, key=lambda row: row.seconds) for end in (min, max))
        ratio = high.seconds / low.seconds
        if ratio > MAX_REPEAT_RATIO:
            sentences.append(
                f"{low.id} and {high.id} contradict each other: the same configuration, and "
                f"{low.quantity} differs by a factor of {ratio:.3g}"
            )
    return sentences


def _profile(fit: OwnFit, sample: Sample, start: Profile, measured: Mapping[str, Band]) -> Profile:
    """Fitted profile with its chips, models, engines, hull and all bands; without its errors."""
    bands = cross_validation.regime_bands(start, measured)
    return replace(
        fit.profile,
        chips=tuple(sorted(set(sample.column("chip_name").tolist()))),
        # As the checkpoint is called that ran, and as a scenario with `choose.weights` calls it.
        models=tuple(sorted({n for row in sample.rows for n in (row.sizes.name, row.model)})),
        engines=tuple(sorted({p.engine for p in sample.places if p.engine})),
        rows=len(sample.rows),
        bands=bands[IN_SAMPLE]["any"],
        all_bands=bands,
        hull=start.hull.joined(data_hull(sample)) if start.hull else None,
    )


def _errors(
    scores: Mapping[str, results.MethodScores], coverage: Mapping[str, float]
) -> Mapping[str, float]:
    errors: dict[str, float] = {}
    for quantity, by_method in scores.items():
        errors |= by_method.after.named(quantity) if by_method.after else {}
        errors[f"{quantity}_before_median"] = by_method.before.median
        errors[f"{quantity}_constant_median"] = by_method.constant.median
        errors[f"{quantity}_roofline_median"] = by_method.roofline.median
    return errors | {f"{name}_band_holds": share for name, share in coverage.items()}


def _fitted_bands(
    profile: Profile, start: Profile, coverage: Mapping[str, float], measured: Mapping[str, Band]
) -> dict[str, results.FittedBand]:
    bands = {}
    for name, band in profile.bands.items():
        holds = coverage.get(name) if name in measured else None
        source = "rows left out" if name in measured else start.name
        fewest = cross_validation.MIN_USER_BAND_ROWS
        bands[name] = results.FittedBand(band.low, band.high, fewest, holds, source)
    return bands


def _worst(sample: Sample, left: cross_validation.LeftOut) -> list[results.WorstRow]:
    off = np.abs(np.log(left.estimate / sample.seconds))
    order = np.argsort(-off, kind="stable")[:WORST_ROWS_SHOWN].tolist()
    times = [(float(sample.seconds[i]), float(left.estimate[i])) for i in order]
    rows = [sample.rows[i] for i in order]
    return [
        results.WorstRow(row.id, row.quantity, *both) for row, both in zip(rows, times, strict=True)
    ]


SIX_DIGITS = "{:.6g}".format


def profile_text(profile: Profile, comments: Iterable[str] = (), **more: str) -> str:
    """The profile as a TOML file; numbers to six digits.

    Args:
        comments: lines that stand at its head.
        more: keys that are kept beside those of a profile, such as what it started from.
    """
    lines = [
        *(f"# {' '.join(line.split())}" for line in comments),
        *toml_keys(profile, "name", "as_of", "engine", "chips", "models", "engines"),
        *toml_keys(profile, "rows", *(["runs"] if profile.runs else []), "source", "coverage"),
        *toml_lines(more, SIX_DIGITS),
        "# Not identified by the rows: as they were in the profile that the fit started from.",
        *toml_lines({"held": profile.unidentified}, SIX_DIGITS),
        *tables(profile, ", where the fit started.", SIX_DIGITS, toml_key),
    ]
    return "\n".join(lines) + "\n"


def toml_keys(of: object, *names: str, number: NumberFormat = SIX_DIGITS) -> Iterator[str]:
    """Attributes as keys of a TOML table, a line each."""
    yield from toml_lines({name: getattr(of, name) for name in names}, number)


def section(
    name: str, values: Mapping[str, object], number: NumberFormat = SIX_DIGITS, remark: str = ""
) -> Iterator[str]:
    """A table of a TOML file, a line each, after an empty one and a remark."""
    yield from ("", *([f"# {remark}"] if remark else ()), f"[{name}]")
    yield from toml_lines(values, number)


def tables(
    profile: Profile, remark: str, number: NumberFormat, key: Callable[[str], str]
) -> Iterator[str]:
    """Every table of a profile's file; `remark` on its spread, engines of bands spelt by `key`."""
    yield from section("coefficients", {c: profile.values[c] for c in COEFFICIENTS}, number)
    yield from section("intervals", profile.intervals, number)
    for x in profile.adjustments:
        monthly = {"monthly": True} if x.monthly else {}
        values = {"of": x.of, **x.scope, "factor": x.factor, "interval": x.interval, **monthly}
        yield from section("[adjustments]", values, number)
    for kind, engines in profile.all_bands.items():
        for engine, bands in engines.items():
            ends = {quantity: (band.low, band.high) for quantity, band in bands.items()}
            yield from section(f"bands.{toml_key(kind)}.{key(engine)}", ends, number)
    if profile.spread:
        words = f"Of logarithms of measured over predicted price{remark}"
        yield from section("spread", profile.spread, number, words)
    yield from section("errors", profile.errors, number)
    if profile.hull is not None:
        words, hull = "What the rows cover: names, and ends of ranges.", profile.hull
        yield from section("hull", {**hull.names, **hull.ranges}, remark=words)
        if hull.widths:
            words = "Standard deviations of logarithms before any row was seen."
            yield from section("hull.widths", hull.widths, remark=words)
