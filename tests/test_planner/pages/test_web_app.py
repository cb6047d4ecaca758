"""`planner serve`: the command's bytes, refusals, and no file that nobody offered."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from starlette.testclient import TestClient

from planner.cli import main
from planner.pages.killable import OperationTimeout, TooBusy, Workers
from planner.pages.operations import MAX_BYTES, STATUS_FAILED
from planner.pages.web_app import web_app
from planner.text.errors import InputError
from tests.cases.doors import CHEAP, Inline, mutated, opened, question, raw
from tests.loops import for_all
from tests.sizes import first, sized

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client():
    """The server, whose operations run in this process."""
    with TestClient(web_app(Inline()), base_url="http://127.0.0.1:8765") as client:
        yield client


def printed(capsys, *words: str) -> bytes:
    """Standard output of a command."""
    with pytest.raises(SystemExit):
        main([*words])
    return capsys.readouterr().out.encode()


@pytest.mark.parametrize("name", first(1, CHEAP))
def test_answers_are_the_commands_bytes(client, capsys, tmp_path, name):
    """Plan, reasons and check of a scenario, as the command prints them of the same file."""
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(question(name)), "utf-8")
    for path, words in (
        ("/solve", ("solve", str(file), "--json")),
        ("/solve?form=text", ("solve", str(file))),
        ("/why", ("solve", str(file), "--why", "--json")),
        ("/check", ("check", str(file), "--json")),
    ):
        response = client.post(path, content=file.read_bytes(), headers=JSON)
        assert response.status_code == 200, response.text
        assert response.content == printed(capsys, *words)


def test_what_is_known_is_the_commands_bytes(client, capsys):
    """Catalogue and schemas."""
    assert client.get("/catalog").content == printed(capsys, "catalog", "--json")
    card = client.get("/catalog", params={"kind": "chips", "name": "h200"})
    assert card.content == printed(capsys, "catalog", "chips", "h200", "--json")
    assert client.get("/schema").content == printed(capsys, "schema")
    answer = client.get("/schema", params={"answer": "budget"})
    assert answer.content == printed(capsys, "schema", "--answer", "budget")


def test_compare_and_sweep_are_those_of_the_commands(client):
    """The difference in the price of a chip, and a grid of two."""
    before = question("lecture")
    after = {**before, "price": "$12/hour"}
    body = client.post("/compare", json={"before": before, "after": after}).json()
    assert body["schema"] == "diff/1"
    prices = [client.post("/solve", json=x).json()["plan"]["usd_per_mtok"] for x in (before, after)]
    assert body["difference"] == pytest.approx(prices[1] - prices[0], rel=1e-9)
    grid = client.post(
        "/sweep", json={"scenario": before, "over": {"price": ["$10/hour", "$11/hour"]}}
    )
    assert grid.status_code == 200, grid.text
    assert len(grid.json()["rows"]) == 2
    many = client.post("/sweep", json={"scenario": before, "over": ["chips=1..20000"]})
    assert many.status_code == 422
    assert "at most 10,000" in many.json()["message"]


@pytest.mark.slow
def test_the_report_is_the_commands_file(client, capsys, tmp_path, monkeypatch):
    """The page that `planner report scenario.json` writes, byte for byte."""
    monkeypatch.chdir(tmp_path)
    body = json.dumps(question("lecture"))
    (tmp_path / "scenario.json").write_text(body, "utf-8")
    printed(capsys, "report", "scenario.json", "--out", "report.html")
    response = client.post("/report", content=body, headers=JSON)
    assert response.headers["content-type"].startswith("text/html")
    assert response.text.rstrip("\n") == (tmp_path / "report.html").read_text("utf-8").rstrip("\n")


def test_mistakes_have_their_paths(client):
    """All at once, and how the command says them."""
    body = question("lecture") | {"chips": "many", "modle": 1}
    response = client.post("/solve", json=body)
    assert response.status_code == 422
    assert {"chips", "modle"} <= {each["path"] for each in response.json()["mistakes"]}


@for_all(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example:8765"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json; charset=utf-16"}, 415),
        ({"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "localhost:8765"}, 200),
        ({"content-type": "application/json; charset=utf-8"}, 200),
    ],
)
def test_who_may_ask(client, headers, status):
    """Another site, another name of this machine, another kind of text are refused."""
    body = json.dumps(question("lecture"))
    response = client.post("/check", content=body, headers={**JSON, **headers})
    assert response.status_code == status
    assert response.headers["x-content-type-options"] == "nosniff"


def test_what_may_be_asked(client):
    """Too large, too deep, twice the same key, another method, an unknown parameter."""
    large = client.post("/check", content=b" " * (MAX_BYTES + 1), headers=JSON)
    assert large.status_code == 413
    chunks = (b" " * 100_000 for _ in range(11))
    assert client.post("/check", content=chunks, headers=JSON).status_code == 413
    deep = client.post("/check", content=b'{"a":' * 60 + b"1" + b"}" * 60, headers=JSON)
    assert (deep.status_code, deep.json()["message"]) == (422, "more than 50 levels deep")
    twice = client.post("/check", content=b'{"a": 1, "a": 2}', headers=JSON)
    assert "duplicate key" in twice.json()["message"]
    assert client.get("/solve").status_code == 405
    assert client.post("/check?verbose=1", json={}).status_code == 422
    assert client.get("/catalog?kind=chips&name=../x").status_code == 422


def test_the_page_has_its_own_script_alone(client):
    """The policy names the hashes of what stands in it; nothing is fetched from elsewhere."""
    response = client.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert policy.count("sha256-") == 2
    assert "http://" not in response.text
    assert "https://" not in response.text


def test_the_openapi_document_has_every_path(client):
    """Operations of the server, and references that lead somewhere."""
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/solve", "/why", "/check", "/report", "/sweep", "/compare", "/catalog", "/schema",
    }  # fmt: skip
    text = json.dumps(document)
    names = {x.split('"')[0] for x in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])


@pytest.mark.sized
@for_all("door", ["solve", "check", "why", "compare"])
@for_all("seed", range(sized(12, 250)))
def test_malformed_bodies_are_refused_and_nothing_is_opened(client, tmp_path, seed, door):
    """No status 500, and no file outside the folder, of which there is none."""
    rng = random.Random(f"{door} {seed}")
    secret = tmp_path / "secret.json"
    secret.write_text('{"model_type": "secret-marker"}', "utf-8")
    body = mutated(rng, question(rng.choice(CHEAP)), secret)
    body = {"before": body, "after": question("lecture")} if door == "compare" else body
    with opened() as paths:
        response = client.post(f"/{door}", content=raw(rng, body), headers=JSON)
    assert response.status_code in (200, 413, 422), response.text
    assert "secret-marker" not in response.text
    assert not [path for path in paths if path.startswith((str(tmp_path), "/etc/", "/proc/"))]


def test_files_below_the_folder_are_read_and_none_beside(tmp_path):
    """A model's configuration in the folder; not by a link out of it, nor by dots."""
    inside, outside = tmp_path / "folder", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    config = json.dumps({"model_type": "no-such-family"})
    for folder in (inside, outside):
        (folder / "config.json").write_text(config, "utf-8")
    (inside / "link.json").symlink_to(outside / "config.json")
    with TestClient(web_app(Inline(inside)), base_url="http://127.0.0.1") as client:
        names = ("config.json", "link.json", "../outside/config.json", str(outside / "config.json"))
        messages = [
            client.post("/solve", json=question("serve-llama-70b-fast") | {"model": name}).text
            for name in names
        ]
    assert "no-such-family" in messages[0]
    assert all("nor a file of the folder" in message for message in messages[1:])


@pytest.mark.slow
def test_the_time_limit_ends_the_process_and_the_next_answers():
    """A question that takes longer is killed, not waited for; then the server goes on."""
    workers = Workers(limit=0.05)
    try:
        slow = {"scenario": question("carry-a-load")}
        started = time.monotonic()
        with pytest.raises(OperationTimeout):
            workers.answer("solve", slow)
        assert time.monotonic() - started < 60
        assert not workers.idle
        workers.limit = 60.0
        assert workers.answer("check", {"scenario": question("lecture")}).status == 0
    finally:
        workers.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to a limit of memory")
def test_a_question_that_takes_too_much_memory_is_told_so():
    """Beyond its limit a process is refused memory, and says so in words."""
    code = (
        "from planner.pages import killable, operations\n"
        "killable.limit_memory(2**30)\n"
        "operations.OPERATIONS['large'] = lambda _: (0, str(len(bytearray(2**31))))\n"
        "reply = operations.run_operation('large', {})\n"
        "print(reply.status, reply.text)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.startswith(f"{STATUS_FAILED} ")
    assert "memory" in run.stdout


def serving(patience: float) -> tuple[subprocess.Popen[str], int]:
    """A server of its own that waits `patience` s for requests, and its port."""
    code = (
        "from planner.pages import web_app\n"
        "from planner.pages.killable import Workers\n"
        f"web_app.READING = {patience}\n"
        "web_app.serve_http(Workers(), 0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    return process, int(line.split("127.0.0.1:")[1].split("/")[0])


def connected(port: int) -> socket.socket:
    """A connection, once the server listens."""
    for _ in range(600):
        with suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        time.sleep(0.1)
    raise TimeoutError


HALVES = {
    "half a head": b"POST /check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le",
    "half a second head": b"GET /no HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /ca",
    "a head without its body": b"POST /check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
    b"application/json\r\nContent-Length: 100\r\n\r\n",
    "half a body": b"POST /check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
    b'application/json\r\nContent-Length: 100\r\n\r\n{"problem": ',
    "half a body in parts": b"POST /check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
    b'application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n',
}


@pytest.mark.slow
def test_what_never_comes_whole_is_closed():
    """Each half of a request is closed after the limit, one that was begun with a 408."""
    process, port = serving(1.0)
    try:
        pairs = [(x, connected(port)) for x in HALVES]
        for name, connection in pairs:
            connection.sendall(HALVES[name])
        for name, connection in pairs:
            answer = b"".join(iter(lambda: connection.recv(65536), b""))  # noqa: B023
            assert (b" 408 " in answer) == ("body" in name), (name, answer)
            connection.close()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_of_many_mistakes_the_first_are_told(client):
    """Fifty thousand unknown keys are answered by twenty, at every door of a scenario."""
    keys = {f"k{number}": 1 for number in range(50_000)}
    for place in ((), ("workload",), ("promises",)):
        body = question("lecture")
        within = body
        for key in place:
            within = within.setdefault(key, {})
        within |= keys
        response = client.post("/check", json=body)
        assert response.status_code == 422
        listed = response.json()["mistakes"]
        assert len(listed) == 21
        assert [".".join((*place, f"k{number}")) for number in range(20)] == [
            each["path"] for each in listed[:20]
        ]
        assert "more mistakes" in listed[20]["message"]
    twice = b'{%s, "k9": 2}' % json.dumps(keys).encode()[1:-1]
    response = client.post("/check", content=twice, headers=JSON)
    assert response.json()["message"] == "duplicate key 'k9'"


@pytest.mark.slow
def test_a_third_operation_is_refused():
    """Two at a time; 429 for the next one, which is told to come again."""
    workers = Workers()
    try:
        answers = []
        slow = {"scenario": question("serve-llama-70b-fast")}
        threads = [
            threading.Thread(target=lambda: answers.append(workers.answer("solve", slow)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        while workers.busy < 2:
            time.sleep(0.01)
        with pytest.raises(TooBusy):
            workers.answer("check", slow)
        with TestClient(web_app(workers), base_url="http://127.0.0.1") as client:
            response = client.post("/check", json=question("lecture"))
            assert response.status_code == 429
            assert response.headers["retry-after"] == "1"
        for thread in threads:
            thread.join()
        assert [answer.status for answer in answers] == [0, 0]
    finally:
        workers.close()


def test_options_that_cannot_be(capsys, tmp_path):
    """A folder that is none, a limit of nothing, a port out of range."""
    for words, message in (
        (("--folder", str(tmp_path / "none")), "is no folder"),
        (("--limit", "0"), "more than 0 s"),
        (("--port", "70000"), "expected 0 to 65535"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["serve", *words])
        assert end.value.code == 2
        assert message in capsys.readouterr().err


def test_a_missing_extra_says_what_brings_it(monkeypatch):
    """One sentence with the command of pip."""
    import sys

    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    monkeypatch.delitem(sys.modules, "planner.pages.web_app")
    with pytest.raises(InputError, match=r"pip install 'token-planner\[serve\]'"):
        __import__("planner.pages.web_app")
