"""The site under docs/ builds from a clean checkout, and what it is made of is all there."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main

from formulas.algebra.derivation import Derivation
from formulas.registry import by_name, subject
from planner.cli.app import app
from planner.protocol.solve import answer_schema
from planner.scenario import json_schema
from planner.scenario.kinds import question_types
from tests.cases.accessibility import auditor
from tests.machine import lasts_at_most
from tests.paths import EXAMPLES, ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
UNITS = 60  # of processor time, for a build from nothing and its doctests
PACKAGES = ("planner", "formulas", "topologies")


@dataclass
class Page(HTMLParser):
    """The text of a page, its anchors, what it links to and what it loads."""

    text: str = ""
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where a link may lead to, and where those of the page lead."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("script", "img", "iframe") and "src" in values:
            self.loaded.append(values["src"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon"):
            self.loaded.append(values["href"])

    def handle_data(self, data: str) -> None:
        """Note the words."""
        self.text += data


@dataclass(frozen=True)
class Site:
    """What was built, what it took [CPU-s], and what its doctests said."""

    folder: Path
    pages: dict[str, Page]
    seconds: float
    doctests: str

    def words(self, name: str) -> str:
        """The text of a page, white space as one blank."""
        return " ".join(self.pages[name].text.split())


def sphinx(builder: str, out: Path, trees: Path) -> None:
    """Build; a warning is a fault."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder]
    run = subprocess.run(
        [*command, "-d", str(trees), str(DOCS), str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Built from nothing, doctests run."""
    folder = tmp_path_factory.mktemp("site")
    shutil.rmtree(DOCS / "generated", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    sphinx("html", folder / "html", folder / "trees")
    sphinx("doctest", folder / "doctest", folder / "trees")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pages = {}
    for file in (folder / "html").rglob("*.html"):
        page = Page()
        page.feed(file.read_text(encoding="utf-8"))
        pages[file.relative_to(folder / "html").as_posix()] = page
    said = (folder / "doctest" / "output.txt").read_text(encoding="utf-8")
    return Site(folder / "html", pages, seconds, said)


def test_the_site_is_built_within_its_time(site):
    """Pages and doctests from nothing take at most a minute of one core of a fast machine."""
    assert lasts_at_most(UNITS, site.seconds)


def test_doctests_are_run_and_pass(site):
    """There are some, and none fails."""
    total = re.search(r"(\d+) tests\n\s+0 failures in tests", site.doctests)
    assert total
    assert int(total[1]) > 0


def test_every_link_within_the_site_leads_somewhere(site):
    """The page is there, and so is the anchor."""
    broken = []
    for name, page in site.pages.items():
        for link in {*page.links, *page.loaded}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (site.folder / name).parent / unquote(parts.path) if parts.path else None
            file = (target or site.folder / name).resolve()
            if not file.is_file():
                broken.append(f"{name}: {link}")
            elif parts.fragment and file.suffix == ".html":
                inner = site.pages[file.relative_to(site.folder.resolve()).as_posix()]
                if unquote(parts.fragment) not in inner.anchors:
                    broken.append(f"{name}: {link}")
    assert not broken


def test_the_site_loads_nothing_from_elsewhere(site):
    """Scripts, styles and pictures are its own: it can be read offline."""
    assert not {x for page in site.pages.values() for x in page.loaded if urlsplit(x).netloc}


def test_every_example_is_in_the_gallery_with_its_output(site):
    """What the tests compare is what is shown."""
    shown = {}
    for source in [*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*.py")]:
        text = site.words(f"generated/gallery/{source.stem}.html")
        files = [source, source.with_suffix(".txt")]
        shown[source.stem] = [" ".join(x.read_text("utf-8").split()) in text for x in files]
    assert shown
    assert not [name for name, each in shown.items() if not all(each)]


def test_every_derivation_has_its_page(site):
    """With its title, and a formula and a proof for every step."""
    short = []
    for name, entry in by_name().items():
        if isinstance(entry, Derivation):
            page = f"generated/derivations/{subject(name)}/{name}.html"
            html = (site.folder / page).read_text(encoding="utf-8")
            proofs, lines = html.count('<p class="proof">'), html.count('display="block"')
            if entry.name[1:] not in site.words(page) or min(proofs, lines) < len(entry.steps):
                short.append(name)
    assert not short


def test_every_command_is_in_the_reference_with_its_options(site):
    """As the command line has them."""
    root = typer.main.get_command(app)
    absent = []
    for name, command in root.commands.items():
        page = f"generated/commands/planner-{name}.html"
        if hasattr(command, "commands"):
            pages = [x for x in site.pages if x.startswith(page.removesuffix(".html") + "-")]
            absent += [name] * (len(pages) < len(command.commands))
            continue
        text = site.words(page) if page in site.pages else ""
        flags = [flag for each in command.params for flag in each.opts if flag.startswith("--")]
        absent += [f"{name} {flag}" for flag in flags if flag not in text] + [name] * (not text)
    assert not absent


def test_every_key_of_a_scenario_and_an_answer_is_in_the_reference(site):
    """By kind, from the schemas."""
    definitions = json_schema()["$defs"]
    absent = []
    for question in question_types():
        properties = definitions[question.__name__]["properties"]
        kind = properties["problem"]["const"]
        scenario = site.words(f"generated/scenarios/{kind}.html")
        absent += [f"{kind}: {key}" for key in properties if key not in scenario]
        answer = site.words(f"generated/answers/{kind}.html")
        inner = answer_schema(kind)["$defs"].values()
        keys = {key for each in inner for key in each.get("properties", ())}
        absent += [f"answer of {kind}: {key}" for key in keys if key not in answer]
    assert not absent


def test_every_exported_name_is_in_the_reference(site):
    """Those of each package's `__all__`, and no page of a module."""
    for package in PACKAGES:
        anchors = site.pages[f"generated/api/{package}.html"].anchors
        module = import_module(package)
        assert not {f"{package}.{name}" for name in module.__all__} - anchors
    assert len([x for x in site.pages if x.startswith("generated/api/")]) == 1 + len(PACKAGES)


def test_the_index_of_the_search_knows_the_pages(site):
    """Every page can be found by its title."""
    text = (site.folder / "searchindex.js").read_text(encoding="utf-8")
    names = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))["docnames"]
    assert {"index", "generated/commands/index", "generated/gallery/index"} <= set(names)


AUDITED = (  # a page of every kind
    "index", "search", "genindex", "nomenclature", "architecture", "tutorials/first-plan",
    "generated/gallery/index", "generated/gallery/lecture", "generated/derivations/index",
    "generated/derivations/batching/index", "generated/derivations/batching/critical_batch",
    "generated/scenarios/serving", "generated/answers/serving", "generated/commands/planner-solve",
    "generated/api/planner",
)  # fmt: skip


def test_pages_can_be_read_by_ear_and_without_a_mouse(site):
    """As axe-core sees them, in light and dark."""
    with auditor() as violations:
        found = {name: violations((site.folder / f"{name}.html").as_uri()) for name in AUDITED}
    assert not {name: each for name, each in found.items() if each}
