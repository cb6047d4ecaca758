"""What every picture is drawn on: one style, and the same bytes for the same document.

No date, no random name, no font but Matplotlib's own.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from planner.text.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = ("svg", "png", "pdf")
DOTS = 160  # an inch
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
}
PAPER = {"facecolor": "white", "alpha": 0.65, "lw": 0, "pad": 0.6}  # under a label on a line
NAMELESS = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None},
            "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}  # fmt: skip


def pictured(inches: tuple[float, float], fill: Callable[[Figure], None], form: str) -> bytes:
    """What `fill` draws on a figure of so many inches, as `svg`, `png` or `pdf`.

    Raises
    ------
    MissingExtra
        If Matplotlib is not installed.
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
        canvas.savefig(written, format=form, dpi=DOTS, metadata=NAMELESS[form])
    return written.getvalue()
