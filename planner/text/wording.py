"""Format counts, shares, dollars, times, sizes, layouts and wrapped lines."""

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from planner.text.quantities import show
from planner.text.tables import table

GAP_TOLERANCE = 1e-8
SOLVER_RESOLUTION = 1e-5  # of a relaxation, where solvers stop on different processors
WIDTH = 78  # columns of an answer
COLUMNS: ContextVar[int] = ContextVar("columns", default=WIDTH)  # of a terminal that reads it
SENTENCE = 100  # columns of a sentence at most: longer lines read badly
LABEL = 14  # columns of a row label before its text
PATH_WORDS = table("planner.text", "path_words.toml")
FACTOR_THRESHOLD = 3.0  # minimum value/limit written as a factor; below it, percent


# ---- numbers ----

_NUMBER = re.compile(r"([^0-9-]*)(-?[0-9.,]+)((?:e[+-]?[0-9]+)?)(.*)")


def gap_text(gap: float) -> str:
    """Format the gap between a bound and an answer; below rounding no digits are printed."""
    return f"{100 * gap:.1g}%" if gap >= GAP_TOLERANCE else "less than 1e-6%"


def gap_percent(gap: float) -> str:
    """Format the gap to an independent bound; no digits below the resolution of conic solvers."""
    return f"{100 * gap:.2g}%" if gap >= SOLVER_RESOLUTION else "less than 0.001%"


def three_figures(value: float) -> str:
    """Format three significant digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def digits(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}"


def three_digits(value: float) -> str:
    """Format three significant digits, zeros kept, or all before the point: 0.100, 50.0."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".rstrip(".")


def plural(number: float, noun: str) -> str:
    """A count with its noun: "1 chip", "1,024 chips"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def joined_ends(low: str, high: str) -> str:
    """Format a range, `27.5–69.1 ms`; a unit that both share is printed once."""
    pieces = (_NUMBER.match(end) for end in (low, high))
    (before, first, power, after), (ahead, *second, behind) = (x.groups() for x in pieces if x)
    if (before, after) == (ahead, behind):
        return f"{before}{first}{power * (power != second[1])}–{''.join(second)}{after}"
    return f"{low}–{high}"


def count_text(value: float) -> str:
    """A whole number, or three digits of a very large one."""
    return f"{value:,.0f}" if value < 1e9 else f"{value:.3g}"


def count(value: float) -> str:
    """Parameters or tokens: 6.97B, 1.25T."""
    return show(value, "params").removesuffix(" params").replace(" ", "")


def flop(value: float) -> str:
    """An amount of arithmetic."""
    return f"{value:.3g} FLOP"


def loss(value: float) -> str:
    """A loss [nat]."""
    return f"{value:.3f}"


def percent(share: float, precision: int = 2) -> str:
    """Format a share in percent, with `precision` digits or all before the point."""
    return f"{100 * share:.{max(precision, len(f'{abs(100 * share):.0f}'))}g}%"


def excess(factor: float) -> str:
    """Format the excess over a limit, from the factor between value and limit."""
    return (
        f"{100 * (factor - 1):.3g}%" if factor < FACTOR_THRESHOLD else f"a factor of {factor:.3g}"
    )


def increase(share: float) -> str:
    """By how much something is more, signed."""
    shown = 100 * share
    return f"{shown:+.0f}%" if abs(shown) >= 9.95 else f"{shown:+.2g}%"


def usd_text(usd: float) -> str:
    """Dollars with three digits, or all before the point."""
    for scale, letter in ((1e9, "B"), (1e6, "M")):
        if usd >= scale * 0.9995:
            return f"${usd / scale:.4g}{letter}"
    return f"${usd:,.0f}" if usd >= 100 else f"${usd:.3g}"


def signed_usd(usd: float) -> str:
    """Dollars with a sign."""
    return f"{'-' if usd < 0 else '+'}{usd_text(abs(usd))}"


def duration(value: float) -> str:
    """A time with three digits in the unit that suits it."""
    for unit_size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit_size:
            return f"{three_digits(value / unit_size)} {unit}"
    return f"{value:.2g} s" if math.isfinite(value) else "never"


def format_bytes(value: float) -> str:
    """A size with its unit."""
    return show(value, "size")


# ---- lines ----


def printable(text: str) -> str:
    """Escape unprintable characters in lines of a file, so that no escape sequence is executed."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def breadth() -> int:
    """Columns of a sentence on the terminal that reads it."""
    return min(COLUMNS.get(), SENTENCE)


def label_row(label: str, text: str, width: int = LABEL) -> str:
    """Format a label and its text, wrapped in the column after the label."""
    return "\n".join(wrap_text(text, f"{label:<{width}}", " " * width))


def wrapped(text: str) -> list[str]:
    """A text as indented lines."""
    return textwrap.wrap(text, breadth(), initial_indent="  ", subsequent_indent="    ")


def trim(text: str, room: int) -> str:
    """A text that is cut in the middle to the room that it has."""
    half = max(room - 1, 2) // 2
    return text if len(text) <= room else f"{text[: room - 1 - half]}…{text[-half:]}"


def first_sentences(title: str, sentences: Sequence[str], most: int) -> str:
    """The first sentences under a title, and how many more there are; nothing without any."""
    if not sentences:
        return ""
    lines = [title, *(line for each in sentences[:most] for line in wrapped(each))]
    left = len(sentences) - most
    return "\n".join([*lines, f"  and {left:,} more"] if left > 0 else lines)


def wrap_text(text: str, first: str = "", rest: str = "  ") -> list[str]:
    """Wrap a text into indented lines, broken between words; `--set` keeps its value."""
    lines = textwrap.wrap(
        text.replace("--set ", "--set\u00a0"), breadth(), initial_indent=first,
        subsequent_indent=rest, break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\u00a0", " ") for line in lines]


def wrap_command(command: str) -> str:
    """Wrap a command over several lines, broken between its words."""
    parts = textwrap.wrap(command, breadth() - 6, break_on_hyphens=False, break_long_words=False)
    return "  " + " \\\n    ".join(parts)


# ---- what was asked, and layouts ----


def degrees(
    pp: int, tp: int, dp: int, cp: int, ep: int = 1, tp_expert: int = 1, *, dcp: int = 1
) -> str:
    """Degrees of parallelism in the words of engines, `PP2 × TP4 × DP8, EP8`; DCP is within TP."""
    whole = {"PP": pp, "TP": tp, "DP": dp, "CP": cp}
    inner = {"TP": f" (DCP{dcp})"} if dcp > 1 else {}
    ways = [f"{name}{number}{inner.get(name, '')}" for name, number in whole.items() if number > 1]
    experts = [f"EP{ep}"] * (ep > 1)
    if tp_expert > 1:
        experts.append(f"{'' if experts else 'experts '}TP{tp_expert}")
    return ", ".join([" × ".join(ways) or "TP1", *([" × ".join(experts)] if experts else [])])


def pools_text(plan: Mapping[str, Any]) -> str:
    """A layout in the words of engines, `4 × (TP8, EP8)`; of two pools both."""
    layout = plan["layout"]
    if layout is None:
        return f"prefill {pools_text(plan['prefill'])}, decode {pools_text(plan['decode'])}"
    names = ("pp", "tp", "dp_attention", "cp", "ep", "tp_expert")
    words = [degrees(*(layout[name] for name in names), dcp=layout.get("dcp", 1))]
    if layout.get("overlap", "none") != "none":
        words.append("dual-batch overlap")
    if plan.get("redundant_experts"):
        words.append(f"{plan['redundant_experts']} redundant experts")
    if plan.get("drafts"):
        words.append(f"{plan['drafts']} draft token{'s' * (plan['drafts'] > 1)}")
    text = ", ".join(words)
    return f"{layout['replicas']} × ({text})" if layout["replicas"] > 1 else text


def reference_text(value: object, kind: str) -> str:
    """Name of a model or system; names of a list, or the base and changes of a description."""
    if isinstance(value, list):
        return " or ".join(reference_text(item, kind) for item in value)
    if isinstance(value, Mapping):
        name = str(value["like"]) if value.get("like") else f"a described {kind}"
        changes = ["varied"] if value.get("like") and value.keys() - {"like", "measured"} else []
        changes += [f"as measured in {value['measured']}"] if value.get("measured") else []
        return f"{name} ({', '.join(changes)})" if changes else name
    return str(value)


def chip_numbers(chips: object) -> str:
    """Format the requested numbers of chips: `1 chip`, `8 to 64 chips`."""
    if isinstance(chips, Mapping):
        return f"{chips['from']} to {chips['to']} chips"
    numbers = ", ".join(map(str, chips)) if isinstance(chips, list) else str(chips)
    return f"{numbers} chip{'s' * (numbers != '1')}"


def length(value: float | Mapping[str, float]) -> str:
    """A length in tokens; the mean of a distribution."""
    return f"{value['mean']:,g} (mean)" if isinstance(value, Mapping) else f"{value:,g}"


def output_words(name: str) -> str:
    """Words for an output of an answer: `price`, `throughput per chip`."""
    return str(PATH_WORDS["outputs"].get(name, name.replace("_", " ").replace(".", " ")))


def path_words(path: str) -> str:
    """Words for a quantity's path in a scenario: `memory bandwidth`."""
    names, scopes = PATH_WORDS["names"], PATH_WORDS["scopes"]
    parts = path.split(".")
    words = [part for part in parts if not part.isdigit()]
    ends = (".".join(words[place:]) for place in range(len(words)))
    end = next((end for end in ends if end in names), words[-1])
    named = end.count(".") + 1
    before = [part for part in parts if part.isdigit() or part not in words[-named:]]
    number = "".join(f" {int(x) + 1}" for x in before if x.isdigit())
    scope = " ".join(filter(None, (scopes.get(x, x) for x in before if not x.isdigit())))
    return f"{names.get(end, end.replace('_', ' '))}{number}{', ' * bool(scope)}{scope}"


# ---- a number in base units ----

_FORMS: Mapping[str, Callable[[float], str]] = {
    "": lambda value: f"{value:.4g}",
    "1": lambda value: f"{value:.4g}",
    "s": duration,
    "byte": format_bytes,
    "day": lambda value: f"{value:.4g} days",
    "USD": usd_text,
    "J/s": lambda value: f"{value:.4g} W",
    "chip": lambda value: f"{count_text(value)} chip{'s' * (value != 1)}",
    "g per million tokens": lambda value: f"{three_figures(value)} g/Mtok",
    "USD per million tokens": lambda value: f"${value:.4g}/Mtok",
    "USD per million input tokens": lambda value: f"${value:.4g}/Mtok in",
    "USD per million output tokens": lambda value: f"${value:.4g}/Mtok out",
    "USD/hour": lambda value: f"{usd_text(value)}/hour",
    "token/s": lambda value: f"{three_figures(value)} tokens/s",
    "token/(s*chip)": lambda value: f"{three_figures(value)} tokens/s per chip",
    "seq/s": lambda value: f"{three_figures(value)} requests/s",
    "seq": lambda value: f"{count_text(value)} sequence{'s' * (value != 1)}",
    "param": count,
    "token": lambda value: f"{count(value)} tokens",
    "flop": flop,
    "nat": lambda value: f"{loss(value)} nat",
}


def quantity(value: float | str | None, unit: str = "") -> str:
    """A number in base units as people say it: `46 ms`, `$0.269/Mtok`; words as they are."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    form = _FORMS.get(unit)
    return form(value) if form else f"{value:.4g} {unit}"
