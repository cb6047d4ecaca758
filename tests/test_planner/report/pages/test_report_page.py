"""A report is one file that fetches nothing, hostile names as text, finite numbers only."""

from __future__ import annotations

import http.client
import json
import random
import re
import shlex
import socket
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.cli.app import main
from planner.problems.serving.advice.advice_text import promise_text
from planner.problems.serving.head import head
from planner.protocol.plan import extrapolation_text
from planner.protocol.solve import solve_with_question
from planner.report.pages.report_page import finite, minified_script, report_page
from planner.scenario import load
from planner.text.colours import BROKEN_COLOUR, PART_COLOURS, SURFACE, contrast, text_colour
from tests.cases.live_page import DENSE, browser
from tests.paths import EXAMPLES
from tests.sizes import first, seldom

HOSTILE = "</script><img src=x onerror=alert(1)>"


def page_of(question: Any, name: str = "plan.yaml") -> str:
    """The report of a scenario."""
    read, plan = solve_with_question(question)
    return report_page(plan, read, name)


@pytest.fixture(scope="module")
def page() -> str:
    """The report of a dense model in one pool."""
    return page_of(DENSE)


def test_its_own_script_and_style_are_allowed_by_hash_and_nothing_else(page: str) -> None:
    """The policy has the hashes of what is in the file; no attribute carries style or code."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for text in (*script, *style):
        assert b64encode(sha256(text.encode()).digest()).decode() in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    body = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"""\s(style|on\w+)\s*=\s*["']""", body)
    assert not re.search(r"(src|href)=[\"'](?!data:)", body)


def test_the_data_are_json_without_what_is_no_number(page: str) -> None:
    """The page reads them with a parser that knows neither NaN nor Infinity."""
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    read = json.loads(data[1], parse_constant=pytest.fail)
    assert read["carried"]["feasible"]
    assert finite({"x": [float("nan"), 1.0, float("inf")]}) == {"x": [None, 1.0, None]}


def test_hostile_names_stay_text() -> None:
    """A file's name is written as text wherever it stands."""
    page = page_of(DENSE, HOSTILE)
    assert "<img src=x" not in page
    assert page.count("</script>") == 2


def test_without_scripts_the_plan_is_all_there(page: str) -> None:
    """Price, bars and tables stand in the file itself."""
    assert re.search(r'id="price">\$0\.\d+', page)
    assert page.count("<svg") >= 2
    assert page.count("<table") >= 4
    assert "<math" in page
    assert "How sure is it" in page


def test_every_face_shows_the_same_list_beside_the_plan(page: str) -> None:
    """Bill, promises, a smaller fleet, certainty and every note: terminal, page and card."""
    yours = {**DENSE, "current": {"mode": "aggregated", "tp": 8, "batch": 64}, "chips": 16}
    plan = planner.solve(yours)
    notes = plan.answer.notes
    rows = dict(head(plan.answer).rows())
    assert {"Run", "Cost", "Yours", "Promises", "How sure", "Limit", "Next"} <= rows.keys()
    said = [" ".join(line.split()) for lines in rows.values() for line in lines]
    lines = said + [note.text for note in notes]
    terminal = " ".join(plan.text("more").split())
    for made in (page_of(yours), plan._repr_html_()):
        text = " ".join(unescape(re.sub("<[^>]*>", " ", made)).split())
        assert [words for words in lines if words not in text] == []
        places = [text.find(note.text) for note in notes]
        assert places == sorted(places)
    assert [words for words in lines if words not in terminal] == []


UNITS = {"ms": 1e-3, "us": 1e-6, "s": 1.0}
HEADS = {  # what faces call the numbers of a head, and the keys of the answer
    r"· \$([\d.,e-]+)/Mtok": "usd_per_mtok", r"TPOT ([\d.,]+) (ms|us|s)\b": "tpot",
    r"(?:TTFT|no queue) ([\d.,]+) (ms|us|s)\b": "ttft",
    r"(?i)throughput ([\d.,]+) tok": "tokens_per_s", r"\$([\d.,]+)/hour": "usd_per_hour",
}  # fmt: skip


def drawn(seed: int) -> dict[str, Any]:
    """A serving question: free, in a closed loop or under a load, on a few chips."""
    draw = random.Random(seed)
    load: dict[str, Any] = {"input_tokens": draw.choice([500, 2000, 6000]), "output_tokens": 400}
    load |= draw.choice([{}, {"concurrency": draw.randint(8, 300)}, {"demand": "2 requests/s"}])
    return {
        "problem": "serving",
        "model": draw.choice(["llama-3.1-8b", "gpt-oss-20b", "qwen3-30b-a3b"]),
        "system": draw.choice(["hgx-h100", "hgx-h200", "mi300x-8"]), "chips": draw.choice([8, 16]),
        "price": "$2.50/hour", "workload": load,
        "promises": draw.choice([{}, {"tpot": "30 ms"}, {"ttft": "2 s", "tpot": "50 ms"}]),
    }  # fmt: skip


@pytest.mark.parametrize("seed", [*range(2), *seldom(range(2, 200))])
def test_the_numbers_of_the_head_are_the_same_on_every_face(seed: int) -> None:
    """Terminal, page and card round what the answer as JSON has."""
    plan = planner.solve(drawn(seed))
    if not plan.feasible:
        pytest.skip("no plan")
    point = plan.to_json()["plan"]
    for made in (str(plan), page_of(drawn(seed)), plan._repr_html_()):
        text = " ".join(unescape(re.sub("<[^>]*>", " ", made)).split())
        for pattern, key in HEADS.items():
            found = re.search(pattern, text)
            assert found is not None, (pattern, text[:2000])
            unit = UNITS[found[2]] if len(found.groups()) > 1 else 1.0
            assert float(found[1].replace(",", "")) * unit == pytest.approx(point[key], rel=5e-3)


@pytest.mark.parametrize("name", ["budget-lecture-frontier", "served at most"])
def test_other_answers_have_a_page_of_their_own(name: str) -> None:
    """From their sections, without a slider; where a kind could search and does not, it says so."""
    served = {**DENSE, "workload": {**DENSE["workload"], "demand": "max"}}
    page = page_of(served if name == "served at most" else str(EXAMPLES / f"{name}.yaml"))
    assert 'type="range"' not in page
    assert "pageModel(data" not in page
    assert "Content-Security-Policy" in page
    assert ("No sliders: " in page) == (name == "served at most")
    assert len(page) < 300_000


def test_an_infeasible_question_names_what_falls_short() -> None:
    """The page is written, with the promise and by how much, and can be moved."""
    page = page_of(str(EXAMPLES / "infeasible.yaml"))
    assert re.search(r"memory: missed by 37(\.\d)?%", page)
    assert "pageModel" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serve-deepseek-v3-gb200", "buy-glm-4.6", "carry-a-load"])
def test_the_largest_example_stays_small(name: str) -> None:
    """The file of 72 chips in one domain with two pools, of many formats, and under a load."""
    assert len(page_of(str(EXAMPLES / f"{name}.yaml")).encode()) <= 300_000


def test_text_on_every_surface_and_part_can_be_read() -> None:
    """Contrast of 4.5 and more, in light and dark."""
    for mode in (0, 1):
        surface = {name: pair[mode] for name, pair in SURFACE.items()}
        for ink in ("ink", "quiet", "link"):
            for paper in ("paper", "panel"):
                assert contrast(surface[ink], surface[paper]) >= 4.5, (mode, ink, paper)
        for paper in ("paper", "panel"):
            assert contrast(BROKEN_COLOUR[mode], surface[paper]) >= 4.5, (mode, paper)
        for name, pair in PART_COLOURS.items():
            assert contrast(text_colour(pair[mode]), pair[mode]) >= 4.5, (mode, name)


def test_what_scrolls_or_shows_has_a_name_and_is_reached_by_keyboard(page: str) -> None:
    """What axe-core asks of a page, as far as its text tells: names, headers, focus, one title."""
    assert '<html lang="en">' in page
    assert page.count("<h1>") == 1
    assert not re.findall(r"<th[^>]*></th>", page)
    for tag in ("wide", "maths"):
        assert all("tabindex" in x for x in re.findall(rf'<div class="{tag}"[^>]*>', page)), tag
    for image in re.findall(r"<(?:svg|img)[^>]*>", page):
        assert re.search(r'aria-label="[^"]|aria-hidden="true"|alt="[^"]', image), image
    for button in re.findall(r"<button[^>]*>([^<]*)<", page):
        assert button.strip()


def test_a_kind_that_draws_has_its_picture_in_the_page() -> None:
    """As an image that fetches nothing, with words for those who do not see it."""
    made = page_of(str(EXAMPLES / "budget-sardana-13b.yaml"))
    (image,) = re.findall(r'<img alt="([^"]+)" src="data:image/svg', made)
    assert image.startswith("picture of this plan: ")
    assert len(made) <= 300_000


def test_a_shorter_script_means_the_same() -> None:
    """Texts, templates and lines stay; comments and spaces beside signs go."""
    script = "const a = `x ${ b + `c  d` } = e`; // said\nf (a , 'g  =  h') - -1\n"
    assert minified_script(script) == "const a=`x ${ b + `c  d` } = e`;\nf(a,'g  =  h')- -1"


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 3, and no file."""
    import errno

    from planner.report import files

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    out = tmp_path / "report.html"
    with pytest.raises(SystemExit) as ended:
        main(["report", str(EXAMPLES / "infeasible.yaml"), "--out", str(out)])
    assert ended.value.code == 3
    assert not list(tmp_path.iterdir())


def test_a_page_needs_a_name_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Without `--out`, or with another ending, nothing is solved."""
    for more in ([], ["--out", "report.pdf"]):
        with pytest.raises(SystemExit) as ended:
            main(["report", str(EXAMPLES / "infeasible.yaml"), *more])
        assert ended.value.code == 2
        assert "--out" in capsys.readouterr().err


# ---- in a browser ----


@contextmanager
def driven(chromium: str, driver: str, traced: str = "") -> Iterator[Any]:
    """A browser without a window, driven over its own protocol; `traced` are kinds of events that
    its log of performance then holds too."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip

    def ask(path: str, body: dict[str, Any] | None = None, method: str = "POST") -> Any:
        text = json.dumps(body or {}) if method == "POST" else None
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
            line.request(method, path, text, {"Content-Type": "application/json"})
            return json.loads(line.getresponse().read())["value"]

    try:
        for _ in range(50):
            try:
                ask("/status", method="GET")
                break
            except OSError:
                time.sleep(0.1)
        options: dict[str, Any] = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu"],
            "binary": chromium,
        }
        logs = {"browser": "ALL", "performance": "ALL"}
        if traced:
            options["perfLoggingPrefs"] = {"traceCategories": traced}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": logs}
        session = ask("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        yield lambda path, body=None, method="POST": ask(f"/session/{session}{path}", body, method)
        ask(f"/session/{session}", method="DELETE")
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_in_a_browser_it_asks_for_nothing_and_agrees_with_itself(tmp_path: Path, page: str) -> None:
    """No request but the file, no error, the same choice; the address moves the price."""
    out = tmp_path / "report.html"
    out.write_text(page, "utf-8")
    with driven(*browser()) as ask:

        def script(code: str) -> Any:
            return ask("/execute/sync", {"script": code, "args": []})

        ask("/url", {"url": out.as_uri()})
        time.sleep(1.0)
        assert script("return document.documentElement.dataset.checked") == "yes"
        before = script("return document.getElementById('price').textContent")
        assert script("return document.getElementById('stands').hidden") is False
        solved = script("return document.getElementById('band').textContent")
        script("location.hash = 'tpot=0.02&unknown=3&ttft=900'")
        time.sleep(1.0)
        assert script("return document.getElementById('price').textContent") != before
        assert script("return document.getElementById('stands').hidden") is True
        assert script("return document.getElementById('band').textContent") != solved
        promised = script("return document.getElementById('promised').textContent")
        moved = planner.solve(DENSE, ["promises.tpot=20 ms"]).answer
        assert promised == "; ".join(map(promise_text, moved.promises))
        outside = script("return document.getElementById('outside').textContent")
        assert outside == extrapolation_text(moved.outside)
        said = script("return document.getElementById('notice').textContent")
        assert "unknown" in said
        assert "ttft=900" in said
        wide = script(
            "document.body.style.width = '360px';"
            "return document.documentElement.scrollWidth <= window.innerWidth"
        )
        assert wide
        entries = [
            json.loads(x["message"])["message"] for x in ask("/se/log", {"type": "performance"})
        ]
        asked = {x["params"]["request"]["url"].split("#")[0] for x in entries
                 if x["method"] == "Network.requestWillBeSent"}  # fmt: skip
        assert {url for url in asked if not url.startswith("data:")} <= {out.as_uri()}
        assert not [x for x in ask("/se/log", {"type": "browser"}) if x["level"] == "SEVERE"]


SAVED = """
const [states, done] = arguments, root = document.documentElement, saved = [];
URL.createObjectURL = (blob) => { saved.push(blob.text()); return "data:,"; };
const frame = () => new Promise(requestAnimationFrame);
(async () => {
  for (const state of states) {
    root.dataset.idle = "";
    location.hash = state;
    while (root.dataset.idle !== "0") await frame();
    document.getElementById("save-json").click();
  }
  done(await Promise.all(saved));
})();
"""


@pytest.mark.parametrize("every", [*first(0, [4]), *seldom([1])])
def test_a_hundred_documents_of_a_page_are_those_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], every: int
) -> None:
    """What its button saves, value for value at the command's own places, by the line it names."""
    file, out = tmp_path / "dense.json", tmp_path / "report.html"
    file.write_text(json.dumps(DENSE), "utf-8")
    read = load(str(file))
    out.write_text(report_page(planner.solve(str(file)), read, str(file)), "utf-8")
    prices = [f"price={(1 + step / 10) / 3600:.12g}" for step in range(0, 60, every)]
    lengths = [f"input={500 + 97 * step}&output={200 + 31 * step}" for step in range(0, 40, every)]
    with driven(*browser()) as ask:
        ask("/timeouts", {"script": 120_000})
        ask("/url", {"url": out.as_uri()})
        saved = ask("/execute/async", {"script": SAVED, "args": [[*prices, *lengths]]})
    documents = [json.loads(each) for each in saved]
    assert len({each["command"] for each in documents}) == 100 / every
    numbers = 0
    for mine in documents:
        with pytest.raises(SystemExit):
            main([*shlex.split(mine["command"])[1:], "--json"])
        printed = json.loads(capsys.readouterr().out)
        assert mine["problem"] == printed["problem"]
        assert mine["feasible"] == (printed["status"] != "infeasible")
        assert (mine["plan"] is None) == (printed["plan"] is None)
        judged = [(x["promise"], x["word"], x["chance"]) for x in printed["promises"]]
        assert [(x["promise"], x["word"]) for x in mine["promises"]] == [x[:2] for x in judged]
        chances = [x["chance"] for x in mine["promises"]]
        assert chances == pytest.approx([x[2] for x in judged], rel=1e-9)
        plan = mine["plan"] or {}
        theirs = {name: (printed["plan"] or {})[name] for name in plan}
        assert plan == pytest.approx(theirs, rel=1e-12), mine["command"]
        numbers += len(plan)
    assert numbers >= 1000 / every
