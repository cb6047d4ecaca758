"""The JSON Schema of every document that `--json` prints with a version of its own."""

from planner.comparison.gate import Gate
from planner.comparison.price_difference import PriceDifference
from planner.protocol.document import versioned
from planner.protocol.solve import answer_schema
from planner.scenario.kinds import ROOMS
from planner.text.errors import CatalogueError

DOCUMENTS = {"diff": PriceDifference, "gate": Gate}
VERSIONS = {"diff": 1, "gate": 2}


def document_schema(name: str) -> dict[str, object]:
    """The schema of the answers of a problem, or of a command that compares or judges them.

    Raises InputError for a name that is neither, with the nearest.
    """
    if name in DOCUMENTS:
        return versioned(DOCUMENTS[name], f"{name}/{VERSIONS[name]}")
    if name not in ROOMS:
        raise CatalogueError.unknown("kind of answer", name, (*ROOMS, *DOCUMENTS))
    return answer_schema(name)
