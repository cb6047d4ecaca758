"""The page of the server: a text field for a scenario, and the commands' answers to it."""

import base64
import hashlib
from importlib.resources import files


def _text(kind: str) -> str:
    return files("planner.pages").joinpath(f"editor_page.{kind}").read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


STYLE, SCRIPT = f"\n{_text('css')}", f"\n{_text('js')}"
POLICY = (
    f"default-src 'none'; script-src '{_hash(SCRIPT)}'; style-src '{_hash(STYLE)}'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = (
    _text("html")
    .replace("\n/* editor_page.css */\n", STYLE)
    .replace("\n// editor_page.js\n", SCRIPT)
)
