"""Export a plan as a single file: sections, proof and sources, and a page that searches by itself
if the problem kind offers it.

It fetches nothing: its own script and style by hash, everything else forbidden by the policy it
carries. Without scripts the plan as solved is all there, as text, tables and SVG.
"""

import json
import math
import re
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from planner.protocol.live_page import LivePage
from planner.protocol.plan import Plan, status_text
from planner.protocol.problem import HasLivePage, get_problem, plan_sections
from planner.protocol.section import Line, Section, search_counts_text, source_lines
from planner.report.pages.still_tables import (
    WIDE_WRAPPER,
    elasticity_bars,
    note_list,
    plan_chart,
    stacked_bar,
    table,
)
from planner.scenario.loading import Question
from planner.text.colours import DARK, LIGHT_MODE, tokens
from planner.text.wording import excess, gap_percent, quantity

CARDS = 4  # cards of the headline, after the first number
# A comment to the end of its line, a text in quotes, the start of a template.
_PIECES = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`""")
_BESIDE = re.compile(r"[ \t]*([(){}\[\];,=<>!&|?:*%])[ \t]*")


def report_page(plan: Plan[Any], question: Question, source: str, sets: Sequence[str] = ()) -> str:
    """The page of a plan as one HTML document.

    Args:
        source, sets: the file that `planner solve` reads, and the changes it was given.
    """
    problem = get_problem(plan.kind)
    live = LivePage()
    if isinstance(problem, HasLivePage):
        live = problem.live_page(question, plan)
    head, *others = plan_sections(plan)
    command = shlex.join([source, *(word for each in sets for word in ("--set", each))])
    data = _data(plan, head, live, command)
    script = minified_script("\n".join(_scripts(live)))
    style = f"{_tokens()}\n{_asset('report_page.css')}"
    written = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src "
        f"'sha256-{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    ground = plan.document["provenance"]
    words = f"token-planner {escape(ground['version'])}. {escape('; '.join(source_lines(ground)))}"
    live_words = '<p id="self" role="status"></p>' if live.script else '<p id="self"></p>'
    return "\n".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">',
        '<meta name="description" content="A plan, with the search that chose it.">',
        f"<title>{escape(head.title)}</title>\n<style>{style}</style>\n</head>",
        '<body class="still">',
        '<div class="bar" id="mini" aria-hidden="true"></div>',
        f"<header><h1>{escape(head.title)}</h1>",
        '<button id="theme" hidden>Light / dark</button></header>',
        f'<main><div class="columns">{_answer(plan, head, others, live)}{_controls(live)}',
        f'<div class="story">{_story(plan, head, others, live)}</div></div></main>',
        f"<footer>{live_words}<p>{words}</p></footer>",
        f'<script type="application/json" id="data">{written}</script>',
        f"<script>{script}</script>\n</body>\n</html>\n",
    ])  # fmt: skip


def _scripts(live: LivePage) -> list[str]:
    theme = _asset("theme.js")
    if not live.script:
        return [theme]
    page = (_asset("report_pictures.js"), _asset("report_page.js"))
    return [theme, live.script, f"const KERNELS={live.kernels};", *page]


def _asset(name: str) -> str:
    return files("planner.report.pages").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _tokens() -> str:
    """Colours as variables, dark where that is preferred or chosen."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in tokens(mode).items())
        for mode in (LIGHT_MODE, DARK)
    )
    return (
        f":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}"
        "@media print{:root{" + light + "}}"
    )


# ---- what the script reads ----


def _data(plan: Plan[Any], head: Section, live: LivePage, source: str) -> dict[str, Any]:
    """Page data: search inputs, sliders and the plan if the page has a script, else null."""
    if not live.script:
        return {"live": None}
    first = next((line for line in head.lines if not isinstance(line.value, str)), None)
    sliders = [{**asdict(slider), "empty": "largest allowed"} for slider in live.sliders]
    inverse = {row["name"]: row["inverse"] for row in live.data["sliders"]}
    for slider in sliders:
        slider["inverse"] = inverse.get(slider["name"], False)
    return finite({
        "live": dict(live.data),
        "problem": plan.kind,
        "file": source,
        "objective_unit": first.unit.removeprefix("USD ") if first else "per million tokens",
        "sliders": sliders,
        "carried": {"feasible": plan.feasible, **live.data["carried"]},
    })  # fmt: skip


def finite(value: Any) -> Any:
    """Replace every non-finite number of a document by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value


# ---- the answer as it was solved ----


def _answer(plan: Plan[Any], head: Section, others: Sequence[Section], live: LivePage) -> str:
    """Headline price with its cards and tables; missed promises if the question is infeasible."""
    numbers = [line for line in head.lines if isinstance(line.value, int | float)]
    words = [line for line in head.lines if isinstance(line.value, str)]
    first = numbers[0] if numbers else Line("", None)
    cards = "".join(_card(line) for line in numbers[1 : 1 + CARDS])
    value, _, unit = quantity(first.value, first.unit).partition("/Mtok")
    beside = "per million tokens" if _ or unit else first.label
    ends = ""
    if first.ends:
        ends = f"{plan.between} {first.range_words.replace(' to ', ' and ')}"
    if first.bound is not None:
        floor = "no engine" if live.script else "nothing"
        ends += f"{'; ' * bool(ends)}{floor} goes below {first.bound_words}"
    headline = (
        f'<div class="head" id="head"{"" if numbers else " hidden"}><p class="price" id="price">'
        f'{escape(value)}<small><span id="beside">{escape(beside)}</span><br>'
        f'<b id="since"></b></small></p><div class="cards" id="cards">{cards}</div></div>'
        f'<p class="quiet" id="band">{escape(ends)}</p>'
    )
    refused = f'<p class="quiet">No sliders: {escape(live.refused)}.</p>' if live.refused else ""
    choices = "; ".join(f"{line.label}: {line.value}" for line in words)
    verdict = f"<p>{escape(choices)}</p>" * bool(choices or live.script)
    stands = "".join(table(each) for each in others if each.beside)
    stands += note_list(plan.answer.notes)
    if not plan.feasible:
        rows = "".join(
            f"<li>{escape(each.promise)}"
            + (f": missed by {escape(excess(each.short_by))}" if each.short_by is not None else "")
            + (f" ({escape(each.expression)})" if each.expression else "")
            + "</li>"
            for each in plan.infeasible
        )
        verdict = f'<p class="broken">No plan keeps every promise.</p><ul>{rows}</ul>'
    return (
        f'<section class="answer">{headline}{refused}'
        '<p id="notice" class="notice" role="status" hidden></p>'
        f'<div class="verdict" id="verdict" aria-live="polite"{"" if verdict else " hidden"}>'
        f'{verdict}</div><p class="quiet" id="promised" role="status"></p>'
        f'<p class="quiet broken" id="outside" role="status"></p><div id="stands">{stands}</div>'
        "</section>"
    )


def _card(line: Line) -> str:
    return (
        f'<div class="card"><span>{escape(line.label)}</span><b>'
        f"{escape(line.words)}</b><span>{escape(line.range_words or line.note)}</span></div>"
    )


def _story(plan: Plan[Any], head: Section, others: Sequence[Section], live: LivePage) -> str:
    """Charts and tables of the plan as solved, and placeholders for the script's charts."""
    parts = [
        stacked_bar(each) if each.adds_up else table(each) for each in others if not each.beside
    ]
    still = plan_chart(plan, head.title) + "".join(parts) + elasticity_bars(plan)
    numbers = [line for line in head.lines if isinstance(line.value, int | float)]
    still += table(Section("all numbers of the plan as solved", tuple(numbers)))
    blocks = [still]
    if live.script:
        title = "<summary>The plan as solved, as tables</summary>"
        blocks = [_places(), f'<details id="still" open>{title}{still}</details>']
    blocks += [_proof(plan, live), _equations(live), _symbols(live)]
    return "".join(blocks)


def _places() -> str:
    """Placeholders for the script's charts, in the order of the page."""
    return (
        '<div data-live hidden><section id="steps"><h2>One step</h2><p class="quiet" '
        'id="step-words"></p><figure id="step"></figure></section><section id="memory"></section>'
        '<section id="curve"><h2>Price against speed</h2><p class="quiet">Every layout at batches '
        "that double, or under a load on more and more chips, with the promises on first token "
        "and memory kept; the line is the cheapest "
        'at each speed. Filled: the plan. Hollow: as solved.</p><figure id="frontier"></figure>'
        '</section><section id="growing"><h2>Why not one sequence more</h2><p class="quiet">What '
        'a step is made of as the batch grows, on this layout.</p><figure id="growth"></figure>'
        '</section><section id="moving"><h2>What moves the price</h2><p class="quiet">Each '
        "quantity 20&nbsp;% down and up. Solid: this layout with its batch refitted. Outline: "
        'the layout chosen anew, where that differs.</p><figure id="tornado"></figure>'
        '<ul class="legend"><li>'
        '<svg class="swatch" viewBox="0 0 11 11" aria-hidden="true"><rect width="11" height="11" '
        'class="f-less"/></svg>20 % less</li><li><svg class="swatch" viewBox="0 0 11 11" '
        'aria-hidden="true"><rect width="11" height="11" class="f-more"/></svg>20 % more</li></ul>'
        "</section></div>"
    )


def _controls(live: LivePage) -> str:
    """Sliders, and the list of quantities that they leave fixed."""
    if not live.script:
        return ""
    fixed = "".join(f"<li>{escape(each)}</li>" for each in live.fixed)
    return (
        '<aside class="controls" data-live hidden aria-label="what may be changed"><div '
        'class="switch"><button id="free" aria-pressed="true">Re-choose layout</button><button '
        'id="hold" aria-pressed="false">Hold layout</button></div><div id="sliders"></div>'
        '<div class="tools">'
        '<button id="reset">Reset</button><button id="link">Copy link</button>'
        '<button id="save-json">JSON</button><button id="save-csv">CSV</button>'
        '<button id="save-svg">SVG</button></div><details><summary>This state on the command line'
        '</summary><pre><code id="command"></code></pre><p class="quiet" id="uncommanded"></p>'
        f'</details><details><summary>Held fixed</summary><ul class="quiet">{fixed}</ul></details>'
        "</aside>"
    )


# ---- on what it rests ----


def _proof(plan: Plan[Any], live: LivePage) -> str:
    """Format the proof that the choice is best."""
    proof = plan.document["certificate"] or {}
    points = search_counts_text(proof)
    lines = [f"As solved: decided over {points}." if points else ""]
    if proof.get("gap") is not None:
        none = f"{'None of them' if points else 'No choice'} is better"
        better = none if plan.status == "optimal" else status_text(plan.status, plan.gap)
        lines.append(
            f"{better}; a lower bound by other means is {gap_percent(proof['gap'])} below."
        )
    if live.script:
        lines.append(
            "When a slider moves, the page decides again over all its rows, by the same "
            "bisection; the independent bound is not recomputed."
        )
    text = " ".join(filter(None, lines))
    return f"<h2>How sure is it</h2><p>{escape(text)}</p>" if text else ""


def _equations(live: LivePage) -> str:
    """The chain from the objective down, each equation with its value."""
    if not live.equations:
        return ""
    blocks = "".join(
        f'<div class="equation"><div><span>{escape(each.title)}</span><span data-value='
        f'"{escape(each.symbol)}" data-unit="{escape(each.unit)}"></span></div>'
        f'<div class="maths" tabindex="0">{each.mathml}</div></div>'
        for each in live.equations
    )
    return (
        '<h2>Where the price comes from</h2><p class="quiet">The equations that this page runs, '
        f"each with its value at the sliders' setting.</p>{blocks}"
    )


def _symbols(live: LivePage) -> str:
    if not live.symbols:
        return ""
    rows = "".join(
        f"<tr><td>{x.mathml}</td><td>{escape(x.meaning)}</td><td data-value="
        f'"{escape(x.symbol)}" data-unit="{escape(x.unit)}"></td><td>{escape(x.unit)}</td></tr>'
        for x in live.symbols
    )
    sources = "".join(
        f"<li>{escape(x.title)}: {escape(x.source)}</li>" for x in live.equations if x.source
    )
    return (
        f"<details><summary>Symbols, units and sources</summary>{WIDE_WRAPPER}<table><tr>"
        '<th scope="col">symbol</th><th scope="col">meaning</th><th scope="col">value</th>'
        f'<th scope="col">unit</th></tr>{rows}</table></div>'
        f'<ul class="quiet">{sources}</ul></details>'
    )


# ---- a script without what only people read ----


def minified_script(script: str) -> str:
    """Minify a script; strings and templates are unchanged.

    Lines stay lines, so that no semicolon is missed. It knows no regular expression of JavaScript:
    the scripts of pages have none.
    """
    pieces, place = [], 0
    while match := _PIECES.search(script, place):
        pieces.append(_BESIDE.sub(r"\1", script[place : match.start()]))
        text = match[0]
        place = _end_of_template(script, match.end()) if text == "`" else match.end()
        pieces.append("" if text.startswith("//") else script[match.start() : place])
    pieces.append(_BESIDE.sub(r"\1", script[place:]))
    lines = (line.strip() for line in "".join(pieces).splitlines())
    return "\n".join(line for line in lines if line)


def _end_of_template(script: str, place: int) -> int:
    """Index after the end of a template that begins before `place`; templates may nest."""
    depth = 0
    while script[place] != "`" or depth:
        if script.startswith("${", place):
            depth, place = depth + 1, place + 1
        elif script[place] == "}" and depth:
            depth -= 1
        elif script[place] == "`":
            place = _end_of_template(script, place + 1) - 1
        place += 1
    return place + 1
