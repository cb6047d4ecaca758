"""A calibration on a terminal: rows used and left out, errors before and after, what moved.

And what `planner measure` prints: a device's rates, beside the catalogue's peaks where known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from planner.benchmark.record import LISTS, TABLES, MeasuredChip, SkippedWork, TimedKernel
from planner.benchmark.works import Work
from planner.catalogue.chips import Chip, chip
from planner.catalogue.profile import EFFICIENCIES
from planner.protocol.results.calibration_result import CalibrationResult, FittedCalibration
from planner.report.text.validation_text import HEAD, reasons, score_line, shapes
from planner.text.quantities import show
from planner.text.wording import (
    duration,
    first_sentences,
    format_bytes,
    label_row,
    printable,
    three_figures,
    wrapped,
)

LABELS = {"tpot": "Time per token", "ttft": "Time to first token"}
BANDS = {"tpot": "TPOT", "ttft": "TTFT", "usd_per_mtok": "cost"}
COUNTS = ("n_sched",)  # steps, not seconds
STATE_LABELS = {
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
        lines += ["", f"{LABELS[quantity]:<27}{HEAD[27:]}"]
        for which, label in labels.items():
            score = getattr(scores, which)
            if score is not None:
                lines.append(score_line(f"  {label[:25]}", score))
    return lines


def _coefficients(document: FittedCalibration) -> list[str]:
    rows = document.coefficients
    fitted = [row for row in rows if row.state in STATE_LABELS]
    lines = ["", f"{'Coefficients':<16}{'before':>10}{'now':>10}   80 % interval"]
    for fit in fitted:
        name = fit.name
        ends = f"{_figure(name, fit.low)} to {_figure(name, fit.high)}"
        lines.append(
            f"  {name:<14}{_figure(name, fit.before):>10}{_figure(name, fit.value):>10}   "
            f"{ends:<22}{STATE_LABELS[fit.state]}"
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
    for name, band in document.bands.items():
        origin = f"from {band.origin}"
        if band.holds is not None:
            origin += f"; of other folds it holds {band.holds:.0%}"
        if band.origin != "rows left out":
            origin = f"kept from {band.origin}: fewer than {band.fewest} values"
        lines.append(f"  {BANDS.get(name, name):<8}{band.low:.2f} to {band.high:.2f}   {origin}")
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


def _figure(name: str, value: float) -> str:
    if name in EFFICIENCIES or name in COUNTS:
        return f"{value:.3g}"
    if 0 < value < 1e-6:
        return f"{value * 1e9:.3g} ns"
    return duration(value) if value else "0"


MAX_ROWS_SHOWN = 6  # of the works left out
UNITS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s"))
BUSY = 0.25  # relative spread of memory times; above it, other load on the device is suspected


def measured_document(measured: MeasuredChip) -> dict[str, object]:
    """Measured chip as plain data: the contents of its file, and derived rates."""
    lines = measured.all_reduces.items()
    return {
        **asdict(measured.head),
        "sustained": {
            "memory_bandwidth": measured.memory_bandwidth,
            "products": dict(measured.product_rates),
            "attention_bandwidth": measured.attention_bandwidth,
            "launch": dict(measured.launch_times),
            "all_reduce": [{"devices": devices, **asdict(line)} for devices, line in lines],
        },
        **{key: [_plain(each) for each in getattr(measured, key)] for key in TABLES},
        **{key: [asdict(each) for each in getattr(measured, key)] for key in LISTS},
    }


def measured_text(measured: MeasuredChip) -> str:
    """Format a measured chip for a terminal, at most 80 columns wide."""
    catalogued = chip(measured.head.chip) if measured.head.chip else None
    head = measured.head
    origin = f"{head.chip} of the catalogue" if head.chip else "not in the catalogue by this name"
    software = ", ".join(f"{name} {version}" for name, version in head.software.items())
    part = "" if head.complete else "; not complete"
    device = label_row("device", f"{head.device} ({origin}), {format_bytes(head.capacity)}")
    lines: list[str] = []
    for devices, run in measured.all_reduces.items():
        line = f"{devices} devices: {duration(run.latency)} + bytes sent at "
        line += f"{show(run.rate, 'bandwidth')} (within {run.error:.0%})"
        lines.append(label_row("" if lines else "all-reduce", line))
    when = label_row("measured", f"{head.as_of}, {software}, in {head.seconds:.0f} s{part}")
    blocks = [
        f"{device}\n{when}",
        "\n".join([*_memory(measured, catalogued), *_attention(measured), *_launch(measured)]),
        _products(measured, catalogued),
        "\n".join(lines),
        _busy(measured),
        first_sentences("wrong results, not kept", _sentences(measured.refused), MAX_ROWS_SHOWN),
        first_sentences("left out", _sentences(measured.left_out), MAX_ROWS_SHOWN),
    ]
    return "\n\n".join(block for block in blocks if block)


def _plain(measured: TimedKernel[Work]) -> dict[str, object]:
    return {**asdict(measured.work), **asdict(measured.timing), "rate": measured.rate}


def _memory(measured: MeasuredChip, catalogued: Chip | None) -> Iterator[str]:
    if measured.memory_bandwidth is None:
        return
    peak = _of_peak(measured.memory_bandwidth, catalogued.memory_bandwidth if catalogued else None)
    yield label_row("memory", f"{show(measured.memory_bandwidth, 'bandwidth')}{peak}")
    for run in measured.memory:
        spread = f"{run.timing.repeats} times, spread {run.timing.spread:.1%}"
        rate = show(run.rate, "bandwidth")
        yield label_row(
            "", f"{run.work.kind:<6}{format_bytes(run.work.size):>9}{rate:>11}   {spread}"
        )


def _attention(measured: MeasuredChip) -> Iterator[str]:
    for at, run in enumerate(measured.attention):
        work, rate = run.work, show(run.rate, "bandwidth")
        what = f"{work.dtype}, {work.batch} sequences of {work.context} tokens"
        yield label_row("" if at else "attention", f"{what}: {rate}")


def _launch(measured: MeasuredChip) -> Iterator[str]:
    words = {"call": "by a call", "graph": "in a graph"}
    times = [f"{duration(each.timing.median)} {words[each.work.how]}" for each in measured.launch]
    if times:
        yield label_row("launch", ", ".join(times))


def _products(measured: MeasuredChip, catalogued: Chip | None) -> str:
    if not measured.products:
        return ""
    most = max(measured.product_rates.values())
    scale, unit = next((run for run in UNITS if most >= run[0]), UNITS[-1])
    cells: dict[tuple[int, int], dict[int, dict[str, str]]] = {}  # by (n, k), tokens, format
    for run in measured.products:
        rows = cells.setdefault((run.work.n, run.work.k), {})
        rows.setdefault(run.work.m, {})[run.work.dtype] = three_figures(run.rate / scale)
    lines = [label_row("products", f"{unit} of (tokens, k) times (k, n)")]
    for (n, k), rows in cells.items():
        lines.append(f"{f'n {n}, k {k}':>22}" + "".join(f"{x:>10}" for x in measured.product_rates))
        for m, rates in sorted(rows.items()):
            shown = "".join(f"{rates.get(x, '-'):>10}" for x in measured.product_rates)
            lines.append(f"{f'{m} tokens':>22}{shown}")
    for dtype, rate in measured.product_rates.items():
        peak = catalogued.peak(dtype) if catalogued and catalogued.computes(dtype) else None
        lines.append(
            label_row("", f"{dtype}: at best {show(rate, 'compute')}{_of_peak(rate, peak)}")
        )
    return "\n".join(lines)


def _busy(measured: MeasuredChip) -> str:
    spread = sorted(each.timing.spread for each in measured.memory)
    if not spread or spread[len(spread) // 2] <= BUSY:
        return ""
    return label_row("doubt", "the times of memory spread widely; was the device used by others?")


def _sentences(skipped: Sequence[SkippedWork]) -> list[str]:
    return [f"{each.what}: {each.why}" for each in skipped]


def _of_peak(rate: float, peak: float | None) -> str:
    return "" if peak is None else f", {rate / peak:.0%} of the catalogue's peak"
