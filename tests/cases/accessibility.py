"""Pages as axe-core sees them, in a browser without a window, light and dark."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver

from tests.cases.live_page import browser

AXE_CORE = "AXE_CORE"  # names axe.min.js; else it is that of the package axe-playwright-python
# For MathML axe-core has no rule but contrast, and that it cannot tell.
RUN = """
const done = arguments[0], options = {resultTypes: ["violations"]};
axe.run({exclude: [["math"]]}, options).then(found => done(found.violations.map(
  x => `${x.id} (${x.impact}) x${x.nodes.length}: ${x.nodes[0].html.slice(0, 200)}`)));
"""


def axe_core() -> str:
    """The script of axe-core, where it is at hand; else the test is skipped, and told of."""
    # The package needs playwright to run, which its script does not: it is looked up, not imported.
    package = importlib.util.find_spec("axe_playwright_python")
    folders = (package and package.submodule_search_locations) or ()
    paths = [Path(each, "axe.min.js") for each in folders]
    if named := os.environ.get(AXE_CORE):
        paths = [Path(named)]
    if not paths or not paths[0].is_file():
        where = f"or {AXE_CORE}=.../axe.min.js"
        pytest.skip(f"needs axe-core: pip install --no-deps axe-playwright-python, {where}")
    return paths[0].read_text("utf-8")


@contextmanager
def auditor() -> Iterator[Callable[[str], list[str]]]:
    """A function from a page's address to what axe-core finds wrong with it, in either mode."""
    script, (program, driver) = axe_core(), browser()
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    chrome = webdriver.Chrome(options, webdriver.ChromeService(driver))
    chrome.set_script_timeout(300)

    def violations(url: str) -> list[str]:
        listed = []
        for mode in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": mode}]
            chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            chrome.get(url)
            chrome.execute_script(script)
            listed += [f"{mode}: {each}" for each in chrome.execute_async_script(RUN)]
        return listed

    try:
        yield violations
    finally:
        chrome.quit()
