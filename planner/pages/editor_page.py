"""The page of the server: a text field for a scenario, and what the commands answer to it."""

import base64
import hashlib

STYLE = """
:root { color-scheme: light dark; --edge: light-dark(#c9ced6, #3b424c); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 75rem; font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.25rem; margin: 0 0 .25rem; }
.sides { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); }
label { display: block; font-weight: 600; }
textarea { width: 100%; min-height: 20rem; font: .875rem/1.45 ui-monospace, monospace;
  border: 1px solid var(--edge); border-radius: 4px; padding: .5rem; }
button { font: inherit; padding: .35rem .9rem; margin: .75rem .25rem .75rem 0; cursor: pointer; }
pre { overflow: auto; border: 1px solid var(--edge); border-radius: 4px; padding: .75rem;
  font: .875rem/1.45 ui-monospace, monospace; min-height: 6rem; white-space: pre; }
[role=alert] { color: light-dark(#c2410c, #ff9466); white-space: pre-wrap; margin: 0; }
@media (max-width: 25rem) { .sides { grid-template-columns: 1fr; } }
"""
SCRIPT = """
"use strict";
const at = id => document.getElementById(id);
const START = {problem: "serving", model: "gpt-oss-120b", system: "hgx-h200", chips: [1, 2, 4, 8],
  workload: {input_tokens: 1500, output_tokens: 800}, promises: {tpot: "20 ms"}};
at("before").value = at("after").value = JSON.stringify(START, null, 2);
function scenario(id) {
  try { return JSON.parse(at(id).value); }
  catch (error) { throw new Error(id + ": " + error.message); }
}
async function ask(path, body, form) {
  at("mistakes").textContent = "";
  at("answer").textContent = "";
  at("state").textContent = "computing";
  const started = performance.now();
  try {
    const response = await fetch(path + form, {method: "POST",
      headers: {"content-type": "application/json"}, body: JSON.stringify(body())});
    const text = await response.text();
    if (response.ok) { return text; }
    const refusal = JSON.parse(text);
    const lines = refusal.mistakes.map(x => (x.path ? x.path + ": " : "") + x.message);
    at("mistakes").textContent = lines.join("\\n") || refusal.message;
  } catch (error) {
    at("mistakes").textContent = error.message;
  } finally {
    at("state").textContent = ((performance.now() - started) / 1000).toFixed(1) + " s";
  }
  return null;
}
async function show(path, body) {
  const text = await ask(path, body, "?form=text");
  if (text !== null) { at("answer").textContent = text; }
}
const both = () => ({before: scenario("before"), after: scenario("after")});
at("check").onclick = () => show("/check", () => scenario("before"));
at("solve").onclick = () => show("/solve", () => scenario("before"));
at("why").onclick = () => show("/why", () => scenario("before"));
at("compare").onclick = () => show("/compare", both);
at("report").onclick = async () => {
  const page = await ask("/report", () => scenario("before"), "");
  if (page === null) { return; }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([page], {type: "text/html"}));
  link.download = "report.html";
  link.click();
};
"""


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


POLICY = (
    f"default-src 'none'; script-src '{_hash(SCRIPT)}'; style-src '{_hash(STYLE)}'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>token-planner</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>What should it cost, and what should I run?</h1>
<p>A scenario as JSON, answered as the command answers it.</p>
<div class="sides">
<div><label for="before">scenario</label><textarea id="before" spellcheck="false"></textarea></div>
<div><label for="after">compared with</label>
<textarea id="after" spellcheck="false"></textarea></div>
</div>
<div>
<button id="check">check</button><button id="solve">solve</button><button id="why">why</button>
<button id="report">report</button><button id="compare">compare</button>
<span id="state" role="status"></span>
</div>
<p id="mistakes" role="alert"></p>
<pre id="answer" tabindex="0" role="region" aria-label="answer"></pre>
</main>
<script>{SCRIPT}</script>
</body>
</html>
"""
