"""Notation: how a symbol looks, read from the little LaTeX that the nomenclature is written in."""

import re

from formulas.export.typesetting.boxes import Accent, BoxRow, Layout, Mark, Script

_GREEK_NAMES = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi "
    "rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi "
    "Psi Omega ell"
)
GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδϵεζηθικλμνξπρστυϕφχψωΓΔΘΛΞΠΣΦΨΩℓ", strict=True))

# Other commands that a symbol may be written with.
SPECIAL = {"infty": "∞", "ast": "*", "star": "⋆", "prime": "′", "circ": "∘", "dagger": "†"}
ACCENTS = ("hat", "bar", "tilde", "dot")

_TOKEN = re.compile(r"\\[A-Za-z]+|[_^{}]|\d+|[^\\{}_^\s]")


def notation(latex: str) -> Layout:
    """The boxes of a symbol.

    Raises
    ------
    TypeError
        If it uses a command without a rule.
    """
    tokens = _TOKEN.findall(latex)[::-1]
    return _row(tokens)


def _row(tokens: list[str]) -> Layout:
    """Atoms up to the end of the group, each with its scripts; tokens are taken from the back."""
    layouts: list[Layout] = []
    while tokens and tokens[-1] != "}":
        if tokens[-1] in "_^" and layouts:
            below = tokens.pop() == "_"
            layouts[-1] = _scripted(layouts[-1], _atom(tokens), below)
        else:
            layouts.append(_atom(tokens))
    return layouts[0] if len(layouts) == 1 else BoxRow(tuple(layouts))


def _scripted(base: Layout, script: Layout, below: bool) -> Script:
    if isinstance(base, Script):
        both = (script, base.above) if below else (base.below, script)
        return Script(base.base, *both)
    return Script(base, script) if below else Script(base, above=script)


def _atom(tokens: list[str]) -> Layout:
    token = tokens.pop() if tokens else ""
    command = token.removeprefix("\\")
    if token == "{":
        inner = _row(tokens)
        tokens.pop()
        return inner
    if command in ("mathrm", "text", "operatorname"):
        return Mark(_letters(tokens), "word")
    if command == "mathcal":
        return Mark(_letters(tokens), "script")
    if command in ACCENTS:
        return Accent(_atom(tokens), command)
    if command != token and command not in GREEK | SPECIAL:
        raise TypeError(f"no rule for the LaTeX command {token} of a symbol")
    if command != token:
        return Mark((GREEK | SPECIAL)[command], "letter" if command in GREEK else "word")
    kind = "number" if token.isdigit() else "letter" if token.isalpha() else "word"
    return Mark(token, kind)


def _letters(tokens: list[str]) -> str:
    """The literal content of the braces that follow."""
    end = len(tokens) - tokens[::-1].index("}") - 1
    inner = tokens[end + 1 : -1][::-1]
    del tokens[end:]
    return "".join(inner)


def alternating(words: str) -> dict[str, str]:
    """{character: command} from words that take turns."""
    listed = words.split()
    return dict(zip(listed[::2], listed[1::2], strict=True))
