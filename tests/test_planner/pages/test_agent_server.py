"""`planner mcp`: the text of --json by the official client; only the protocol on its output."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from typing import Any

import anyio
import pytest
from mcp import Client
from starlette.testclient import TestClient

import planner
from planner.cli import main
from planner.pages.agent_server import RESOURCES, TOOLS, agent_server
from planner.pages.operations import run_operation
from planner.pages.web_app import web_app
from tests.cases.doors import Inline, hostile, mutated, opened, question
from tests.paths import ROOT
from tests.sizes import first

SEEDS = range(100)
CALLS = 10  # of one seed


def asked(*calls: tuple[str, dict[str, Any]]) -> list[tuple[bool, str]]:
    """Whether each call of a tool is an error, and its text, by the official client."""

    async def run() -> list[tuple[bool, str]]:
        async with Client(agent_server(Inline())) as client:  # type: ignore[arg-type]
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [(bool(x.is_error), x.content[0].text) for x in results]

    return anyio.run(run)


def printed(capsys, *words: str) -> str:
    """Standard output of a command, its last newline apart."""
    with pytest.raises(SystemExit):
        main([*words])
    return capsys.readouterr().out.removesuffix("\n")


def test_every_tool_answers_the_text_of_its_command(capsys, tmp_path):
    """Plan, reasons, check, catalogue, equations and derivations."""
    scenario, file = question("lecture"), tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario), "utf-8")
    after = tmp_path / "after.json"
    after.write_text(json.dumps({**scenario, "price": "$9/hour"}), "utf-8")
    change = "price=$11/hour"
    sets = ("--set", change)
    pairs = [
        ("solve", {"scenario": scenario, "detail": "full"}, ("solve", file, "--json")),
        ("solve", {"scenario": scenario, "set": [change], "detail": "full"},
         ("solve", file, "--json", *sets)),
        ("why", {"scenario": scenario}, ("solve", file, "--why", "--json")),
        ("check", {"scenario": scenario}, ("check", file, "--json")),
        ("catalog", {}, ("catalog", "--json")),
        ("catalog", {"kind": "chips", "name": "h200"}, ("catalog", "chips", "h200", "--json")),
        ("formula", {"name": "mixed_price"}, ("formula", "mixed_price", "--json")),
        ("derive", {"names": ["mixed_price"]}, ("derive", "mixed_price", "--json")),
        ("diff", {"before": scenario, "after": {**scenario, "price": "$9/hour"}},
         ("diff", file, after, "--json")),
        ("init", {"kind": "budget"}, ("init", "budget")),
        ("init", {"set": ["model=llama-3.1-8b", "system=hgx-h100", "chips=1"]},
         ("init", "serving", "--model", "llama-3.1-8b", "--system", "hgx-h100", "--chips", "1")),
    ]  # fmt: skip
    answers = asked(*[(name, arguments) for name, arguments, _ in pairs])
    for (name, _, words), (error, text) in zip(pairs, answers, strict=True):
        assert not error, text
        expected = printed(capsys, *map(str, words)).rstrip("\n")
        for path in (file, after) * (name == "diff"):
            expected = expected.replace(f'"file": "{path}"', '"file": "scenario"')
        assert text.rstrip("\n") == expected, name


def test_a_plan_is_a_head_unless_more_is_asked_for():
    """The rows of the terminal's head, three notes at most, in less than three kilobytes."""
    scenario = question("serve-llama-70b-fast")
    ((error, text),) = asked(("solve", {"scenario": scenario}))
    document, shown = json.loads(text), str(planner.solve(scenario))
    assert not error
    assert len(text) < 3000
    assert {"Run", "Cost", "Promises", "How sure"} <= set(document["head"])
    for lines in document["head"].values():
        assert all(line.split()[0] in shown for line in lines)
    assert document["notes_left_out"] == max(len(planner.solve(scenario).answer.notes) - 3, 0)
    assert all({"severity", "code", "text"} <= set(note) for note in document["notes"])


def test_gate_export_and_report_of_a_plan():
    """Verdicts with limits in base units, launch commands, a page; a mistake is an error."""
    scenario = question("serve-llama-70b-fast")
    (_, gate), (_, launch), (refused, why), (_, page), (wrong, words) = asked(
        ("gate", {"scenario": scenario, "limits": {"usd_per_mtok": 0.0001}}),
        ("export", {"scenario": scenario, "engine": "vllm", "set": ["choose.mode=aggregated"]}),
        ("export", {"scenario": scenario, "engine": "vlm"}),
        ("report", {"scenario": scenario}),
        ("gate", {"scenario": scenario, "limits": {"usd_per_mtok": True}}),
    )
    assert json.loads(gate)["status"] == "broken"
    assert "vllm serve" in launch
    assert refused
    assert "vllm" in why
    assert page.startswith("<!doctype html>")
    assert wrong
    assert "expected numbers" in words


def test_prompts_are_listed_and_filled_in():
    """Each names the tools to call; what is missing is an error."""

    async def run() -> tuple[list[str], str]:
        async with Client(agent_server(Inline())) as client:  # type: ignore[arg-type]
            listed = (await client.list_prompts()).prompts
            values = {"model": "llama-3.1-8b", "system": "hgx-h100", "load": "200 users"}
            filled = await client.get_prompt("serve", values)
            with pytest.raises(Exception, match="missing argument"):
                await client.get_prompt("launch", {"engine": "vllm"})
        return [each.name for each in listed], filled.messages[0].content.text

    names, text = anyio.run(run)
    assert names == ["serve", "compare", "launch"]
    assert "llama-3.1-8b on hgx-h100" in text
    assert "`solve`" in text


def test_mistakes_are_tool_errors_and_no_plan_is_an_answer():
    """The command's own lines; an infeasible scenario says what falls short."""
    scenario = question("lecture")
    missing = {key: value for key, value in scenario.items() if key != "workload"}
    rows = asked(
        ("check", {"scenario": missing}),
        ("check", {}),
        ("check", {"scenario": scenario, "sets": []}),
        ("chek", {}),
        ("check", {"scenario": "/etc/passwd"}),
        ("check", {"scenario": {**scenario, "model": "/etc/passwd"}}),
        ("solve", {"scenario": scenario | {"promises": {"tpot": "1 ns"}}}),
        ("sweep", {"scenario": scenario, "over": ["chips=1..10001"]}),
    )
    texts = [
        "missing required key 'workload'", "missing required argument 'scenario'",
        "did you mean 'set'?", "did you mean 'check'?", "expected a scenario's keys",
        "no file is read here", '"status": "infeasible"', "at most 10,000",
    ]  # fmt: skip
    for (error, text), expected in zip(rows, texts, strict=True):
        assert expected in text
        assert error == ("infeasible" not in text)


def test_tools_and_resources_are_listed():
    """Every tool with its arguments; the schema and the list of equations."""

    async def run() -> tuple[set[str], list[Any]]:
        async with Client(agent_server(Inline())) as client:  # type: ignore[arg-type]
            tools = (await client.list_tools()).tools
            texts = [(await client.read_resource(uri)).contents[0].text for uri in RESOURCES]
        return {tool.name for tool in tools}, [json.loads(text) for text in texts]

    names, (schema, equations) = anyio.run(run)
    assert names == {"solve", "why", "init", "diff", "gate", "export", "report", "sweep", "check",
                     "formula", "derive", "catalog"}  # fmt: skip
    assert schema["title"] == "token-planner scenario"
    assert len(equations) > 100


@pytest.mark.parametrize("seed", first(3, SEEDS))
def test_malformed_calls_are_answered(seed, tmp_path):
    """Ten hostile calls a seed: each is answered or refused, and opens no file of the caller."""
    rng = random.Random(seed)
    secret = tmp_path / "secret.json"
    secret.write_text('{"model_type": "secret-marker"}', "utf-8")
    calls = []
    for _ in range(CALLS):
        name = rng.choice(["check", "check", "solve", "sweep", "formula", "catalog", "no-tool"])
        arguments: dict[str, Any] = {"scenario": mutated(rng, question("lecture"), secret)}
        if name in TOOLS:
            arguments = {
                x: y for x, y in arguments.items() if x in TOOLS[name].input_schema["properties"]
            }
            key = rng.choice(sorted(TOOLS[name].input_schema["properties"]))
            arguments[key] = hostile(rng, secret)
        calls.append((name, arguments))
    with opened() as paths:
        answers = asked(*calls)
    assert len(answers) == CALLS
    for _, text in answers:
        assert "secret-marker" not in text
        assert "a fault of ours" not in text
    assert not [path for path in paths if path.startswith((str(tmp_path), "/etc/passwd"))]


def test_calls_beyond_the_processes_wait_for_one():
    """Six at once where two may run: all are answered, and never more than two are at work."""

    class Counting(Inline):
        now, most_at_once, lock = 0, 0, threading.Lock()

        def answer(self, name, arguments):
            with self.lock:
                self.now += 1
                self.most_at_once = max(self.most_at_once, self.now)
            try:
                time.sleep(0.05)
                return super().answer(name, arguments)
            finally:
                with self.lock:
                    self.now -= 1

    workers, results = Counting(), []

    async def run() -> None:
        async with Client(agent_server(workers)) as client, anyio.create_task_group() as calls:

            async def call(kind: str) -> None:
                results.append(await client.call_tool("catalog", {"kind": kind}))

            for kind in ("chips", "systems", "models", "prices", "laws", "tiers"):
                calls.start_soon(call, kind)

    anyio.run(run)
    assert [x.is_error for x in results] == [False] * 6
    assert workers.most_at_once == 2


def lines(*messages: object) -> bytes:
    """Messages as the protocol sends them."""
    return b"".join(
        (x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in messages
    )


@pytest.mark.slow
def test_only_the_protocol_is_on_standard_output():
    """Garbage between messages, a solve that warns: every line out is JSON-RPC, the exit is 0."""
    start = {
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                   "clientInfo": {"name": "test", "version": "1"}},
    }  # fmt: skip
    call = {"name": "check", "arguments": {"scenario": question("lecture")}}
    messages = [
        start,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        b"garbage",
        b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}',
        b"[" * 10_000,
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    command = [sys.executable, "-m", "planner", "mcp"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(*messages))
        process.stdin.flush()
        replies: dict[Any, Any] = {}
        while 2 not in replies:
            line = process.stdout.readline()
            assert line, process.stderr.read().decode()  # type: ignore[union-attr]
            reply = json.loads(line)
            assert reply["jsonrpc"] == "2.0"
            replies[reply.get("id")] = reply
        process.stdin.close()
        rest = process.stdout.read()
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
        assert process.wait(30) == 0
    assert "error" in replies[1]
    text = replies[2]["result"]["content"][0]["text"]
    assert text == run_operation("check", {"scenario": question("lecture")}).text


@pytest.mark.slow
@pytest.mark.parametrize(("name", "many"), [("lecture", 80), ("budget-70b-quality", 20)])
def test_a_hundred_questions_have_equal_bytes(name, many, capsys, tmp_path):
    """Command, tool and server, thus its page: one text, whatever the price or the tokens are."""
    scenario, file = question(name), tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario), "utf-8")
    with TestClient(web_app(Inline()), base_url="http://127.0.0.1") as web:  # type: ignore[arg-type]
        for step in range(1, 1 + many):
            price = f"price=${1 + step / 10:g}/hour"
            change = f"inference.tokens={1e14 * step:g}" if "inference" in scenario else price
            ((error, text),) = asked(
                ("solve", {"scenario": scenario, "set": [change], "detail": "full"})
            )
            assert not error, text
            assert text == printed(capsys, "solve", str(file), "--json", "--set", change)
            served = web.post("/solve", params={"set": change}, json=scenario)
            assert served.text.removesuffix("\n") == text
