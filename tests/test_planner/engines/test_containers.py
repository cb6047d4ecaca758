"""What scripts, pods and compose files start is found, whatever stands around it."""

from __future__ import annotations

import io
import sys

import pytest

from planner.engines.containers import containers
from planner.engines.imported import scenario_from_launch
from planner.text.errors import InputError
from tests.loops import for_all

SAID = ("system=hgx-h200", "workload.input_tokens=1000", "workload.output_tokens=200")
OSS = "openai/gpt-oss-120b"
COMPOSE = """
services:
  router: {image: nginx, command: [nginx, -g, daemon off]}
  vllm:
    image: docker.io/vllm/vllm-openai:v0.26.0-cu129
    deploy: {replicas: 3}
    command: >
      --model openai/gpt-oss-120b
      --tensor-parallel-size ${TP:-4}
      --max-num-seqs 32
"""
POD = """
apiVersion: v1
kind: Pod
spec:
  containers:
    - name: server
      image: vllm/vllm-openai@sha256:abc
      args: ["openai/gpt-oss-120b", "--tensor_parallel_size=4", "--max-num-seqs=32"]
"""
SHELL = """
kind: Deployment
spec:
  replicas: 2
  template:
    spec:
      containers:
        - image: lmsysorg/sglang:latest
          command: ["/bin/bash", "-c"]
          args: ["python3 -m sglang.launch_server --model openai/gpt-oss-120b --tp 4"]
"""
TEXTS = {
    COMPOSE: 3,
    POD: 1,
    SHELL: 2,
    f"docker run --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:latest --model {OSS} -tp 4": 1,
    f"docker run --gpus '\"device=0,1\"' lmsysorg/sglang:v0.5.23 python3 -m sglang.launch_server "
    f"--model-path {OSS} --tp 4": 1,
    f"ARGS=(--tensor-parallel-size 4\n--port 8001)\nnumactl -N 0 ./bin/vllm serve {OSS} "
    '"${ARGS[@]}" 2>&1 | tee -a log': 1,
    f'FLAGS="-tp 4 --port 8001"; TP=8; set -euo pipefail\nexec vllm serve {OSS} $FLAGS': 1,
    f"trtllm-serve serve {OSS} --tp_size ${{N:-4}} --max_batch_size 8": 1,
}


@for_all("text", TEXTS)
def test_a_launch_is_found(text, tmp_path):
    """Images with their own program, shells, arrays, variables with defaults, launchers, pipes."""
    file = tmp_path / "launch.yaml"
    file.write_text(text, "utf-8")
    data = scenario_from_launch([file], SAID).data
    assert data["model"] == "gpt-oss-120b"
    assert data["current"]["tp"] == 4
    assert data["current"]["replicas"] == TEXTS[text]


def test_a_quoted_line_and_standard_input(monkeypatch):
    """A command stands for itself; `-` is what is piped in."""
    line = f"vllm serve {OSS} -tp 4"
    piped = io.TextIOWrapper(io.BytesIO(line.encode()))
    monkeypatch.setattr(sys, "stdin", piped)
    assert scenario_from_launch(["-"], SAID).data == scenario_from_launch([line], SAID).data


def test_a_program_of_its_own_is_not_the_images(tmp_path):
    """A container of an engine's image that starts something else starts no engine."""
    file = tmp_path / "pod.yaml"
    command = 'command: ["python3", "bench.py"]\n      args: ["--tensor-parallel-size=4"]'
    file.write_text(POD.replace("args: [", "x: [").replace("image:", f"{command}\n      image:"))
    with pytest.raises(InputError, match="starts no engine"):
        scenario_from_launch([file], SAID)


@pytest.mark.parametrize("text", ["services: [1]", "services: {a: 5}", "services: {a: {scale: 0}}"])
def test_a_broken_compose_file_is_refused_at_its_place(text):
    """With file and line."""
    with pytest.raises(InputError, match=r"compose\.yaml:1:"):
        containers(text, "compose.yaml")
