"""The one error of this package: everything that is wrong, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = ["TopologyError", "meant"]


class TopologyError(ValueError):
    """A fabric, a machine or a question about them that cannot be answered.

    Parameters
    ----------
    where : str
        What was looked at: the name of a fabric, a machine or a function.
    problems : sequence of str
        Every problem found, one line each, its place first.

    >>> print(TopologyError("fabric 'pod'", ["node 3: no kind", "arc 1 -> 2: bandwidth is 0"]))
    fabric 'pod': 2 problems
      node 3: no kind
      arc 1 -> 2: bandwidth is 0
    """

    def __init__(self, where: str, problems: str | Sequence[str]) -> None:
        self.where = where
        self.problems: tuple[str, ...] = (
            (problems,) if isinstance(problems, str) else tuple(problems)
        )
        super().__init__(where, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.where}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{self.where}: {len(self.problems)} problems{lines}"


def meant(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: what was probably meant, else what is known."""
    words = list(known)
    close = get_close_matches(str(word), words, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(words)}"
