"""Models by hub name, against a server of this machine: cached, pinned, offline afterwards."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import planner
from planner.catalogue import models
from planner.catalogue.hub import hub_config, is_hub_name
from planner.cli import main
from planner.engines import export
from planner.scenario import resolve_keys
from planner.scenario.keys.references import ACCESS, FileAccess
from planner.text.errors import InputError
from tests.loops import for_all

COMMITS = ["a" * 40, "b" * 40]
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024,
    "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 8192,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
}  # fmt: skip
SCENARIO = {
    "problem": "serving", "system": "hgx-h100", "chips": 1,
    "workload": {"input_tokens": 500, "output_tokens": 100},
}  # fmt: skip


class _Hub(BaseHTTPRequestHandler):
    """Two commits of one repository, one that is gated, and nothing else."""

    main = 0
    asked: list[str]

    def _answer(self, *, body: bool) -> None:
        type(self).asked.append(self.path)
        parts = self.path.lstrip("/").split("/")
        repository, revision, file = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
        commit = COMMITS[self.main] if revision == "main" else revision
        headers = {"X-Repo-Commit": commit}
        status, content = 200, b""
        if repository == "acme/gated":
            status, headers["X-Error-Code"] = 403, "GatedRepo"
        elif repository not in ("acme/tiny", "acme/empty"):
            status, headers["X-Error-Code"] = 404, "RepoNotFound"
        elif commit not in COMMITS:
            status, headers["X-Error-Code"] = 404, "RevisionNotFound"
        elif file != "config.json" or repository == "acme/empty":
            status, headers["X-Error-Code"] = 404, "EntryNotFound"
        else:
            layers = 8 + COMMITS.index(commit)
            content = json.dumps({**CONFIG, "num_hidden_layers": layers}).encode()
            headers["ETag"] = f'"{hashlib.sha1(content).hexdigest()}"'
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on this machine, with an empty cache before it."""
    _Hub.main, _Hub.asked = 0, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    server.server_close()


def test_a_model_is_downloaded_once_and_pinned(hub):
    """The second time nobody is asked, and a newer commit of the repository changes nothing."""
    first = hub_config("acme/tiny")
    assert (first.commit, first.name) == (COMMITS[0], f"acme/tiny@{COMMITS[0]}")
    asked = len(_Hub.asked)
    _Hub.main = 1
    assert hub_config("acme/tiny") == first
    assert len(_Hub.asked) == asked
    newer = hub_config(f"acme/tiny@{COMMITS[1]}")
    assert json.loads(newer.path.read_text("utf-8"))["num_hidden_layers"] == 9
    assert hub_config("acme/tiny") == first


def test_a_plan_is_made_and_started_by_the_hubs_name(hub):
    """The scenario of the answer names the commit, and loads again without the hub."""
    plan = planner.solve({**SCENARIO, "model": "acme/tiny"})
    assert plan.feasible
    assert plan.scenario["model"] == f"acme/tiny@{COMMITS[0]}"
    hub.shutdown()
    again = planner.load(plan.scenario)
    assert resolve_keys(again, full_paths=True)["model"] == plan.scenario["model"]
    assert "model=acme/tiny " in export(plan, "vllm").text


def test_without_network_the_cache_answers_and_else_one_sentence(hub, monkeypatch, capsys):
    """What was downloaded is there; what was not says how to go on."""
    hub_config("acme/tiny")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert hub_config("acme/tiny").commit == COMMITS[0]
    with pytest.raises(SystemExit) as end:
        main(["model", "acme/other"])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "cannot be reached; connect once, or give the path of its config.json" in err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme/nothing", "the Hugging Face Hub has no model acme/nothing"),
        ("acme/gated", "is gated"),
        ("acme/empty", "acme/empty has no config.json"),
        (f"acme/tiny@{'c' * 40}", "has no commit cccc"),
    ],
)
def test_what_the_hub_lacks_is_a_mistake_at_the_model(hub, name, message):
    """With the place in the scenario."""
    with pytest.raises(InputError, match=message) as caught:
        planner.load({**SCENARIO, "model": name})
    assert caught.value.mistakes[0].path == "model"


def test_the_catalogues_own_models_ask_nobody(hub):
    """A repository that the catalogue was read from is the catalogue's model."""
    assert planner.load({**SCENARIO, "model": "deepseek-ai/DeepSeek-V3"}).model == "deepseek-v3"
    for name in models.model_names():
        place = models.repository(name)
        assert place is None or is_hub_name(place)
    assert not _Hub.asked


def test_what_answers_others_asks_nobody(hub):
    """A server's scenario reaches neither the hub nor its cache."""
    token = ACCESS.set(FileAccess(None))
    try:
        with pytest.raises(InputError, match="no file is read here"):
            planner.load({**SCENARIO, "model": "acme/tiny"})
    finally:
        ACCESS.reset(token)
    assert not _Hub.asked


@for_all("text", ["a/b.json", "./a/b", "../b", "/a/b", "a", "a/b/c", "a/b@main", "~/a"])
def test_paths_are_no_names(text):
    """What looks like a file is looked for as a file."""
    assert not is_hub_name(text)


def test_the_missing_extra_is_named(hub, monkeypatch):
    """One sentence with the command of pip."""
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"pip install 'token-planner\[hub\]'"):
        hub_config("acme/tiny")
