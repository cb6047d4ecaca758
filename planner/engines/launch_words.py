"""A launch as it was written, read back: the engine, its options, its settings, its replicas.

Words of a script, of pods or of compose services are told apart by `option_names`: what the
release's rows carry is read, what a scenario has no key for is refused or named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.engines.containers import Container, containers
from planner.engines.launch import MODEL, FactValue, Release, releases
from planner.engines.option_names import OptionError, engine_options, options_by_name
from planner.text.errors import InputError, Mistake, quote
from planner.text.tables import table
from topologies.files.located_yaml import document

# Shell operators and redirections that end a command.
COMMAND_END = re.compile(r"[|&;<>]+|\d?>>?.*")
NEUTRAL = frozenset({"0", "1", "none", "null", "false", "auto", "bfloat16"})
SETTINGS = "--extra_llm_api_options"


def with_source_location(error: InputError, file: str, text: str) -> InputError:
    """An error with the place of its option in a file, as people spell it; else the file alone."""
    if error.mistakes:
        return error
    word = error.word if isinstance(error, OptionError) else ""
    engines = table("planner.engines", "imports.toml").values()
    spelled = [x for rows in engines for x, name in rows["aliases"].items() if name == word]
    pattern = "|".join(re.escape(x).replace(r"\-", "[-_]") for x in [word, *spelled])
    match = re.search(rf"(?<![\w-])(?:{pattern})(?![\w-])", text) if word else None
    line = column = None
    if match:
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - text.rfind("\n", 0, match.start())
    return InputError(Mistake(file, line, column, "", str(error)))


@dataclass(frozen=True)
class WrittenLaunch:
    """Parsed launch: options by the release's names, None as the value of a switch.

    `replicas` is None where a script does not say how many there are; `uncounted` are options that
    may change memory or time and that a scenario has no key for, with what they change; `unknown`
    are those that the release does not have; `version` is that of its image's tag, else empty.
    """

    release: Release
    model: str
    options: Mapping[str, FactValue]
    replicas: int | None = None
    uncounted: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    version: str = ""


def launches(text: str, file: str, beside: Mapping[str, str]) -> list[WrittenLaunch]:
    """Every launch of an engine in a script, a manifest or a compose file; one for each pool.

    `beside` are texts of files that stand with it, by name. Raises InputError for text without a
    launch, for options that a scenario has no key for, and for a settings file that is not there.
    """
    every = containers(text, file)
    written = [_launch(x, beside, text) for x in every if _program(x.words) is not None]
    if not written:
        starts = ", ".join(" ".join(x.program) for x in releases().values())
        raise InputError(f"starts no engine that is known (looked for {starts})")
    return written


def _program(words: Sequence[str]) -> tuple[str, int] | None:
    """The engine that words start, by name or by its image, and where its options begin."""
    engines = table("planner.engines", "imports.toml").items()
    for engine, rows in engines:
        for program in rows["programs"]:
            for start in range(len(words) - len(program) + 1):
                first, *more = words[start : start + len(program)]
                if [first.rpartition("/")[2], *more] == program:
                    return engine, start + len(program)
    for engine, rows in engines:
        for place, word in enumerate(words):
            if any(re.fullmatch(rf"(.*/)?{image}([:@].*)?", word) for image in rows["images"]):
                return engine, place + 1
    return None


def _launch(container: Container, beside: Mapping[str, str], text: str) -> WrittenLaunch:
    """The options of the words, and of the settings file that they name; variables in a text."""
    program = _program(container.words)
    assert program is not None
    engine, end = program
    parser, words = engine_options(engine), container.words
    rows = table("planner.engines", "imports.toml")[engine]
    after = next((i for i in range(end, len(words)) if COMMAND_END.fullmatch(words[i])), len(words))
    pairs = [*parser.pairs(words[end:after]), *parser.pairs(container.arrays)]
    models = [str(value) for name, value in pairs if not name]
    options = options_by_name((name, value) for name, value in pairs if name)
    model = str(options.pop(MODEL, "") or (models[0] if models else ""))
    if not model:
        last = container.words[end - 1]
        raise OptionError(last, f"{parser.release.title} is started without a model")
    named = str(options.get(SETTINGS) or "").rpartition("/")[2]
    if named and parser.release.settings:
        settings = _settings(named, {**beside, **container.files})
        options |= {parser.names.get(name, name): value for name, value in settings.items()}
    for switch, (of_all, name) in parser.turned.items():
        if switch in options and of_all in options:
            options[name] = options.pop(of_all)
        options.pop(switch, None)
    carried: dict[str, FactValue] = {}
    uncounted = {
        name: what for name, what in rows["variables"].items() if re.search(rf"\b{name}\b", text)
    }
    unknown = []
    for name, value in options.items():
        neutral = value is not None and str(value).lower() in NEUTRAL
        if name in parser.refused and not neutral:
            raise OptionError(name, f"{name}: a scenario has no key for {parser.refused[name]}")
        if name in parser.carried:
            carried[name] = value
        elif name in parser.earlier or name not in parser.names.values():
            unknown += [name]
        elif name not in parser.idle and not neutral and value is not False:
            uncounted[name] = parser.effects.get(name, "memory or time")
            carried |= {name: value} if name in rows["sizes"] else {}
    # Versions have one figure before the first dot: tags of dates (25.09) are none.
    tag = re.compile(rf"(?:^|/)(?:{'|'.join(rows['tags'])})(\d\.\d+(?:\.\d+)?)")
    tags = filter(None, map(tag.search, (*words[:end], container.image)))
    return WrittenLaunch(
        parser.release, model, carried, container.replicas, uncounted, tuple(unknown),
        version=next((x[1] for x in tags), ""),
    )  # fmt: skip


def _settings(name: str, files: Mapping[str, str]) -> dict[str, FactValue]:
    """The settings of a configuration file, nested keys dotted."""
    if name not in files:
        words = f"the launch reads {name}, which is not there; give that file too"
        raise OptionError(SETTINGS, words)
    read = document(files[name])
    if read.faults:
        raise InputError(Mistake(name, x.line, x.column, "", x.message) for x in read.faults)
    data = read.root and read.root.plain
    if not isinstance(data, dict):
        raise InputError(Mistake(name, 1, 1, "", f"expected settings, got {quote(data)}"))
    flat: dict[str, FactValue] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            flat[str(key)] = value
    return flat
