"""A launch as Kubernetes manifests: a Deployment, or a LeaderWorkerSet where a replica has nodes.

Placeholders are listed at the head of the file. Words of the command are lists, so no shell reads
them; `$(` in a name is doubled, or the kubelet would take it for a variable.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq
from ruamel.yaml.scalarstring import LiteralScalarString

from planner.engines.deployment import Deployment
from planner.engines.launch import (
    LEADER,
    MODEL,
    RANK,
    Launch,
    Option,
    comment,
    configuration,
    words,
)
from planner.text.errors import Infeasible

AS_OF = "2026-11-21"
# API versions: Kubernetes documentation, workloads and services; github.com/kubernetes-sigs/lws,
# which sets LWS_LEADER_ADDRESS, and since v0.6.0 LWS_WORKER_INDEX.
LWS = "leaderworkerset.x-k8s.io/v1"
# Resource names of the vendors' device plugins (NVIDIA/k8s-device-plugin, ROCm/k8s-device-plugin).
RESOURCES = MappingProxyType({"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"})
CLAIM = "model-weights"
SECRET = "hf-token"
WEIGHTS = "/models"
SETTINGS = "/etc/planner"
NODE = {RANK: "$(LWS_WORKER_INDEX)", LEADER: "$(LWS_LEADER_ADDRESS)"}
Manifest: TypeAlias = dict[str, object]
STARTUP = 360  # probes ten seconds apart: an hour to fetch and load the weights
LONGEST_NAME = 40


def manifest(pools: Iterable[tuple[Launch, Deployment]], model: str, heading: Iterable[str]) -> str:
    """Manifests of all replicas of every pool and the services before them, as one YAML file.

    Raises
    ------
    Infeasible
        If a replica of several nodes is started by an MPI launcher, which a pod is not.
    """
    documents: list[Manifest] = []
    placeholders: list[str] = []
    for launch, plan in pools:
        documents += _documents(launch, plan, model)
        placeholders += [line for line in _placeholders(launch, plan) if line not in placeholders]
    head = "\n".join(comment([*heading, "", "Replace before use:", *placeholders]))
    return f"{head}\n{_yaml(documents)}"


def _documents(launch: Launch, plan: Deployment, model: str) -> Iterator[Manifest]:
    """Service, pods and configuration of one pool."""
    if launch.prefix:
        raise Infeasible(
            f"a replica has {launch.nodes} nodes, and {launch.release.title} starts those through "
            "an MPI launcher, which a LeaderWorkerSet does not bring; what would work: --engine "
            "vllm or sglang, or a layout inside one node"
        )
    name = _name(plan, launch)
    if launch.config:
        text = "\n".join(configuration(launch.config)) + "\n"
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": _labels(name)},
            "data": {launch.config_file: LiteralScalarString(text)},
        }
    yield _service(launch, name)
    yield (_group if launch.nodes > 1 else _set)(launch, plan, model, name)


def _placeholders(launch: Launch, plan: Deployment) -> Iterator[str]:
    image = launch.release.vendors[plan.vendor]
    yield f"  image {image}: named as the project names its images, not pulled; pin one you tested"
    yield f"  claim {CLAIM}: a volume that every node reads, mounted at {WEIGHTS}"
    if plan.checkpoint.folder:
        yield f"  the folder of the weights below {WEIGHTS}, where the command names it"
    else:
        yield f"  secret {SECRET}, key token: wanted for gated repositories only"
    if plan.role:
        yield "  a router before the two services, as the engine wants it; it is not part of this"
    if launch.nodes > 1:
        yield "  the network: RDMA devices and their resource names are your cluster's own"
        yield "A StatefulSet per replica would do as well; LeaderWorkerSet must be installed."


def _service(launch: Launch, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {
            "selector": {"app.kubernetes.io/instance": name, "role": "server"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def _set(launch: Launch, plan: Deployment, model: str, name: str) -> Manifest:
    """A Deployment of one pod per replica; one is taken down first, for no chip is spare."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {
            "replicas": plan.replicas,
            "selector": {"matchLabels": {"app.kubernetes.io/instance": name}},
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": _pod(launch, plan, model, name, serves=True),
        },
    }


def _group(launch: Launch, plan: Deployment, model: str, name: str) -> Manifest:
    """A LeaderWorkerSet: one group of pods per replica, a pod per node, restarted together."""
    return {
        "apiVersion": LWS,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {
            "replicas": plan.replicas,
            "leaderWorkerTemplate": {
                "size": launch.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _pod(launch, plan, model, name, serves=True),
                "workerTemplate": _pod(launch, plan, model, name, serves=False),
            },
        },
    }


def _pod(launch: Launch, plan: Deployment, model: str, name: str, *, serves: bool) -> Manifest:
    mounts = [
        {"name": "weights", "mountPath": WEIGHTS},
        {"name": "shared-memory", "mountPath": "/dev/shm"},
    ]
    container: Manifest = {
        "name": launch.release.name,
        "image": launch.release.vendors[plan.vendor],
        "command": [_word(word, model) for word in launch.program],
        "args": _arguments(launch, model, serves=serves),
        "env": list(_environment(launch)),
        "resources": {"limits": {RESOURCES[plan.vendor]: launch.local}},
        "volumeMounts": mounts,
    }
    volumes: list[Manifest] = [
        {"name": "weights", "persistentVolumeClaim": {"claimName": CLAIM}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
    ]
    if launch.config:
        mounts.append({"name": "settings", "mountPath": SETTINGS})
        volumes.append({"name": "settings", "configMap": {"name": name}})
    if serves:
        container |= {"ports": [{"name": "http", "containerPort": launch.port}], **_probes(launch)}
    labels = _labels(name) | {"role": "server" if serves else "worker"}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}


def _probes(launch: Launch) -> Manifest:
    """Loading may take an hour; then a server that fails for a minute is restarted."""
    ask = {"httpGet": {"path": launch.health, "port": "http"}, "periodSeconds": 10}
    return {
        "startupProbe": {**ask, "failureThreshold": STARTUP},
        "readinessProbe": {**ask, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**ask, "timeoutSeconds": 5, "failureThreshold": 6},
    }


def _environment(launch: Launch) -> Iterator[Manifest]:
    for variable in launch.environment:
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        yield {"name": variable.name, "valueFrom": address}
    yield {"name": "HF_HOME", "value": WEIGHTS}
    token = {"name": SECRET, "key": "token", "optional": True}
    yield {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": token}}


def _arguments(launch: Launch, model: str, *, serves: bool) -> CommentedSeq:
    """One argument a line, with its reason beside it."""
    taken = [*launch.options, *(() if serves else launch.followers)]
    arguments = CommentedSeq()
    for index, option in enumerate(taken):
        value = option.value
        if value == launch.config_file and launch.config_file:
            value = f"{SETTINGS}/{value}"
        arguments.append(_word(words(Option(option.name, value, "")), model))
        arguments.yaml_add_eol_comment(option.because, index)
    return arguments


def _word(word: str, model: str) -> str:
    """A word of the command with the model's name in it and nothing a kubelet would expand."""
    for place, variable in NODE.items():
        if place in word:
            return word.replace(place, variable)
    return word.replace(MODEL, model).replace("$(", "$$(")


def _labels(name: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "inference-server",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "token-planner",
    }


def _name(plan: Deployment, launch: Launch) -> str:
    """A name that Kubernetes takes: lower case letters, digits and dashes, a letter first."""
    words_of = re.sub(r"[^a-z0-9]+", "-", plan.checkpoint.sizes.name.lower()).strip("-")
    short = f"{words_of[:LONGEST_NAME].strip('-') or 'model'}-{launch.release.name}"
    short += f"-{launch.role}" if launch.role else ""
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
