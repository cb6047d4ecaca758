"""Answers as pages: the command that writes one file for a browser."""

from pathlib import Path

from planner.cli.options import require_file, warn
from planner.report.files import check_file, deliver
from planner.text.console import show
from planner.text.errors import InputError


def report(
    file: str, sets: list[str] | None = None, out: Path | None = None, strict: bool = False
) -> None:
    """Write the answer as one page, in which the search itself runs where it can."""
    from planner.protocol.solve import answered
    from planner.report.pages.report_page import report_page

    if out is None:
        raise InputError("--out is missing: a page is written, such as --out report.html")
    require_file(out, "report.html")
    check_file(out, "--out", ("html",), "written")
    question, plan = answered(file, sets or (), strict=strict)
    warn(plan.warnings)
    deliver(report_page(plan, question, file, sets or ()), out)
    show(f"{out}: written")
