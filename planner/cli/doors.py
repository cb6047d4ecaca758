"""How do I ask without a command? One page, the server of pages and REST, an agent's tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.options import require_file, warn, with_sure
from planner.report.files import check_file, deliver
from planner.text.errors import InputError

if TYPE_CHECKING:
    from planner.pages.killable import Workers


def serve(port: int = 8765, folder: Path | None = None, limit: float = 60.0) -> None:
    """Answer scenarios on 127.0.0.1: a page to type them into, and REST.

    Needs Starlette and uvicorn: pip install 'token-planner[serve]'. Files that a scenario names
    are not read, unless --folder says below which they may lie.
    """
    from planner.pages.web_app import served

    if not 0 <= port <= 65535:
        raise InputError(f"--port {port}: expected 0 to 65535")
    served(_workers(folder, limit), port)


def mcp(folder: Path | None = None, limit: float = 60.0) -> None:
    """Answer an agent's tools by the Model Context Protocol, on standard input and output.

    Needs the protocol's SDK: pip install 'token-planner[mcp]'. Files that a scenario names are not
    read, unless --folder says below which they may lie.
    """
    from planner.pages.agent_server import talked

    talked(_workers(folder, limit))


def _workers(folder: Path | None, limit: float) -> Workers:
    """The processes that compute; InputError for a folder that is none, or a limit of nothing."""
    from planner.pages.killable import Workers
    from planner.text.terminal import SPINNER

    SPINNER.stop()
    if folder is not None and not folder.is_dir():
        raise InputError(f"--folder {folder}: is no folder")
    if not 0 < limit <= 86_400:
        raise InputError(f"--limit {limit:g}: expected more than 0 s, and a day at most")
    return Workers(folder, limit)


def report(
    file: str,
    sets: list[str] | None = None,
    out: Path | None = None,
    strict: bool = False,
    sure: bool = False,
) -> None:
    """Write the answer as one page, in which the search itself runs where it can."""
    from planner.protocol.solve import answered
    from planner.report.pages.report_page import report_page

    if out is None:
        raise InputError("--out is missing: a page is written, such as --out report.html")
    require_file(out, "report.html")
    check_file(out, "--out", ("html",), "written")
    changes = with_sure(file, sets, sure=sure)
    question, plan = answered(file, changes, strict=strict)
    warn(plan.warnings)
    deliver(report_page(plan, question, file, changes), out)
