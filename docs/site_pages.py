"""Pages made of the project itself when the site is built: nothing here names what it finds.

Derivations come from the registry of `formulas`, commands from the command line, keys of scenarios
and answers from their schemas, the gallery from the files of `examples/`, the API from what each
package exports. A page that is the same as last time is left alone, so that it is not read again.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup
from docutils import nodes
from ruamel.yaml import YAML
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator as HTMLTranslator

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.claims import all_claims
from formulas.export.formula_document import document
from formulas.export.html import fragment
from formulas.export.typesetting.layout import notation
from formulas.export.typesetting.markup import mathml
from formulas.registry import by_name, description, subject, tags
from planner.claims.acceptance_table import acceptance
from planner.cli.app import app as command_line
from planner.protocol.solve import answer_schema
from planner.report.text.derivations import cases
from planner.scenario import json_schema
from planner.scenario.kinds import question_types, starter

DOCS = Path(__file__).parent
ROOT = DOCS.parent
FOLDER = DOCS / "generated"
FONT = ROOT / "formulas" / "export" / "token-planner-math.woff2"
TYPES = {"null": "nothing", "object": "mapping", "string": "text"}
Schema = Mapping[str, Any]
SPECIAL = "\\`*_{}[]<>|$#"


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before any is read; set the symbols of the nomenclature without a script."""
    app.connect("builder-inited", lambda app: write(pages()))
    app.connect("autodoc-process-docstring", _parameters_in_words, priority=400)
    app.connect("html-page-context", _collapse, priority=400)  # before the theme asks for it
    app.connect("build-finished", _copy_font)
    app.add_html_math_renderer("symbols", (_visit_math, None), (_visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages() -> dict[str, str]:
    """{path below the folder without `.md`: text} of every page."""
    return dict(
        [*derivation_pages(), *command_pages(), *schema_pages(), *package_pages(), *gallery_pages()]
    )


def write(written: Mapping[str, str]) -> None:
    """Put the pages into their folder; those of what is no more are taken away."""
    files = {FOLDER / f"{name}.md": text for name, text in written.items()}
    for old in FOLDER.rglob("*.md"):
        if old not in files:
            old.unlink()
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")


# Markdown --------------------------------------------------------------------------------------


def words(text: str) -> str:
    """Words in which Markdown finds nothing to act on, on one line."""
    return "".join(f"\\{x}" if x in SPECIAL else x for x in " ".join(text.split()))


def code(text: str) -> str:
    """A word set as code."""
    return f"`{text}`" if text else ""


def head(title: str, anchor: str) -> str:
    """A title of a page with the name by which other pages link to it."""
    return f"({anchor})=\n\n# {title}\n\n"


def listing(entries: Iterable[str], *, title: str = "", depth: int = 1) -> str:
    """A table of contents; entries are relative to the page."""
    caption = f":caption: {title}\n" if title else ""
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n:maxdepth: {depth}\n{caption}\n{lines}\n```\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are Markdown in which a bar is escaped."""
    top = list(heads)
    lines = [top, ["---"] * len(top), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def raw(html: str) -> str:
    """HTML as it is."""
    return f'````{{raw}} html\n<div class="formulas">\n{html}\n</div>\n````\n'


# Derivations -----------------------------------------------------------------------------------


def derivation_pages() -> Iterator[tuple[str, str]]:
    """A page for every derivation, below the page of its subject, which has the equations."""
    subjects: dict[str, list[str]] = {}
    for name in by_name():
        subjects.setdefault(subject(name), []).append(name)
    sets = cases()
    for each, names in subjects.items():
        title, _, about = description(each).partition(":")
        entries = {name: by_name()[name] for name in names}
        derived = [name for name, entry in entries.items() if isinstance(entry, Derivation)]
        stated = [entry for entry in entries.values() if isinstance(entry, Equation)]
        parts = [head(words(title.removesuffix(".")), f"subject-{each}")]
        parts += [f"{words(about.strip().capitalize())}\n\n"] if about.strip() else []
        parts.append(listing(derived, title="Derivations") if derived else "")
        parts.append(raw(fragment(document(stated, sets, title))) if stated else "")
        yield f"derivations/{each}/index", "\n".join(parts)
        for name in derived:
            yield f"derivations/{each}/{name}", derivation_page(name, sets)
    about = "Every step below was checked when this page was built."
    index = f"{head('Derivations', 'derivations')}{about}\n"
    yield "derivations/index", index + listing(f"{each}/index" for each in subjects)


def derivation_page(name: str, sets: Mapping[str, Mapping[str, float]]) -> str:
    """Steps with their proofs, what they come to in each set of numbers, symbols, sources."""
    entry = by_name()[name]
    resting = [claim for claim in all_claims() if claim.id in tags(name)]
    whole = document([entry], sets, acceptance=acceptance(resting, whole=False))
    command = f"The same on a terminal: `planner derive {name}`.\n\n"
    return head(words(whole.title), f"derivation-{name}") + command + raw(fragment(whole))


# Commands --------------------------------------------------------------------------------------


def command_pages() -> Iterator[tuple[str, str]]:
    """A page for every command of the command line, as its `--help` says it."""
    root = typer.main.get_command(command_line)
    assert isinstance(root, TyperGroup)
    context = typer.Context(root, info_name="planner")
    listed = list(_commands(root, context))
    for each in listed:
        yield f"commands/{each.command_path.replace(' ', '-')}", command_page(each)
    rows = [
        (f"[`{each.command_path}`](#{_target(each)})", words(each.command.get_short_help_str(200)))
        for each in listed
    ]
    text = f"{head('Commands', 'commands')}{words(root.help or '')}\n\n{table(('', ''), rows)}"
    text += f"## Options of every command\n\n{_parameters(context)}"
    yield "commands/index", text + listing(each.command_path.replace(" ", "-") for each in listed)


def _commands(group: TyperGroup, context: typer.Context) -> Iterator[typer.Context]:
    """The commands below a group, those of groups below it too, each in its context."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = typer.Context(command, info_name=name, parent=context)
        if isinstance(command, TyperGroup):
            yield from _commands(command, inner)
        else:
            yield inner


def _target(context: typer.Context) -> str:
    return "command-" + context.command_path.removeprefix("planner ").replace(" ", "-")


def command_page(context: typer.Context) -> str:
    """Usage, what it does, its arguments and options."""
    usage = context.command.get_usage(context).removeprefix("Usage: ")
    paragraphs = (context.command.help or "").split("\n\n")
    parts = [head(words(context.command_path), _target(context)), f"```text\n{usage}\n```\n\n"]
    parts += [f"{words(paragraph)}\n\n" for paragraph in paragraphs]
    return "".join([*parts, _parameters(context)])


def _parameters(context: typer.Context) -> str:
    records = [each.get_help_record(context) for each in context.command.get_params(context)]
    return table(("", ""), [(code(flags), words(about)) for flags, about in filter(None, records)])


# Schemas ---------------------------------------------------------------------------------------


def schema_pages() -> Iterator[tuple[str, str]]:
    """For every kind of problem its keys and its answer, from the schemas of both."""
    definitions = json_schema()["$defs"]
    tops = [definitions[question.__name__] for question in question_types()]
    kinds = {top["properties"]["problem"]["const"]: top for top in tops}
    for kind, top in kinds.items():
        text = head(f"Scenario: {kind}", f"scenario-{kind}") + "A scenario to start from, as "
        text += f"`planner init {kind}` writes it:\n\n```yaml\n{starter(kind).rstrip()}\n```\n\n"
        yield f"scenarios/{kind}", text + SchemaTables(f"scenario-{kind}", definitions).page(top)
        answer = answer_schema(kind)
        tables = SchemaTables(f"answer-{kind}", answer["$defs"])
        text = head(f"Answer: {kind}", f"answer-{kind}")
        text += f"What `planner solve FILE --json` prints (`{answer['title']}`), in base units. "
        text += f"The schema itself: `planner schema --answer {kind}`.\n\n"
        yield f"answers/{kind}", text + tables.page(tables.definitions[reference(answer)])
    for folder, title, about in (
        ("scenarios", "Scenarios", "The keys of a scenario by `problem`; `planner schema` has them"
         " for an editor. Numbers are written with their units, or bare in base units."),
        ("answers", "Answers", "The keys of an answer in JSON, by `problem`."),
    ):  # fmt: skip
        yield f"{folder}/index", head(title, folder) + about + "\n" + listing(kinds)


def reference(shape: Schema) -> str:
    """The name of the record that a schema refers to."""
    return str(shape["$ref"]).rpartition("/")[2]


@dataclass(frozen=True)
class SchemaTables:
    """Tables of keys; `prefix` is that of the names by which pages link to them."""

    prefix: str
    definitions: Mapping[str, Schema]

    def page(self, top: Schema) -> str:
        """The keys of a record, then of every one that it leads to, in order of reach."""
        parts, reached, queue = [], set[str](), [("", top)]
        while queue:
            name, record = queue.pop(0)
            anchor = f"({self.prefix}-{name.lower()})=\n\n## {name}\n\n"
            parts.append(anchor if name else "## Keys\n\n")
            parts.append(words(record.get("description", "").split("\n\n")[0]) + "\n\n")
            parts.append(self._keys(record))
            for inner in self._records(record["properties"]):
                if inner not in reached:
                    reached.add(inner)
                    queue.append((inner, self.definitions[inner]))
        return "".join(parts)

    def _records(self, shape: object) -> Iterator[str]:
        """Names of the records that a schema leads to."""
        if isinstance(shape, Mapping):
            if "$ref" in shape and "properties" in self.definitions[reference(shape)]:
                yield reference(shape)
            shape = shape.values()
        if not isinstance(shape, str) and isinstance(shape, Iterable):
            for inner in shape:
                yield from self._records(inner)

    def _keys(self, record: Schema) -> str:
        required = record.get("required", ())
        optional = len(required) < len(record["properties"])
        rows = []
        for name, shape in record["properties"].items():
            about = [words(shape["description"])] if "description" in shape else []
            about += [words(f"[{shape['unit']}]")] if shape.get("unit", "1") != "1" else []
            if optional and name in required:
                about.append("**required**")
            elif shape.get("default") is not None:
                about.append(f"default {code(json.dumps(shape['default']))}")
            rows.append((code(name), "; ".join(about), self.takes(shape)))
        return table(("key", "", "takes"), rows)

    def takes(self, shape: Schema) -> str:
        """What a key takes, in a few words."""
        if "$ref" in shape:
            name = reference(shape)
            inner = self.definitions[name]
            linked = f"[{name}](#{self.prefix}-{name.lower()})"
            return linked if "properties" in inner else self.takes(inner)
        if "const" in shape or "enum" in shape:
            return " or ".join(code(str(x)) for x in shape.get("enum", (shape.get("const"),)))
        if "examples" in shape:
            return "such as " + ", ".join(code(str(x)) for x in shape["examples"])
        for several in ("anyOf", "oneOf"):
            if several in shape:
                choices = [self.takes(each) for each in shape[several]]
                return " or ".join(dict.fromkeys(x for x in choices if x != "nothing"))
        return self._of_type(shape)

    def _of_type(self, shape: Schema) -> str:
        kind, values = shape.get("type", "any value"), shape.get("additionalProperties")
        if kind == "array" and "items" in shape:
            return f"list of {self.takes(shape['items'])}"
        if kind == "object" and "properties" in shape:
            return code("{" + ", ".join(shape["properties"]) + "}")
        if kind == "object" and isinstance(values, Mapping):
            return f"mapping to {self.takes(values)}"
        names = [kind] if isinstance(kind, str) else [x for x in kind if x != "null"]
        return " or ".join(TYPES.get(x, x) for x in names)


# The packages, the examples --------------------------------------------------------------------


def package_pages() -> Iterator[tuple[str, str]]:
    """What the distribution's packages export, a page each."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    names = tool["hatch"]["build"]["targets"]["wheel"]["packages"]
    for name in names:
        text = f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```\n"
        yield f"api/{name}", head(words(name), f"api-{name}") + text
    yield "api/index", head("Python", "api") + "What the packages export.\n" + listing(names)


def _parameters_in_words(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Docstrings say what a parameter is behind its colon, where a type is looked for."""
    lines[:] = [
        line
        for each in lines
        for line in re.sub(r"^([\w*][\w*, ]*) : (.+)", r"\1\n    \2", each).split("\n")
    ]


def gallery_pages() -> Iterator[tuple[str, str]]:
    """Every example with the output beside it, which the tests compare, by kind."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for output in sorted((ROOT / "examples").glob("*.txt")):
        for source in (output.with_suffix(".yaml"), output.with_suffix(".py")):
            if source.exists():
                kind, about = _about(source)
                groups.setdefault(kind, []).append((source.stem, about))
                yield f"gallery/{source.stem}", example_page(source, about)
    text = head("Gallery", "gallery") + (
        "Examples with what they print; the tests run them, and an output that is not what is shown "
        "here fails.\n\n"
    )
    for kind, entries in groups.items():
        rows = [(f"[{words(stem)}](#example-{stem})", words(about)) for stem, about in entries]
        text += f"## {kind}\n\n{table(('', ''), rows)}"
        text += listing((stem for stem, _ in entries), title=kind)
    yield "gallery/index", text


def _about(source: Path) -> tuple[str, str]:
    """Kind of an example, and what it says of itself at its beginning."""
    text = source.read_text("utf-8")
    if source.suffix == ".py":
        return "Scripts", (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    kind = YAML(typ="safe").load(text)["problem"]
    return f"problem: {kind}", " ".join(line.lstrip("# ") for line in lines[:first])


def example_page(source: Path, about: str) -> str:
    """What is asked, what is typed, and what it prints."""
    scenario = source.suffix == ".yaml"
    command = (
        f"planner solve examples/{source.name}" if scenario else f"python examples/{source.name}"
    )
    kind = "yaml" if scenario else "python"
    return (
        f"{head(words(source.stem), f'example-{source.stem}')}{words(about)}\n\n"
        f"```{{literalinclude}} /../examples/{source.name}\n:language: {kind}\n"
        f":caption: examples/{source.name}\n```\n\n"
        f"```{{literalinclude}} /../examples/{source.stem}.txt\n:language: none\n"
        f":caption: {command}\n```\n"
    )


# HTML ------------------------------------------------------------------------------------------


@cache
def _mathml(latex: str) -> str:
    return mathml(notation(latex))


def _visit_math(self: HTMLTranslator, node: nodes.math) -> None:
    """MathML of a formula, for which a browser needs neither a script nor a network."""
    self.body.append(_mathml(node.astext()))
    raise nodes.SkipNode


def _collapse(
    app: Sphinx, page: str, template: str, context: dict[str, object], tree: nodes.document | None
) -> None:
    """Show of the tree at the side the branch of the page: whole, it is most of a build's time."""
    whole = context.get("toctree")
    if callable(whole):
        context["toctree"] = lambda **options: whole(**{**options, "collapse": True})


def _copy_font(app: Sphinx, fault: Exception | None) -> None:
    if fault is None and app.builder.format == "html":
        shutil.copy(FONT, Path(app.outdir) / "_static" / FONT.name)
