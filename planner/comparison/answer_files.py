"""What is compared: a scenario, or the answer to one that `planner solve --json` saved."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.protocol.parameter import folder_of
from planner.protocol.solve import check
from planner.scenario import checked, read
from planner.scenario.keys.fields import QuestionRecord
from planner.scenario.loading import Source
from planner.scenario.tree import Tree
from planner.text.errors import InputError, Mistake, printed

LARGEST = 20_000_000  # bytes of a saved answer
ANSWER = {"schema", "scenario", "plan"}  # keys that a saved answer has and a scenario lacks


@dataclass(frozen=True)
class ComparedScenario:
    """One side of a comparison: its name, its question, and the tree that knows its order.

    `answer` is the document that was saved, None where a scenario was given.
    """

    name: str
    question: QuestionRecord
    tree: Tree
    answer: Mapping[str, Any] | None = None


def compared(source: Source) -> ComparedScenario:
    """The side of a comparison that a file, a mapping or a scenario is.

    Raises InputError with every mistake, or for a problem that this version does not answer.
    """
    answer = saved_answer(source)
    name = printed(source)[:300] if isinstance(source, str | Path) else "scenario"
    if answer is None:
        question, tree = check(source), read(source)
    else:
        tree = Tree(name, answer["scenario"])
        question = checked(tree, folder_of(source))
    return ComparedScenario(name, question, tree, answer)


def saved_answer(source: Source) -> Mapping[str, Any] | None:
    """The document of a file of `planner solve --json`; None where it is something else."""
    if isinstance(source, Mapping):
        return source if source.keys() >= ANSWER else None
    if not isinstance(source, str | Path) or Path(source).suffix.lower() != ".json":
        return None
    try:
        with Path(source).open("rb") as stream:
            text = stream.read(LARGEST)
        document = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None  # what is wrong with it the reader of scenarios says, with its place
    return document if isinstance(document, dict) and document.keys() >= ANSWER else None


def require_answer(source: Path) -> Mapping[str, Any]:
    """The saved answer of a file; InputError where it is none."""
    answer = saved_answer(source)
    if answer is None:
        words = "is no saved answer; planner solve FILE --json writes one"
        raise InputError(Mistake(str(source), None, None, "", words))
    return answer
