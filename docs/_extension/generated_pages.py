"""Pages made of the project itself when the site is built: nothing here names what it finds.

Derivations come from the registry of `formulas`, commands from the command line, keys of scenarios
and answers from their schemas, the gallery from the files of `examples/`, the API from what each
package exports.
"""

from __future__ import annotations

import ast
import inspect
import tomllib
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import typer.main
from ruamel.yaml import YAML
from typer.core import TyperGroup

from _extension.markdown import code, head, listing, raw, table, words
from _extension.schema_tables import SchemaTables, reference
from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.claims import all_claims
from formulas.export.formula_blocks import fragment_blocks
from formulas.export.formula_document import Chapter, FormulaDocument, document
from formulas.export.html import HTML
from formulas.registry import by_name, description, subject, tags
from planner.claims.physical_column import acceptance
from planner.cli.app import app as command_line
from planner.protocol.solve import answer_schema
from planner.report.text.derivations import cases
from planner.scenario import json_schema
from planner.scenario.kinds import question_types, starter

ROOT = Path(__file__).parents[2]


def pages() -> dict[str, str]:
    """{path below the folder without `.md`: text} of every page."""
    return dict(
        [*derivation_pages(), *command_pages(), *schema_pages(), *package_pages(), *gallery_pages()]
    )


# Derivations -----------------------------------------------------------------------------------


def derivation_pages() -> Iterator[tuple[str, str]]:
    """A page for every derivation, below the page of its subject, which has the equations."""
    subjects: dict[str, list[str]] = {}
    for name in by_name():
        subjects.setdefault(subject(name), []).append(name)
    sets = cases()
    for each, names in subjects.items():
        chapter = Chapter(each, description(each), ())
        entries = {name: by_name()[name] for name in names}
        derived = [name for name, entry in entries.items() if isinstance(entry, Derivation)]
        stated = [entry for entry in entries.values() if isinstance(entry, Equation)]
        parts = [head(words(chapter.title), f"subject-{each}"), words(chapter.about) + "\n\n"]
        parts.append(f"## Derivations\n{listing(derived)}" if derived else "")
        if stated:
            parts.append(f"## Equations\n\n{raw(fragment(document(stated, sets, chapter.title)))}")
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


def fragment(whole: FormulaDocument) -> str:
    """HTML of entries, symbols and cited works that stands inside a page of the site."""
    return HTML.written(fragment_blocks(whole))


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
    entries = (each.command_path.replace(" ", "-") for each in listed)
    yield "commands/index", text + listing(entries, hidden=True)


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


# The packages, the examples --------------------------------------------------------------------


def package_pages() -> Iterator[tuple[str, str]]:
    """What the distribution's packages export, a page each."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    names = tool["hatch"]["build"]["targets"]["wheel"]["packages"]
    for name in names:
        module = import_module(name)
        parts = [f".. testsetup:: *\n\n   from {name} import *", f".. automodule:: {name}"]
        parts += [exported(f"{name}.{x}", getattr(module, x)) for x in sorted(module.__all__)]
        text = "```{eval-rst}\n" + "\n\n".join(parts) + "\n```\n"
        yield f"api/{name}", head(words(name), f"api-{name}") + text
    yield "api/index", head("Python", "api") + "What the packages export.\n" + listing(names)


def exported(name: str, value: object) -> str:
    """The directive that documents a name: with its docstring, or as a constant of a type."""
    if isinstance(value, type):
        kind = "exception" if issubclass(value, Exception) else "class"
        return f".. auto{kind}:: {name}\n   :members:"
    if inspect.isroutine(value):
        return f".. autofunction:: {name}"
    about = value.name if isinstance(value, Equation | Derivation) else "by name"
    module, _, bare = name.rpartition(".")
    options = f"   :module: {module}\n   :type: {type(value).__name__}"
    return f".. py:data:: {bare}\n{options}\n\n   {about}"


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
        "Examples with what they print. The tests run them, and fail where an output is not what "
        "stands here.\n\n"
    )
    for kind, entries in groups.items():
        rows = [(f"[{words(stem)}](#example-{stem})", words(about)) for stem, about in entries]
        text += f"## {kind}\n\n{table(('', ''), rows)}"
        text += listing((stem for stem, _ in entries), hidden=True)
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
