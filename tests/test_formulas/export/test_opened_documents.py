"""Documents opened by the programs that people open them with: TeX, a browser, a PDF reader."""

import os
import re
import shutil
import subprocess

import pytest

from formulas.export import export
from formulas.registry import by_name
from formulas.roofline.batching import critical_batch, critical_batch_anywhere
from formulas.serving.prefill_network import prefill_network, prompt_exchanges
from planner.report.files import pdf
from planner.report.text.derivations import CASES_NOTE, cases

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FEW = (critical_batch, critical_batch_anywhere, prefill_network, prompt_exchanges)
browser_needed = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium")
latex_needed = pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex")


def everything(form):
    """The full document, as the command writes it."""
    return export(by_name().values(), form, cases(), title="All of it", about=CASES_NOTE)


def compiled(folder, source):
    """What TeX says, after the second run, which knows the page numbers of the first."""
    (folder / "all.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    for _ in range(2):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
        said = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, said[-2000:]
    return said


@latex_needed
@pytest.mark.slow
@pytest.mark.parametrize("form", ["few", "all"])
def test_latex_compiles_without_anything_too_wide(tmp_path, form):
    """No error, no line over the margin, no undefined reference."""
    source = export(FEW, "latex", cases()) if form == "few" else everything("latex")
    said = compiled(tmp_path, source)
    assert re.search(r"Output written on all.pdf \(\d+ pages", said)
    assert "Overfull \\hbox" not in said
    assert "undefined" not in said
    assert (tmp_path / "all.pdf").read_bytes().startswith(b"%PDF")


@pytest.fixture(scope="module")
def browser():
    """A headless browser without a network."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    log = os.devnull
    driver = webdriver.Chrome(options=options, service=Service(DRIVER, log_output=log))
    yield driver
    driver.quit()


def opened(browser, path, page, width):
    """The page in a window of a width; the addresses it asked for."""
    path.write_text(page, encoding="utf-8")
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("performance")
    browser.get(path.as_uri())
    asked = [
        address
        for entry in browser.get_log("performance")
        for address in re.findall(r'"url":"([^"]+)"', entry["message"])
        if "requestWillBeSent" in entry["message"]
    ]
    return {address for address in asked if address.startswith(("http", "ws", "ftp"))}


@browser_needed
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 375, 320, 1280])
def test_html_fits_the_window_and_asks_for_nothing(browser, tmp_path, width):
    """No sideways scrolling of the page, on a phone or a desk; no request; no complaint."""
    asked = opened(browser, tmp_path / "all.html", everything("html"), width)
    assert not asked
    # What a phone reports as its window grows with what does not fit.
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@browser_needed
@pytest.mark.slow
def test_formulas_are_set_as_mathml(browser, tmp_path):
    """Each of them has a height and a width, and none is wider than a phone."""
    opened(browser, tmp_path / "few.html", export(FEW, "html", cases()), 390)
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('math')].map(m => {"
        " const r = m.getBoundingClientRect(); return [r.width, r.height]; })"
    )
    assert len(sizes) > 20
    assert all(0 < width <= 390 and 5 < height < 600 for width, height in sizes)
    fractions = browser.execute_script(
        "return [...document.querySelectorAll('mfrac')].every(f =>"
        " f.children[0].getBoundingClientRect().bottom"
        " <= f.children[1].getBoundingClientRect().top + 2)"
    )
    assert fractions


@browser_needed
@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1280])
def test_subscripts_stand_below_the_line(browser, tmp_path, width):
    """The font that comes along is used, and knows how far a subscript is lowered."""
    opened(browser, tmp_path / "few.html", export(FEW, "html", cases()), width)
    assert browser.execute_async_script(
        "const done = arguments[0]; document.fonts.ready.then(() =>"
        " done([...document.fonts].map(f => f.family.replaceAll('\"', '') + ' ' + f.status)))"
    ) == ["Token Planner Math loaded"]
    # Bases that have nothing below the line themselves.
    lowered = browser.execute_script(
        "return [...document.querySelectorAll('msub')]"
        " .filter(m => /^[A-FH-PR-Z]$/.test(m.children[0].textContent))"
        " .filter(m => /^[a-z0-9]/i.test(m.children[1].textContent)).map(m => {"
        " const [base, below] = [...m.children].map(c => c.getBoundingClientRect());"
        " return below.bottom - base.bottom; })"
    )
    assert len(lowered) > 40
    assert min(lowered) > 1


@browser_needed
@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "dark"), [("dark", True), ("light", False)])
def test_html_is_dark_where_that_is_preferred(browser, tmp_path, scheme, dark):
    """The paper is darker than the ink, or the other way round."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    opened(browser, tmp_path / "one.html", export(critical_batch, "html"), 390)
    ink, paper = (
        sum(map(int, re.findall(r"\d+", color)[:3]))
        for color in browser.execute_script(
            "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        )
    )
    assert (paper < ink) is dark


def test_pdf_has_pages():
    """A few formulas need one page, with their cover."""
    pytest.importorskip("typst")
    made = pdf(export(FEW, "typst", cases()))
    assert made.startswith(b"%PDF-")
    assert re.search(rb"/Type\s*/Page\b", made)
    assert b"%%EOF" in made[-64:]


@pytest.mark.slow
def test_the_pdf_of_everything_has_many_pages():
    """Offline, with the fonts that come along."""
    pytest.importorskip("typst")
    made = pdf(everything("typst"))
    assert len(re.findall(rb"/Type\s*/Page\b", made)) > 50
