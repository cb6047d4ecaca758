"""Containers started by a launch: words of a script, of pods, or of services of a compose file.

Shell scripts are split into words as a shell would split them; nothing is run. Manifests of
Kubernetes are read for their containers, their replicas and their configuration files, and compose
files for the images and commands of their services.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from planner.text.errors import InputError, Mistake, quote
from topologies.files.located_yaml import AtLocation, document

DOCUMENTS, MAX_COUNT = 500, 10**9  # documents of a manifest; a number that counts something
HEREDOC = re.compile(r"cat\s*>\s*(\S+)\s*<<-?\s*['\"]?(\w+)['\"]?\n(.*?)\n\2\b", re.S)
ASSIGNMENT_PATTERN = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}]*))?\})")
ARRAY = re.compile(r"\w+\+?=\(")
SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")


@dataclass
class Container:
    """Words of one container or script, and the files it can read.

    Where a container has no program of its own, its image comes first. `arrays` are words that a
    script keeps for later; `replicas` is None where nothing says how many run, `image` empty.
    """

    words: list[str]
    files: dict[str, str] = field(default_factory=dict)
    replicas: int | None = None
    arrays: list[str] = field(default_factory=list)
    image: str = ""


def containers(text: str, file: str) -> list[Container]:
    """Return the containers of a text: a script's words, or those of every container described.

    Raises InputError for what is neither; `file` names it.
    """
    described = _documents(text, file)
    if not described:
        return [_script(text)]
    services = [one for one in described if one.at("services") and not one.at("kind")]
    files: dict[str, str] = {}
    for manifest in described:
        kind, data = manifest.at("kind"), manifest.at("data")
        if kind and kind.value == "ConfigMap" and data:
            manifest.require(data, dict, "data: names of files and their texts")
            files |= {key: str(text.plain) for key, text in data.value.items()}
    containers = []
    for manifest in described:
        spec = manifest.at("spec")
        if spec is None:
            continue
        manifest.require(spec, dict, "spec: keys")
        group = manifest.at("leaderWorkerTemplate", below=spec)
        template = group and (
            manifest.at("leaderTemplate", below=group) or manifest.at("workerTemplate", below=group)
        )
        pod = manifest.at("spec", below=template or manifest.at("template", below=spec))
        pod = pod or (spec if manifest.at("containers", below=spec) else None)
        count = _replicas(manifest, manifest.at("replicas", below=spec))
        for container in manifest.items("containers", pod) if pod else []:
            containers.append(_container(manifest, container, ("command", "args"), files, count))
    return [*chain.from_iterable(_services(one) for one in services), *containers]


def _script(text: str) -> Container:
    """The words of a shell script or a command line, variables put in."""
    files = {shlex.split(name)[0]: body for name, _, body in HEREDOC.findall(text)}
    body = HEREDOC.sub("", text).replace("\\\n", " ")
    try:
        words = shlex.split(body, comments=True)
    except ValueError as error:
        raise InputError(f"a command that cannot be split into words: {error}") from error
    values = {m[1]: m[2] for word in words if (m := ASSIGNMENT_PATTERN.fullmatch(word))}
    put_in = list(chain.from_iterable(_put_in(word, values) for word in words))
    arrays: list[str] = []
    outside: list[str] = []
    inside = False
    for word in put_in:
        opens = ARRAY.match(word)
        inside = inside or bool(opens)
        part = word[opens.end() :] if opens else word
        closes = inside and part.endswith(")") and "(" not in part
        (arrays if inside else outside).append(part.removesuffix(")") if closes else part)
        inside = inside and not closes
    return Container(
        [word for word in outside if "[@]" not in word], files, arrays=[x for x in arrays if x]
    )


def _put_in(word: str, values: Mapping[str, str]) -> list[str]:
    whole = VARIABLE.sub(lambda m: _value(m, values), word)
    return shlex.split(whole) if VARIABLE.fullmatch(word) and whole.startswith("-") else [whole]


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    name, default = match[1] or match[2], match[3]
    return values.get(name, match[0] if default is None else default)


@dataclass(frozen=True)
class _Document:
    """One document of a file, whose lines begin `above` lines below those of the file."""

    root: AtLocation
    file: str
    above: int

    def at(self, *path: str, below: AtLocation | None = None) -> AtLocation | None:
        """Return the node at a path of keys, from the root or `below` a value; None if absent."""
        node = below or self.root
        for part in path:
            self.require(node, dict, "keys")
            inner = node.value.get(part)
            if inner is None or inner.value is None:
                return None
            node = inner
        return node

    def items(self, key: str, below: AtLocation) -> list[AtLocation]:
        """The items of a list below a value; none where it is not there."""
        listed = self.at(key, below=below)
        if listed is not None:
            self.require(listed, list, f"{key}: a list")
        return listed.value if listed else []

    def require(self, node: AtLocation, shape: type, words: str) -> None:
        """Raises InputError, at its place, for a value of another shape."""
        if not isinstance(node.value, shape) or isinstance(node.value, bool):
            raise self.mistake(node, f"expected {words}, got {quote(node.value)}")

    def mistake(self, node: AtLocation, message: str) -> InputError:
        """Return an InputError for a value, with its location in the file."""
        return InputError(Mistake(self.file, node.line + self.above, node.column, "", message))


def _documents(text: str, file: str) -> list[_Document]:
    """The documents of a manifest or a compose file; none where the text is a script."""
    if not re.search(r"^(kind|services):|\A\s*\{", text, re.M):
        return []
    manifests: list[_Document] = []
    above = 0
    for part in re.split(r"^(?=---)", text, maxsplit=DOCUMENTS, flags=re.M):
        read = document(part)
        if read.root is None or read.faults:
            faults = [Mistake(file, x.line + above, x.column, "", x.message) for x in read.faults]
            if faults:
                raise InputError(faults)
        elif isinstance(read.root.value, dict):
            manifests.append(_Document(read.root, file, above))
        above += part.count("\n")
    return manifests


def _replicas(file: _Document, count: AtLocation | None) -> int:
    if count is None:
        return 1
    if type(count.value) is not int or not 1 <= count.value <= MAX_COUNT:
        raise file.mistake(count, f"replicas: expected 1 or more, got {quote(count.value)}")
    return count.value


def _services(file: _Document) -> list[Container]:
    """The services of a compose file."""
    listed = file.at("services")
    assert listed is not None
    file.require(listed, dict, "services: names and what each runs")
    started = []
    for service in listed.value.values():
        file.require(service, dict, "a service: keys such as image and command")
        count = file.at("deploy", "replicas", below=service)
        count = count or file.at("scale", below=service)
        keys, replicas = ("entrypoint", "command"), _replicas(file, count)
        started.append(_container(file, service, keys, {}, replicas))
    return started


def _container(
    file: _Document, container: AtLocation, keys: tuple[str, str], files: dict[str, str], count: int
) -> Container:
    """The container described; its image first where the words are options of its own program."""
    words: list[str] = []
    for key in keys:
        node = file.at(key, below=container)
        if node is not None and isinstance(node.value, str):
            words += _script(node.value).words
        else:
            words += [str(x.plain) for x in file.items(key, container)]
    words = [word.replace("$$(", "$(") for word in words]
    if words[:1] and words[0] in SHELLS and len(words) > 2 and words[1].endswith("c"):
        words = _script(words[-1]).words
    node = file.at("image", below=container)
    image = "" if node is None else str(node.plain)
    first = [image] if image and file.at(keys[0], below=container) is None else []
    return Container([*first, *words], files, count, image=image)
