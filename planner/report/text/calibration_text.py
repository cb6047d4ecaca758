"""A calibration on a terminal: rows used and left out, errors before and after, what moved."""

from planner.catalogue.profile import EFFICIENCIES
from planner.protocol.calibration_result import CalibrationResult, FittedCalibration
from planner.report.text.validation_text import HEAD, reasons, score_line, shapes
from planner.text.wording import duration, printable, wrapped

NAMES = {"tpot": "Time per token", "ttft": "Time to first token"}
BANDS = {"tpot": "TPOT", "ttft": "TTFT", "usd_per_mtok": "cost"}
COUNTS = ("n_sched",)  # steps, not seconds
SAID = {
    "moved": "moved",
    "kept": "kept",
    "limited": "held: what the chip sustains",
    "joint": "moved with others",
}
REST = {
    "inseparable": "as it was, for the rows cannot tell it apart from others",
    "idle": "as it was, for it takes no time worth counting in these rows",
}


def calibration_text(document: CalibrationResult, out: str) -> str:
    """The calibration, whose profile is written to `out`, as lines of at most 80 columns."""
    lines = [f"{document.calibration} ({document.as_of})", *_rows(document)]
    if isinstance(document, FittedCalibration):
        lines += [line for note in document.notes for line in wrapped(note)]
        lines += [*_errors(document), *_coefficients(document), *_bands(document)]
        lines += [*(_worst(document) if document.worst else []), ""]
        lines += wrapped(f"in a scenario, relative to its file: profile: {out}")
    return printable("\n".join(lines))


def _rows(document: CalibrationResult) -> list[str]:
    rows = document.rows
    names = ", ".join(f"{one.name} ({one.kind})" for one in document.files)
    lines = wrapped(f"{rows.lines:,} line{'s' * (rows.lines != 1)} of {names}")
    lines += [line for one in document.files for line in shapes(one.models)]
    lines += wrapped(
        f"{rows.used:,} of {rows.values:,} values used, of {rows.runs:,} "
        f"run{'s' * (rows.runs != 1)}"
    )
    return lines + reasons(rows.left_out, "left out", "left out", rows.left_out_rows)


def _errors(document: FittedCalibration) -> list[str]:
    labels = {
        "before": f"{document.like} as it is",
        "after": "own, on rows left out",
        "constant": "constant x roofline",
        "roofline": "plain roofline",
    }
    lines = []
    if document.left_out_by:
        lines = wrapped(
            f"own errors are of fits that saw nothing of a row's {document.left_out_by}"
        )
    for quantity, scores in document.errors.items():
        lines += ["", f"{NAMES[quantity]:<27}{HEAD[27:]}"]
        for which, label in labels.items():
            score = getattr(scores, which)
            if score is not None:
                lines.append(score_line(f"  {label[:25]}", score))
    return lines


def _coefficients(document: FittedCalibration) -> list[str]:
    rows = document.coefficients
    fitted = [row for row in rows if row.state in SAID]
    lines = ["", f"{'Coefficients':<16}{'before':>10}{'now':>10}   80 % interval"]
    for row in fitted:
        name = row.name
        ends = f"{_shown(name, row.low)} to {_shown(name, row.high)}"
        lines.append(
            f"  {name:<14}{_shown(name, row.before):>10}{_shown(name, row.value):>10}   "
            f"{ends:<22}{SAID[row.state]}"
        )
    if not fitted:
        lines += wrapped("the rows tell none of them by itself")
    for adjustment in document.adjustments:
        scope = ", ".join(f"{key} {value}" for key, value in adjustment.scope.items())
        low, high = adjustment.interval
        lines += wrapped(
            f"{scope}: x {adjustment.factor:.3g} ({low:.3g} to {high:.3g}) on the times of "
            f"{', '.join(adjustment.of)}"
        )
    for state, word in REST.items():
        names = [row.name for row in rows if row.state == state]
        if names:
            lines += wrapped(f"{word}: {', '.join(names)}")
    for name, most in document.limits.items():
        lines += wrapped(f"the measured chip sustains {most:.3g} of the peak: {name} at most")
    used, free = document.rows.used, len(rows)
    if used < free:
        lines += wrapped(
            f"{used} values for {free} coefficients: what they cannot tell apart stays as "
            f"{document.like} has it"
        )
    return lines


def _bands(document: FittedCalibration) -> list[str]:
    lines = ["", "80 % of runs to come, measured over predicted"]
    for name, row in document.bands.items():
        origin = f"from {row.origin}"
        if row.holds is not None:
            origin += f"; of other folds it holds {row.holds:.0%}"
        if row.origin != "rows left out":
            origin = f"kept from {row.origin}: fewer than {row.fewest} values"
        lines.append(f"  {BANDS.get(name, name):<8}{row.low:.2f} to {row.high:.2f}   {origin}")
    return lines


def _worst(document: FittedCalibration) -> list[str]:
    lines = ["", "Furthest off"]
    for run in document.worst:
        ratio = run.estimate / run.measured
        lines += wrapped(
            f"{run.row} {run.quantity}: {duration(run.measured)}, the others say "
            f"{duration(run.estimate)} ({ratio:.2g} x)"
        )
    return lines


def _shown(name: str, value: float) -> str:
    if name in EFFICIENCIES or name in COUNTS:
        return f"{value:.3g}"
    if 0 < value < 1e-6:
        return f"{value * 1e9:.3g} ns"
    return duration(value) if value else "0"
