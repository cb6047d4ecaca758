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
from planner.text.errors import InputError, quoted
from planner.text.tables import table

HEREDOC = re.compile(r"cat\s*>\s*(\S+)\s*<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\2\b", re.S)
ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
LAUNCHERS = ("srun", "mpirun", "mpiexec")
SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")


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
    manifests = _manifests(text)
    containers = _pods(manifests) if manifests else [_script(text)]
    written = [_launch(x, beside) for x in containers if _program(x.words) is not None]
    if not written:
        starts = ", ".join(" ".join(x.program) for x in releases().values())
        raise InputError(f"{file}: starts no engine that is known (looked for {starts})")
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


def _manifests(text: str) -> list[Any]:
    """The documents of a manifest; none where the text is a script."""
    if not re.search(r"^kind:", text, re.M):
        return []
    from ruamel.yaml import YAML, YAMLError

    try:
        return [x for x in YAML(typ="safe").load_all(text) if isinstance(x, dict)]
    except YAMLError as error:
        raise InputError(f"a manifest that is no YAML: {error}") from error


def _pods(manifests: Sequence[Mapping[str, Any]]) -> list[_Container]:
    """The first container of what serves, of every deployment or group of pods."""
    files: dict[str, str] = {}
    for manifest in manifests:
        if manifest.get("kind") == "ConfigMap":
            files |= {str(k): str(v) for k, v in (manifest.get("data") or {}).items()}
    containers = []
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        group = spec.get("leaderWorkerTemplate") or {}
        template = group.get("leaderTemplate") or group.get("workerTemplate")
        pod = ((template or spec.get("template") or manifest).get("spec") or {}) if spec else {}
        for container in pod.get("containers") or []:
            words = [str(x) for key in ("command", "args") for x in container.get(key) or []]
            words = [word.replace("$$(", "$(") for word in words]
            if words[:1] and words[0] in SHELLS and "-c" in words:
                words = _script(words[-1]).words
            count = spec.get("replicas", 1)
            containers.append(_Container(words, files, count if isinstance(count, int) else 1))
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
            raise InputError(f"{name}: a scenario has no key for {rows['refused'][name]}")
        options[name] = value
    model = str(options.pop(MODEL, "") or model)
    if not model:
        raise InputError(f"{release.title} is started without a model")
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
    from ruamel.yaml import YAML, YAMLError

    if name not in files:
        raise InputError(f"the launch reads {name}, which is not there; give that file too")
    try:
        data = YAML(typ="safe").load(files[name])
    except YAMLError as error:
        raise InputError(f"{name}: no YAML: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{name}: expected settings, got {quoted(data)}")
    flat: dict[str, Value] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            flat[str(key)] = value
    return flat
