"""A launch as Kubernetes manifests: a Deployment, or a LeaderWorkerSet where a replica has nodes.

They are the parts of `manifests.yaml`, filled in; placeholders are listed at the head. Words of the
command are lists, so no shell reads them; `$(` in a name is doubled, or the kubelet would take it
for a variable.
"""

import io
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq
from ruamel.yaml.scalarstring import LiteralScalarString

from planner.engines.deployment import Deployment
from planner.engines.launch import LEADER, MODEL, RANK, Launch, comment, configuration, option_value
from planner.protocol.problem import ReplicaHours
from planner.text.errors import Infeasible

# Resource names of the vendors' device plugins (NVIDIA/k8s-device-plugin, ROCm/k8s-device-plugin).
RESOURCES = MappingProxyType({"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"})
SETTINGS = "/etc/planner"
NODE = {RANK: "$(LWS_WORKER_INDEX)", LEADER: "$(LWS_LEADER_ADDRESS)"}
Manifest: TypeAlias = dict[str, object]
LONGEST_NAME = 40
DAY = 24
TOLERANCE = 0.1  # kube-controller-manager, --horizontal-pod-autoscaler-tolerance
HEALTH = "/health"  # where every engine answers


def manifest(pools: Iterable[tuple[Launch, Deployment]], model: str, heading: Iterable[str]) -> str:
    """Manifests of all replicas of every pool and the services before them, as one YAML file.

    Raises Infeasible if a replica of several nodes is started by an MPI launcher, which a pod is
    not.
    """
    documents: list[Manifest] = []
    placeholders: list[str] = []
    for launch, plan in pools:
        documents += _documents(launch, plan, model)
        placeholders += [line for line in _placeholders(launch, plan) if line not in placeholders]
    head = "\n".join(comment([*heading, "", "Replace before use:", *placeholders]))
    return f"{head}\n{_yaml(documents)}"


def schedule(rows: Iterable[ReplicaHours]) -> str:
    """Replicas by hour as ScaledObjects of KEDA with cron triggers in UTC, as one YAML file.

    Raises Infeasible where the hours are no day and no week, for a cron trigger repeats by those.
    """
    documents: list[Manifest] = []
    unmoved, names = 0, set[str]()
    for row in rows:
        if len(row.replicas) not in (DAY, 7 * DAY):
            raise Infeasible(
                f"a schedule repeats by day or week, but the plan has {len(row.replicas)} hours; "
                "use hours: 24 or 168"
            )
        name = base = _dns(row.name)
        while name in names:
            name = f"{base}-{len(names)}"
        names.add(name)
        hours = pairwise((*row.replicas, row.replicas[0]))
        unmoved += sum(0 < abs(later - now) <= TOLERANCE * now for now, later in hours)
        triggers = [
            _filled("trigger", {"start": _cron(start, len(row.replicas)),
                                "end": _cron(end, len(row.replicas)), "replicas": str(count)})
            for start, end, count in _runs(row.replicas)
        ]  # fmt: skip
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        if row.machines > 1:
            target |= {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
        facts: Manifest = {"name": name, "target": target, "triggers": triggers}
        facts |= {"most": max(row.replicas), "labels": dict(row.labels)}
        documents.append(_filled("schedule", facts))
    head = [
        "Replicas by hour (UTC) for KEDA, written by token-planner. Every ScaledObject scales the "
        "Deployment or LeaderWorkerSet of its name, which is not part of this: planner export of "
        "a serving plan writes one. Replicas of contract spot belong on spot machines."
    ]
    if unmoved:
        head.append(
            f"{unmoved} changes from hour to hour are of at most a tenth of the replicas, which an "
            "autoscaler leaves undone by default: set --horizontal-pod-autoscaler-tolerance of "
            "the controller manager to 0."
        )
    return "\n".join(comment(head)) + f"\n{_yaml(documents)}"


def _runs(replicas: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield (first hour, hour after the last, count) of runs of equal count, cyclic, without zeros.

    A run of all hours is two: a trigger that starts when it ends is refused.
    """
    hours = len(replicas)
    starts = [t for t in range(hours) if replicas[t] != replicas[t - 1]] or [0, hours // 2]
    for start, end in zip(starts, (*starts[1:], starts[0]), strict=True):
        if replicas[start]:
            yield start, end, replicas[start]


def _cron(hour: int, hours: int) -> str:
    return f"0 {hour % DAY} * * {'*' if hours == DAY else (1 + hour // DAY) % 7}"


def _documents(launch: Launch, plan: Deployment, model: str) -> Iterator[Manifest]:
    """Service, pods and configuration of one pool."""
    if launch.prefix:
        raise Infeasible(
            f"a replica has {launch.nodes} nodes, and {launch.release.title} starts those through "
            "an MPI launcher, which no LeaderWorkerSet has; what would work: --engine vllm or "
            "sglang, or a layout inside one node"
        )
    name: Manifest = {"name": _dns(plan.checkpoint.sizes.name, launch.release.name, launch.role)}
    facts: Manifest = {**name, "labels": _filled("labels", name)}
    facts |= {"replicas": plan.layout["replicas"], "nodes": launch.nodes}
    if launch.config:
        text = "\n".join(configuration(launch.config)) + "\n"
        yield _filled("config", facts | {"files": {launch.config_file: LiteralScalarString(text)}})
    yield _filled("service", facts)
    for role in ("server", "worker"):
        facts[role] = _pod(launch, plan, model, name, role)
    yield _filled("groups" if launch.nodes > 1 else "pods", facts)


@cache
def _manifests() -> dict[str, Manifest]:
    text = files("planner.engines").joinpath("manifests.yaml").read_text(encoding="utf-8")
    parts: dict[str, Manifest] = YAML(typ="safe").load(text)
    return parts


def _filled(name: str, facts: Manifest) -> Manifest:
    """A part with a fact in place of every word between @."""

    def filled(part: object) -> object:
        if isinstance(part, dict):
            return {key: filled(value) for key, value in part.items()}
        if isinstance(part, list):
            return [filled(value) for value in part]
        return facts[part.strip("@")] if isinstance(part, str) and part.startswith("@") else part

    return {key: filled(value) for key, value in _manifests()[name].items()}


def _placeholders(launch: Launch, plan: Deployment) -> Iterator[str]:
    image = launch.release.vendors[plan.chip.maker]
    yield f"  image {image}: named as the project names its images, not pulled; pin one you tested"
    yield "  claim model-weights: a volume that every node reads, mounted at /models"
    if plan.checkpoint.folder:
        yield "  the folder of the weights below /models, where the command names it"
    else:
        yield "  secret hf-token, key token: wanted for gated repositories only"
    if plan.role:
        yield "  a router before the two services, as the engine wants it; it is not part of this"
    if launch.nodes > 1:
        yield "  the network: RDMA devices and their resource names are your cluster's own"
        yield "A StatefulSet per replica would do as well; LeaderWorkerSet must be installed."


def _pod(launch: Launch, plan: Deployment, model: str, facts: Manifest, role: str) -> Manifest:
    """The pod of a server, or of a worker that only computes for one."""
    serves, environment = role == "server", _manifests()["environment"]
    wanted = ("weights", "shared-memory", *(["settings"] if launch.config else []))
    mounts, volumes = _manifests()["mounts"], _filled("volumes", facts)
    container = _filled(
        "container",
        {
            "engine": launch.release.name,
            "image": launch.release.vendors[plan.chip.maker],
            "command": [_word(word, model) for word in launch.release.program],
            "args": _arguments(launch, model, serves=serves),
            "environment": [
                *(
                    {"name": variable.name, "valueFrom": environment["own_address"]}
                    for variable in launch.environment
                ),
                environment["home"],
                environment["token"],
            ],
            "chips": {RESOURCES[plan.chip.maker]: launch.local},
            "mounts": [mounts[volume] for volume in wanted],
        },
    )
    if serves:
        container |= _filled("serving", {"port": launch.release.port, "health": HEALTH})
    labels = _filled("labels", facts) | {"role": role}
    parts = {"container": container, "volumes": [volumes[volume] for volume in wanted]}
    return _filled("pod", {"labels": labels, **parts})


def _arguments(launch: Launch, model: str, *, serves: bool) -> CommentedSeq:
    """Return the arguments, a line each, with the reason as a comment."""
    taken = [*launch.options, *(() if serves else launch.followers)]
    arguments = CommentedSeq()
    for index, option in enumerate(taken):
        value = option.value
        if value == launch.config_file and launch.config_file:
            value = f"{SETTINGS}/{value}"
        arguments.append(_word(option_value(option.name, value), model))
        arguments.yaml_add_eol_comment(option.because, index)
    return arguments


def _word(word: str, model: str) -> str:
    for place, variable in NODE.items():
        if place in word:
            return word.replace(place, variable)
    return word.replace(MODEL, model).replace("$(", "$$(")


def _dns(name: str, *endings: str) -> str:
    words_of = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    short = "-".join([words_of[:LONGEST_NAME].strip("-") or "model", *filter(None, endings)])
    return short if short[0].isalpha() else f"m-{short}"


def _yaml(documents: Iterable[Manifest]) -> str:
    writer = YAML()
    writer.width = 10_000  # a wrapped word would be another word
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.representer.ignore_aliases = lambda data: True
    stream = io.StringIO()
    writer.dump_all(list(documents), stream)
    text = stream.getvalue()
    return text if text.startswith("---") else f"---\n{text}"
