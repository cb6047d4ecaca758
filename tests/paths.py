"""Where things lie: the one place where a test takes a path from its own."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
DATA = ROOT / "tests" / "data"
FACTS = DATA / "facts"  # small published tables, each row with its source
SHARED = ROOT.parent / "shared" / "data"  # measurements that the repository does not hold
MISSING = "needs ../shared/data"


def shared(name: str = "") -> Path:
    """A table of measurements beside the checkout; without it the test is skipped, and told of."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{MISSING}/{name}")
    return path
