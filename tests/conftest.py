"""What holds for every run: the same random examples in CI, and skips that are told aloud."""

import os
from collections import Counter

import pytest
from hypothesis import settings

from tests.paths import MISSING
from tests.sizes import Run

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_configure(config: pytest.Config) -> None:
    """Where the slow tests are chosen, those of two sizes are run in the larger one."""
    Run.whole = config.option.markexpr == "slow"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in their larger size are slow ones."""
    for item in items:
        if Run.whole and item.get_closest_marker("sized"):
            item.add_marker("slow")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests did not run because the measurements are not beside the checkout."""
    tables: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if MISSING in reason:
            tables[reason.partition(MISSING)[2].strip("/") or "all of it"] += 1
        elif "got empty parameter set" in reason:
            tables["cases that are read from a table"] += 1
    if tables:
        terminalreporter.section(f"NOT TESTED: {tables.total()} tests, {MISSING}", "!", red=True)
        for name, count in sorted(tables.items()):
            terminalreporter.line(f"{count:4} {name}")
        terminalreporter.line("These tables are not in the repository: docs/contributing.md")
