"""Common style of all charts: fonts, palette, axes; equal documents give equal bytes.

No date, no random name, no font but Matplotlib's own.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from planner.text.colours import EXTRAS, LIGHT_MODE, PART_COLOURS
from planner.text.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMS = ("svg", "png", "pdf")
DOTS = 160  # an inch
TITLE_LINE_LENGTH = 92  # letters of a line of a title
STYLE = {
    "svg.hashsalt": "token-planner",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": False,
    "text.parse_math": False,  # a $ in a name, or of a price, is a $
}
PAPER = {"facecolor": "white", "alpha": 0.65, "lw": 0, "pad": 0.6}  # under a label on a line
FILE_METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None},
            "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}  # fmt: skip
# Page colours in light mode, distinguishable with red-green colour blindness.
BLUE, ORANGE, GREEN, PINK, SKY, GREY = (PART_COLOURS[name][LIGHT_MODE] for name in EXTRAS)
BLACK, BROWN = "#000000", "#8C6D31"
PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, GREY, BLACK, BROWN)
STEPS = (1.0, 2.0, 5.0)  # ticks of a decade
LARGE_VALUE = 1e4  # minimum axis value with ticks in thousands, millions, ...


def render_figure(inches: tuple[float, float], fill: Callable[[Figure], None], form: str) -> bytes:
    """Render the drawing of `fill` on a figure of this size [inch], as `svg`, `png` or `pdf`.

    Raises MissingExtra if Matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "a picture") from error
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = mpl.rcParams
        settings.update(STYLE)
        canvas = Figure(figsize=inches, layout="constrained")
        fill(canvas)
        written = io.BytesIO()
        canvas.savefig(written, format=form, dpi=DOTS, metadata=FILE_METADATA[form])
    return written.getvalue()


def figure_title(canvas: Figure, text: str) -> None:
    """A title over all panels, in lines of `TITLE_LINE_LENGTH` letters."""
    words = textwrap.fill(" ".join(text.split()), TITLE_LINE_LENGTH)
    canvas.suptitle(words, x=0.01, ha="left", fontsize=10)


def axes_title(axes: Axes, text: str, size: float = 10.5, pad: float | None = None) -> None:
    """A title above the left end, in bold."""
    axes.set_title(text, loc="left", fontsize=size, fontweight="bold", pad=pad)


def grid_lines(axes: Axes) -> None:
    """Faint lines at the large ticks, behind everything."""
    axes.grid(True, which="major", color="0.93", lw=0.6, zorder=0)


def set_ticks(
    axis: Axis, form: Callable[[float], str] = "{:,g}".format, decade: Sequence[float] = ()
) -> None:
    """Numbers of ticks in words; on a logarithmic axis ticks at these places of a `decade`."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if decade:
        axis.set_major_locator(LogLocator(10, subs=decade))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))


def labelled_bars(axes: Axes, labels: Sequence[str]) -> None:
    """Names of horizontal bars, the first on top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)


def large_numbers(axis: Axis, middle: float) -> None:
    """Ticks in thousands, millions, ... where values are that large."""
    from matplotlib.ticker import EngFormatter

    if middle >= LARGE_VALUE:
        axis.set_major_formatter(EngFormatter())
