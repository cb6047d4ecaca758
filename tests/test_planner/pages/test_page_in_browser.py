"""The page of `planner serve` in a real browser: edit, mistake, solve, compare."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from planner.pages.operations import run_operation
from planner.pages.web_app import web_app
from tests.cases.doors import Inline, question

pytestmark = pytest.mark.slow
WAIT = 60.0


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server on a free port of this machine."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(web_app(Inline()), log_level="error", ws="none"))  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Chromium without a window, where there is one."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed: no page was opened")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


def typed(browser: webdriver.Chrome, field: str, value: object) -> None:
    """Put a scenario into a text field."""
    text = value if isinstance(value, str) else json.dumps(value)
    script = "arguments[0].value = arguments[1]"
    browser.execute_script(script, browser.find_element(By.ID, field), text)


def clicked(browser: webdriver.Chrome, button: str) -> tuple[str, str]:
    """Answer and mistakes after a button."""
    browser.find_element(By.ID, button).click()
    state = browser.find_element(By.ID, "state")
    WebDriverWait(browser, WAIT).until(lambda _: state.text.endswith(" s"))
    answer = browser.find_element(By.ID, "answer").get_property("textContent")
    mistakes = browser.find_element(By.ID, "mistakes").get_property("textContent")
    return str(answer), str(mistakes)


def test_edit_mistake_solve_compare(browser, address):
    """What is typed is answered as the command answers; mistakes have paths; no error is logged."""
    scenario = question("lecture")
    browser.get(address)
    typed(browser, "before", scenario | {"chips": "many"})
    answer, mistakes = clicked(browser, "solve")
    assert not answer
    assert mistakes.startswith("chips: ")
    typed(browser, "before", "{")
    assert "JSON" in clicked(browser, "check")[1]
    typed(browser, "before", scenario)
    answer, mistakes = clicked(browser, "solve")
    assert not mistakes
    assert answer == run_operation("solve", {"scenario": scenario, "form": "text"}).text + "\n"
    typed(browser, "after", scenario | {"price": "$12/hour"})
    answer, mistakes = clicked(browser, "compare")
    assert not mistakes
    assert "split by Shapley's value" in answer
    logged = [each["message"] for each in browser.get_log("browser")]
    assert not [x for x in logged if "422" not in x], logged


def test_another_site_gets_nothing(browser, address, tmp_path):
    """A page of somebody else cannot ask: its request is refused, its answer not readable."""
    page = tmp_path / "evil.html"
    script = (
        f"fetch('{address}catalog').then(r => r.text()).then(t => document.title = t.slice(0, 9))"
        ".catch(() => document.title = 'refused')"
    )
    page.write_text(f"<title>waiting</title><script>{script}</script>", "utf-8")
    browser.get(page.as_uri())
    WebDriverWait(browser, WAIT).until(lambda driver: driver.title != "waiting")
    assert browser.title == "refused"


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_its_window(browser, address, width):
    """Nothing stands beyond the right edge, on a telephone neither."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.get(address)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width
