"""A launch as it was written, read back: the engine, its options, its settings, its replicas.

Shell scripts are split into words as a shell would split them; nothing is run. Manifests of
Kubernetes are read for their containers, their replicas and their configuration files.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from planner.engines.launch import MODEL, Release, Value, releases
from planner.text.errors import InputError, Mistake, quoted
from planner.text.tables import table
from topologies.files.located_yaml import Located, document

DOCUMENTS, MOST = 500, 10**9  # documents of a manifest; a number that counts something
HEREDOC = re.compile(r"cat\s*>\s*(\S+)\s*<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\2\b", re.S)
ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
LAUNCHERS = ("srun", "mpirun", "mpiexec")
SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")


class OptionError(InputError):
    """What is wrong with an option of a launch; `word` is its name in the release's rows."""

    def __init__(self, word: str, message: str) -> None:
        self.word = word
        super().__init__(message)


def placed(error: InputError, file: str, text: str) -> InputError:
    """An error with the place of its option in a file, as people spell it; else the file alone."""
    if error.mistakes:
        return error
    word = error.word if isinstance(error, OptionError) else ""
    engines = table("planner.engines", "imports.toml").values()
    spelled = [x for rows in engines for x, name in rows["aliases"].items() if name == word]
    pattern = "|".join(map(re.escape, [word, *spelled]))
    match = re.search(rf"(?<![\w-])(?:{pattern})(?![\w-])", text) if word else None
    line = column = None
    if match:
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - text.rfind("\n", 0, match.start())
    return InputError(Mistake(file, line, column, "", str(error)))


@dataclass(frozen=True)
class WrittenLaunch:
    """One launch: options by the release's names, of which a switch has None.

    `replicas` is None where a script does not say how many there are; `unread` are options that
    the release's rows do not have.
    """

    release: Release
    model: str
    options: Mapping[str, Value]
    replicas: int | None = None
    unread: tuple[str, ...] = ()


@dataclass
class _Container:
    """Words of one container, and the files it can read."""

    words: list[str]
    files: dict[str, str] = field(default_factory=dict)
    replicas: int | None = None


def launches(text: str, file: str, beside: Mapping[str, str]) -> list[WrittenLaunch]:
    """Every launch of an engine in a script or a manifest; one for each pool.

    `beside` are texts of files that stand with it, by name. Raises InputError for text without a
    launch, for options that a scenario has no key for, and for a settings file that is not there.
    """
    manifests = _manifests(text, file)
    containers = _pods(manifests) if manifests else [_script(text)]
    written = [_launch(x, beside) for x in containers if _program(x.words) is not None]
    if not written:
        starts = ", ".join(" ".join(x.program) for x in releases().values())
        raise InputError(f"starts no engine that is known (looked for {starts})")
    return written


def _script(text: str) -> _Container:
    """The words of a shell script or a command line, variables put in."""
    files = {shlex.split(name)[0]: body for name, _, body in HEREDOC.findall(text)}
    body = HEREDOC.sub("", text).replace("\\\n", " ")
    try:
        words = shlex.split(body, comments=True)
    except ValueError as error:
        raise InputError(f"a command that cannot be split into words: {error}") from error
    words = list(chain.from_iterable(_unbracketed(word) for word in words))
    values = {m[1]: m[2] for word in words if (m := ASSIGNED.fullmatch(word))}
    put_in = [VARIABLE.sub(lambda m: values.get(m[1], m[0]), word) for word in words]
    return _Container([word for word in put_in if not word.startswith("${options")], files)


def _unbracketed(word: str) -> Iterator[str]:
    """The words of an array, without what opens and closes it."""
    word = re.sub(r"^\w+\+?=\((?=.|$)", "", word)
    yield from (
        part for part in (word.removesuffix(")") if word.startswith("-") else word,) if part
    )


@dataclass(frozen=True)
class _Manifest:
    """One document of a file, whose lines begin `above` lines below those of the file."""

    root: Located
    file: str
    above: int

    def at(self, *path: str, below: Located | None = None) -> Located | None:
        """What stands at a path of keys, from the root or `below` a value; None for nothing."""
        node = below or self.root
        for part in path:
            self.require(node, dict, "keys")
            inner = node.value.get(part)
            if inner is None or inner.value is None:
                return None
            node = inner
        return node

    def items(self, key: str, below: Located) -> list[Located]:
        """The items of a list below a value; none where it is not there."""
        listed = self.at(key, below=below)
        if listed is not None:
            self.require(listed, list, f"{key}: a list")
        return listed.value if listed else []

    def require(self, node: Located, shape: type, words: str) -> None:
        """Raises InputError, at its place, for a value of another shape."""
        if not isinstance(node.value, shape) or isinstance(node.value, bool):
            raise self.mistake(node, f"expected {words}, got {quoted(node.value)}")

    def mistake(self, node: Located, message: str) -> InputError:
        """What is wrong with a value, at its place."""
        return InputError(Mistake(self.file, node.line + self.above, node.column, "", message))


def _manifests(text: str, file: str) -> list[_Manifest]:
    """The documents of a manifest; none where the text is a script."""
    if not re.search(r"^kind:|\A\s*\{", text, re.M):
        return []
    manifests: list[_Manifest] = []
    above = 0
    for part in re.split(r"^(?=---)", text, maxsplit=DOCUMENTS, flags=re.M):
        read = document(part)
        if read.root is None or read.faults:
            faults = [Mistake(file, x.line + above, x.column, "", x.message) for x in read.faults]
            if faults:
                raise InputError(faults)
        elif isinstance(read.root.value, dict):
            manifests.append(_Manifest(read.root, file, above))
        above += part.count("\n")
    return manifests


def _pods(manifests: Sequence[_Manifest]) -> list[_Container]:
    """The first container of what serves, of every deployment or group of pods."""
    files: dict[str, str] = {}
    for manifest in manifests:
        kind, data = manifest.at("kind"), manifest.at("data")
        if kind and kind.value == "ConfigMap" and data:
            manifest.require(data, dict, "data: names of files and their texts")
            files |= {key: str(text.plain) for key, text in data.value.items()}
    containers = []
    for manifest in manifests:
        spec = manifest.at("spec")
        if spec is None:
            continue
        manifest.require(spec, dict, "spec: keys")
        group = manifest.at("leaderWorkerTemplate", below=spec)
        template = group and (
            manifest.at("leaderTemplate", below=group) or manifest.at("workerTemplate", below=group)
        )
        pod = manifest.at("spec", below=template or manifest.at("template", below=spec))
        count = manifest.at("replicas", below=spec)
        if count is not None and (type(count.value) is not int or not 1 <= count.value <= MOST):
            raise manifest.mistake(
                count, f"replicas: expected 1 or more, got {quoted(count.value)}"
            )
        for container in manifest.items("containers", pod) if pod else []:
            words = [
                str(x.plain) for key in ("command", "args") for x in manifest.items(key, container)
            ]
            words = [word.replace("$$(", "$(") for word in words]
            if words[:1] and words[0] in SHELLS and "-c" in words:
                words = _script(words[-1]).words
            containers.append(_Container(words, files, count.value if count else 1))
    return containers


def _program(words: Sequence[str]) -> tuple[str, int, int] | None:
    """The engine that words start, and between which places they say so."""
    for engine, rows in table("planner.engines", "imports.toml").items():
        for program in rows["programs"]:
            for start in range(len(words) - len(program) + 1):
                if list(words[start : start + len(program)]) == program:
                    return engine, start, start + len(program)
    return None


def _launch(container: _Container, beside: Mapping[str, str]) -> WrittenLaunch:
    """The options of the words, and of the settings file that they name."""
    program = _program(container.words)
    assert program is not None
    engine, start, end = program
    release, rows = releases()[engine], table("planner.engines", "imports.toml")[engine]
    words = container.words
    before = next((i for i in range(start) if words[i] in LAUNCHERS), start)
    stream = [*words[:before], *words[end:]]
    model = words[end] if end < len(words) and not words[end].startswith("-") else ""
    switches = {row.name for row in _rows(release) if row.value is None and row.fact is None}
    options: dict[str, Value] = {}
    for name, value in _pairs(stream, switches, rows["aliases"]):
        if name in rows["refused"]:
            why = f"a scenario has no key for {rows['refused'][name]}"
            raise OptionError(name, f"{name}: {why}")
        options[name] = value
    model = str(options.pop(MODEL, "") or model)
    if not model:
        last = container.words[end - 1]
        raise OptionError(last, f"{release.title} is started without a model")
    named = str(options.get("--extra_llm_api_options") or "").rpartition("/")[2]
    if named and release.settings:
        options |= _settings(named, {**beside, **container.files})
    names = {row.name for row in _rows(release)}
    unread = tuple(name for name in options if name not in names)
    carried = {name: value for name, value in options.items() if name in names}
    return WrittenLaunch(release, model, carried, container.replicas, unread)


def _rows(release: Release) -> Iterable[Any]:
    return (*release.options, *release.settings, *release.followers)


def _pairs(
    words: Sequence[str], switches: set[str], aliases: Mapping[str, str]
) -> Iterator[tuple[str, Value]]:
    """Options with their values, by the names of the release; words that are neither are left."""
    place = 0
    while place < len(words):
        name, sign, value = words[place].partition("=")
        place += 1
        if not re.match(r"--?[A-Za-z]", name):
            continue
        name = aliases.get(name, name)
        if sign:
            yield name, value
        elif name not in switches and place < len(words) and not _is_option(words[place]):
            yield name, words[place]
            place += 1
        else:
            yield name, None


def _is_option(word: str) -> bool:
    return re.match(r"--?[A-Za-z]", word) is not None


def _settings(name: str, files: Mapping[str, str]) -> dict[str, Value]:
    """The settings of a configuration file, nested keys dotted."""
    if name not in files:
        words = f"the launch reads {name}, which is not there; give that file too"
        raise OptionError("--extra_llm_api_options", words)
    read = document(files[name])
    if read.faults:
        raise InputError(Mistake(name, x.line, x.column, "", x.message) for x in read.faults)
    data = read.root and read.root.plain
    if not isinstance(data, dict):
        raise InputError(Mistake(name, 1, 1, "", f"expected settings, got {quoted(data)}"))
    flat: dict[str, Value] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            flat[str(key)] = value
    return flat
