"""SVG primitives, every text escaped and every number rounded; rates, times and counts in words."""

from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

# Blue and orange differ in all forms of colour vision; a fault is dashed as well as red.
TIER_COLOURS = {"scale_up": "#2563eb", "scale_out": "#d97706", "host": "#64748b"}
FAULT = "#dc2626"
INK, MUTED_COLOUR, PAPER = "#0f172a", "#64748b", "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
GLYPH = 0.56  # mean width of a letter, in font sizes


@dataclass
class Canvas:
    """Marks in painting order.

    Methods add one mark each; a `tooltip` is what a reader hears or sees when pointing at it.
    """

    marks: list[str] = field(default_factory=list)

    def line(
        self,
        points: list[tuple[float, float]],
        colour: str,
        width: float,
        *,
        dash: str = "",
        tooltip: str = "",
        faint: bool = False,
    ) -> None:
        """A line through two points, or a curve from first to third drawn towards the second."""
        xy = [f"{_n(x)} {_n(y)}" for x, y in points]
        path = f"M{xy[0]} L{xy[1]}" if len(xy) == 2 else f"M{xy[0]} Q{xy[1]} {xy[2]}"
        style = f'stroke="{colour}" stroke-width="{_n(width)}"'
        style += f' stroke-dasharray="{dash}"' if dash else ""
        style += ' stroke-opacity="0.4"' if faint else ""
        self._add("path", f'd="{path}" fill="none" {style}', tooltip)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        colour: str = INK,
        round_: float,
        dash: str = "",
        tooltip: str = "",
    ) -> None:
        """A rectangle by its upper left corner."""
        style = f'fill="{fill}" stroke="{colour}" stroke-width="1.2"'
        style += f' stroke-dasharray="{dash}"' if dash else ""
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        self._add("rect", f'{place} rx="{_n(round_)}" {style}', tooltip)

    def disc(
        self, x: float, y: float, r: float, *, fill: str, colour: str = INK, tooltip: str = ""
    ) -> None:
        """A filled circle."""
        place = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(r)}"'
        self._add("circle", f'{place} fill="{fill}" stroke="{colour}" stroke-width="1.2"', tooltip)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 12,
        colour: str = INK,
        anchor: str = "start",
        bold: bool = False,
        backed: bool = False,
    ) -> None:
        """Draw words on one line with baseline `y`; `backed` outlines them in the paper colour."""
        style = f'font-size="{_n(size)}" fill="{colour}" text-anchor="{anchor}"'
        style += ' font-weight="600"' if bold else ""
        if backed:
            style += f' stroke="{PAPER}" stroke-width="4" paint-order="stroke"'
        self.marks.append(f'<text x="{_n(x)}" y="{_n(y)}" {style}>{escape(xml_text(words))}</text>')

    def caption(
        self, x: float, y: float, words: str, size: float = 12, colour: str = MUTED_COLOUR
    ) -> None:
        """Words on one line, centred."""
        self.text(x, y, words, size=size, colour=colour, anchor="middle")

    def document(self, width: float, height: float, title: str, tooltip: str) -> str:
        """The whole picture on a ground of its own, wide as the page that shows it."""
        w = _n(width)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {_n(height)}" width="100%" '
            f'style="max-width:{w}px;height:auto" role="img" aria-labelledby="title desc" '
            f"font-family={quoteattr(FONT)}>"
        )
        ground = (
            f'<rect x="0.5" y="0.5" width="{_n(width - 1)}" height="{_n(height - 1)}" rx="10" '
            f'fill="{PAPER}" stroke="#cbd5e1"/>'
        )
        name = f'<title id="title">{escape(xml_text(title))}</title>'
        description = f'<desc id="desc">{escape(xml_text(tooltip))}</desc>'
        declared = '<?xml version="1.0" encoding="UTF-8"?>'
        return "\n".join([declared, head, name, description, ground, *self.marks, "</svg>", ""])

    def _add(self, tag: str, attributes: str, tooltip: str) -> None:
        title = f"><title>{escape(xml_text(tooltip))}</title></{tag}>" if tooltip else "/>"
        self.marks.append(f"<{tag} {attributes}{title}")


def xml_text(words: object, longest: int = 400) -> str:
    """Text that an XML document can hold: printable, on one line, not longer than `longest`."""
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(words)[: longest + 1])
    return printable if len(printable) <= longest else f"{printable[: longest - 1]}…"


def truncate(words: str, room: float, size: float) -> str:
    """`words`, cut to fit a width of `room` px at a font size."""
    letters = max(1, int(room / (GLYPH * size)))
    text = xml_text(words)
    return text if len(text) <= letters else f"{text[: max(letters - 1, 0)]}…"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def rate_text(value: float) -> str:
    """A bandwidth [byte/s] as people write it.

    >>> rate_text(45e9), rate_text(1.8e12)
    ('45 GB/s', '1.8 TB/s')
    """
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9995:
            return f"{value / scale:.4g} {letter}B/s"
    return f"{value:.4g} B/s"


def time_text(value: float) -> str:
    """A latency [s] as people write it.

    >>> time_text(2.5e-6), time_text(0.0)
    ('2.5 us', '0 s')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if value >= scale * 0.9995:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} s"


def counted_text(count: int, singular: str) -> str:
    """A count with its noun, in the plural if need be.

    >>> counted_text(1, "chip"), counted_text(9216, "chip")
    ('1 chip', '9,216 chips')
    """
    plural = "es" if singular.endswith(("ch", "sh", "x", "s")) else "s"
    return f"{count:,} {singular}{'' if count == 1 else plural}"
