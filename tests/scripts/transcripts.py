"""What pages under docs/ show of a terminal, run again: `python -m tests.scripts.transcripts`.

A block of `console` holds commands after a dollar sign, each with what it prints; a block whose
first line names a file behind its language, such as `yaml plan.yaml`, is that file. The steps of a
page are taken in order in a folder that has `examples/`. With `--write` outputs are replaced.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

from planner.cli.app import main as planner_main
from tests.paths import ROOT

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def transcribed() -> list[Path]:
    """The pages that show a terminal."""
    files = sorted(x for x in DOCS.rglob("*.md") if DOCS / "generated" not in x.parents)
    return [x for x in files if "```console\n" in x.read_text(encoding="utf-8")]


def rewritten(text: str, folder: Path) -> str:
    """A page with what its commands print now, its files and commands made and run in a folder."""
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)

    def again(block: re.Match[str]) -> str:
        language, name, body = block.groups()
        if language != "console":
            if name:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(body, encoding="utf-8")
            return block[0]
        return "```console\n" + "".join(_again(body, folder)) + "```"

    return BLOCK.sub(again, text)


def _again(body: str, folder: Path) -> Iterator[str]:
    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)\n", body, re.MULTILINE):
        printed = run(command.replace("\\\n", " "), folder).rstrip("\n")
        yield f"$ {command}\n" + (f"{printed}\n" if printed else "")


def run(command: str, folder: Path) -> str:
    """What a command line prints; `planner` runs in this process, where libraries are loaded."""
    program, *rest = command.split(" | ", 1)
    words = shlex.split(program)
    if words[0] != "planner":
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        return _shell(command, folder, "", environment)
    printed = io.StringIO()
    with chdir(folder), redirect_stdout(printed), redirect_stderr(printed):
        try:
            planner_main(words[1:])
        except SystemExit as end:
            if end.code not in (0, 1, 2, None):
                raise
    if not rest:
        return printed.getvalue()
    return _shell(rest[0], folder, printed.getvalue(), dict(os.environ))


def _shell(command: str, folder: Path, text: str, environment: dict[str, str]) -> str:
    shell = ["bash", "-c", command]
    done = subprocess.run(
        shell, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def main() -> None:
    """Say which pages show something else than is printed; with `--write` mend them."""
    chosen = [Path(x).resolve() for x in sys.argv[1:] if x != "--write"]
    for page in chosen or transcribed():
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            new = rewritten(text, Path(folder))
        if new != text:
            print(page.relative_to(ROOT))
            if "--write" in sys.argv:
                page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
