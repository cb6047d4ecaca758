"""Where things lie: the one place where a test takes a path from its own."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "data"  # measurements that the repository does not hold
