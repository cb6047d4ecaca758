"""Text of a price answer: inferences in an economist's units, and contradictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.protocol.section import AnswerHead, Line, Section, table
from planner.scenario.keys.buy_keys import ratios
from planner.text.quantities import show
from planner.text.wording import (
    COLUMNS,
    count,
    digits,
    joined_ends,
    percent,
    three_digits,
    trim,
    wrap_text,
)

if TYPE_CHECKING:
    from planner.problems.prices.contradictions import Contradiction
    from planner.problems.prices.inferences import SheetInference
    from planner.problems.prices.plan import PricesPlan, SheetPrices
    from planner.report.pictures.value_rows import ValueRows

MTOK, HOUR = 1e6, 3600.0
UNSEEN = ("hold_over_input",)  # in the remark on the price of holding
N_READINGS = 8  # readings shown by default; `--more` shows all
LABELS = {"run": "Finding", "cost": "Size", "against": "Cache", "promises": "Margin",
          "limit": "Settled"}  # fmt: skip
SHORT_NAMES = {
    "input price, physical": "input price, physics", "size, empirical": "open models' sizes",
    "open models, empirical": "open models' prices",
}  # fmt: skip
BEYOND_PRICES, FITS, MISSES = "beyond the prices fitted", "size given fits", "does not fit"


def _times(value: float) -> str:
    return f"{three_digits(value)}×"


def _tokens(value: float) -> str:
    return f"{value / 1000:,.3g}k"


# Label and number format of each quantity, from base units to the units of a reader.
QUANTITY_FORMATS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "n_active": ("active parameters", count),
    "n_total": ("all parameters", count),
    "kv_bytes_per_token": ("KV cache per token", lambda x: show(x, "size")),
    "output_price": ("output price by size", lambda x: f"${digits(x * MTOK)}/Mtok"),
    "memory_over_arithmetic": ("memory time vs compute", _times),
    "batch_over_critical": ("batch vs critical batch", _times),
    "afforded_context": ("context paid for", lambda x: f"{_tokens(x)} tokens"),
    "balance_context": ("both meet at context", _tokens),
    "attention_context": ("attention = weights at", _tokens),
    "fixed_share": ("fixed share of a step", lambda x: percent(x, 3)),
    "batch_over_normal": ("batch over normal", lambda x: f"1/{1 / x:.3g}" if x else "0"),
    "speed_limit": ("fastest mode", _times),
    "idle_share": ("idle hours", lambda x: percent(x, 3)),
    "hold_price": ("price of holding", lambda x: f"${x * MTOK * HOUR:.3g}/Mtok-hour"),
    "write_surcharge": ("write surcharge", lambda x: percent(x, 3)),
    "hold_over_input": ("holding over input", lambda x: f"{x * HOUR:.3g} per hour"),
    "break_even_reads": ("reads that pay", lambda x: f"{x * HOUR:.3g} per hour"),
    "break_even_requests": ("requests that pay", lambda x: f"more than {x:.3g}"),
    "margin": ("price over cost", _times),
}


def head(plan: PricesPlan) -> AnswerHead:
    """Answer head: contradictions of the sheet, and its readings of size, cache and margin."""
    point = plan.answer.plan
    assert point is not None
    clashes, lines = point.contradictions, point.inferences
    margin = next((x for x in lines if x.name == "margin"), None)
    priced = "not computed: give a model, --set given.model=NAME"
    if margin is not None:
        mix = f"{_span(margin, _times)} over our own plan's cost (mix 3:1)"
        priced = mix if margin.low else f"not computed: {margin.verdict}"
    apart = [clash for clash in clashes if clash.reconciled_by]
    worst = max(apart, key=lambda clash: clash.factor or 0.0, default=None)
    return AnswerHead(
        _title(plan, point.sheet),
        run=(summary(clashes),),
        cost=(_spans(lines, "n_active", "size"),),
        against=(_spans(lines, "kv_bytes_per_token", "caches"),),
        promises=(priced,),
        certainty=("each reading is an interval; none is a point",),
        limit=(f"if any ONE of {len(worst.reconciled_by)} assumptions is off "
               f"{_fold(worst.factor or 1.0)}: --more lists them",) if worst else (),
        next=("planner solve FILE --why    (assumptions of each reading)",),
        labels=LABELS,
        proof=f"Proven by a linear program over {len(lines)} readings: "
              f"{'the dual shows it contradictory' if clashes else 'one point keeps them all'}",
    )  # fmt: skip


def _spans(lines: Sequence[SheetInference], name: str, what: str) -> str:
    spans, readings = [], [x for x in lines if x.name == name and (x.low or x.high)]
    for line in sorted(readings, key=lambda x: (x.high or float("inf")) / (x.low or 1e-30)):
        fits = " (yours fits)" * (FITS in line.verdict) + " (not yours)" * (MISSES in line.verdict)
        spans.append(f"{_span(line, QUANTITY_FORMATS[name][1])}{fits} by {_origin(line)}")
    return "; ".join(spans[:2]) or f"no: the sheet says nothing of {what}"


def sections(plan: PricesPlan) -> tuple[Section, ...]:
    """The sheet, its readings as tables, and what assumes each contradiction."""
    point = plan.answer.plan
    assert point is not None
    clashes, readings = point.contradictions, [x for x in point.inferences if x.name not in UNSEEN]
    apart = {(clash.name, origin) for clash in clashes for origin in clash.between}
    ranked = sorted(
        readings, key=lambda x: ((x.name, x.origin) not in apart, not (x.low or x.high))
    )
    rest = [x for x in readings if x not in ranked[:N_READINGS]]
    more = [Line("other readings", f"{len(rest)}: --more")] if rest else []
    parts = [Section(_title(plan, point.sheet), (Line("finding", summary(clashes)),)),
             table(_columns([x for x in readings if x not in rest]), lines=more),
             table(_columns(rest), "other readings", shown=False)]  # fmt: skip
    for clash in clashes:
        settles = {row.assumption: row.factor for row in clash.reconciled_by}
        assumed = ((x, f"settles it if off {_fold(settles[x])}" if x in settles else "")
                   for x in clash.minimal)  # fmt: skip
        lines = (Line("assumes", words, note=note) for words, note in assumed)
        parts.append(Section(clash_title(clash), tuple(lines)))
    if len(clashes) > 1:
        lines = (Line("left out", x) for x in point.left_out)
        parts.append(Section("Without these all readings can hold together", tuple(lines)))
    return tuple(parts)


def _columns(lines: Sequence[SheetInference]) -> Mapping[str, Sequence[str]]:
    """Table columns of the readings by heading: quantity, interval, origin."""
    shown = [QUANTITY_FORMATS.get(x.name, (x.name, digits)) for x in lines]
    names = [x for x, _ in shown]
    spans = [_span(x, y) for x, (_, y) in zip(lines, shown, strict=True)]
    room = COLUMNS.get() - 4 - sum(max(map(len, words), default=0) for words in (names, spans))
    origins = [f"{_origin(x)}{' (!)' * (BEYOND_PRICES in x.verdict)}" for x in lines]
    return {"Reading": names, "says": spans, "from": [trim(x, room) for x in origins]}


def _origin(line: SheetInference) -> str:
    words = line.origin.replace("step of ", "step ").removesuffix(" tokens")
    return SHORT_NAMES.get(line.origin, words)


def readings_picture(plan: PricesPlan) -> ValueRows:
    """Chart of each quantity with two or more intervals, from readings and given values."""
    from planner.problems.prices.plan import UNITS
    from planner.report.pictures.value_rows import ValuePanel, ValueRow, ValueRows

    point = plan.answer.plan
    assert point is not None
    panels = []
    for name, (label, written) in QUANTITY_FORMATS.items():
        lines = [x for x in point.inferences if x.name == name and (x.low or x.high)]
        rows = [ValueRow(x.origin, x.ends[0], x.ends[1], _span(x, written)) for x in lines]
        stated = getattr(plan.question.stated, name, None)
        if stated:
            words = " to ".join(map(written, sorted(set(stated))))
            rows.append(ValueRow("as given", stated[0], stated[1], words, chosen=True))
        if len(rows) > 1:
            panels.append(ValuePanel(label, UNITS[name], rows, written))
    return ValueRows(sections(plan)[0].title, panels)


def explanation_text(plan: PricesPlan) -> str:
    """The equation of each reading, and everything that it assumes."""
    point = plan.answer.plan
    lines = ["Why these readings"]
    for line in point.inferences if point else ():
        label = QUANTITY_FORMATS.get(line.name, (line.name, digits))[0]
        lines += ["", *wrap_text(f"{label}, by {line.origin}: {line.verdict}", rest="")]
        lines += wrap_text(line.formula, "  ") if line.formula else []
        for words in line.assumes:
            lines += wrap_text(words, "    - ", "      ")
    return "\n".join(lines)


def _title(plan: PricesPlan, sheet: SheetPrices) -> str:
    prices = {"in": sheet.input, "out": sheet.output, "cached": sheet.cached}
    listed = ", ".join(f"${digits(x * MTOK)} {name}" for name, x in prices.items() if x is not None)
    times = f", {ratios(plan.question.multiply)}" if plan.question.multiply else ""
    return f"What does {sheet.name}{times} imply? {listed} per Mtok"


def _fold(factor: float) -> str:
    return f"{factor:.0f}-fold" if factor >= 10 else f"{factor:.2g}-fold"


def summary(clashes: Sequence[Contradiction]) -> str:
    """Sentence: the readings are consistent, or the widest contradiction with its factor."""
    if not clashes:
        return "consistent: no reading contradicts another"
    worst = max(clashes, key=lambda clash: clash.factor or 0.0)
    much = f"{_fold(worst.factor)}, " if worst.factor else ""
    where = "between readings of which each two can hold"
    if worst.name != "together":
        where = f"on {QUANTITY_FORMATS.get(worst.name, (worst.name, digits))[0]}"
    if len(clashes) == 1:
        return f"THE SHEET CONTRADICTS ITSELF, {much}{where}"
    return f"{len(clashes)} CONTRADICTIONS, the widest {much}{where}"


def clash_title(clash: Contradiction) -> str:
    """Title of a contradiction: its readings and its factor."""
    much = f", {_fold(clash.factor)}" if clash.factor else ""
    if clash.name == "together":
        several = "; ".join(clash.between)
        return f"Contradiction{much}, of several at once: {several}"
    label = QUANTITY_FORMATS.get(clash.name, (clash.name, digits))[0]
    return f"Contradiction{much}: {label} by {', and by '.join(clash.between)}"


def _span(line: SheetInference, written: Callable[[float], str]) -> str:
    low, high = line.low, line.high
    if low is None and high is None:
        return "nothing"
    if low is None or (low == 0 and high is not None):
        return f"at most {written(high or 0.0)}"
    if high is None:
        return f"at least {written(low)}"
    exact = high <= low * (1 + 1e-12)
    return written(low) if exact else joined_ends(written(low), written(high))
