"""Words as LaTeX sets them: its own characters made literal, others by their commands."""

from __future__ import annotations

from formulas.export.typesetting.notation import GREEK

__all__ = ["latex_words"]

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "…": r"\ldots{}",
    "\u00a0": "~", "\u2009": r"\,", "\u202f": r"\,", "µ": r"\ensuremath{\mu}",
}  # fmt: skip
_MATHS = {
    "<": "<", ">": ">", "|": "|", "≈": r"\approx", "→": r"\to", "←": r"\gets",
    "↔": r"\leftrightarrow",
    "⇔": r"\Leftrightarrow", "⇒": r"\Rightarrow", "≤": r"\le", "≥": r"\ge", "≠": r"\ne",
    "√": r"\surd", "∞": r"\infty", "×": r"\times", "÷": r"\div", "±": r"\pm", "−": "-",
    "·": r"\cdot", "⋅": r"\cdot", "∝": r"\propto", "∂": r"\partial", "∑": r"\sum", "Σ": r"\Sigma",
    "∏": r"\prod", "∈": r"\in", "≪": r"\ll", "≫": r"\gg", "⌈": r"\lceil", "⌉": r"\rceil",
    "⌊": r"\lfloor", "⌋": r"\rfloor", "⁻": "^{-}", "½": r"\tfrac{1}{2}", "°": r"^{\circ}",
    "∀": r"\forall", "∃": r"\exists", "⊕": r"\oplus", "≡": r"\equiv", "∼": r"\sim", "′": "'",
    "²": "^{2}", "³": "^{3}", "¹": "^{1}",
}  # fmt: skip
_MATHS |= {mark: f"^{{{digit}}}" for digit, mark in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_MATHS |= {mark: f"_{{{digit}}}" for digit, mark in enumerate("₀₁₂₃₄₅₆₇₈₉")}
_MATHS |= {letter: f"\\{name}" for name, letter in GREEK.items()}


def latex_words(words: str) -> str:
    """The words, safe in LaTeX.

    Raises
    ------
    ValueError
        If a character has no rule and is no Latin letter.
    """
    return "".join(map(_letter, words))


def _letter(letter: str) -> str:
    if letter in _SPECIAL:
        return _SPECIAL[letter]
    if letter in _MATHS:
        return rf"\ensuremath{{{_MATHS[letter]}}}"
    if ord(letter) < 0x180:
        return letter
    raise ValueError(f"no LaTeX for the character {letter!r} (U+{ord(letter):04X})")
