"""What a move of a page's slider costs: to choose again, in script, and from frame to frame.

Run by `pytest tests/benches/bench_page.py -m benchmark -s`. Choosing again is processor time in
Node, also as a multiple of a loop of arithmetic timed in the same run. In a browser with no window
the trace tells the processor time of a move's script, and of all that its page's thread does until
the next frame; frames are times on the wall, so the load of the machine is printed beside them.
"""

from __future__ import annotations

import json
import os
import statistics
from bisect import bisect
from pathlib import Path

import pytest

import planner
from planner.problems.serving.problem import PROBLEM
from planner.problems.serving.question import Scenario
from planner.protocol.live_page import LivePage
from planner.report.pages.report_page import report_page
from planner.scenario import load
from tests.cases.live_page import browser, in_node
from tests.paths import EXAMPLES
from tests.test_planner.report.pages.test_report_page import driven

pytestmark = [pytest.mark.benchmark, pytest.mark.filterwarnings("ignore")]

NAMES = ("serve-deepseek-v3-h200", "buy-glm-4.6", "serve-deepseek-v3-gb200", "carry-a-load")
MOVES = (0.8, 0.87, 0.93, 0.97, 1.03, 1.08, 1.15, 1.25)  # of a slider's value
CPU = """
(() => {
  const timed = (run) => {
    const begun = process.cpuUsage(); run(); const used = process.cpuUsage(begun);
    return (used.user + used.system) / 1000;
  };
  const loop = () => { let x = 0; for (let k = 1; k < 2e6; k++) x += Math.sqrt(k) / (k + x); };
  loop();
  const once = () => STATES.map((state) => timed(() => MODEL.choose(state)));
  return [timed(loop), once(), once()]; })()
"""
# As a hand that moves a slider in every frame: from frame to frame, after the first of each slider.
MOVED = """
const done = arguments[0], root = document.documentElement, rows = [];
const frame = () => new Promise(requestAnimationFrame);
(async () => {
  for (const input of document.querySelectorAll("#sliders input")) {
    const at = Number(input.value);
    let last = await frame();
    for (let k = 0; k < 12; k++) {
      performance.mark("move");
      input.value = at + 90 * Math.sin(k); input.dispatchEvent(new Event("input"));
      const now = await frame();
      if (k > 1) rows.push(now - last);
      last = now;
    }
    input.value = at; input.dispatchEvent(new Event("input"));
    while (root.dataset.idle !== "1") await new Promise((go) => setTimeout(go, 50));
  }
  done(rows);
})();
"""
TRACED = "devtools.timeline,blink.user_timing,toplevel"


def states(page: LivePage) -> list[dict[str, float]]:
    """Each slider moved by itself, from a fifth down to a quarter up."""
    made = []
    for slider in page.sliders:
        for share in MOVES if slider.value else ():
            value = min(max(float(slider.value or 0) * share, slider.low), slider.high)
            made.append({slider.name: float(round(value)) if slider.whole else value})
    return made


def row(values: list[float]) -> str:
    """Number, median, nine tenths and most [ms]."""
    ordered = sorted(values)
    nine = ordered[int(0.9 * (len(ordered) - 1))]
    middle = statistics.median(ordered)
    return f"n {len(ordered):3} median {middle:7.1f} 90 % {nine:7.1f} most {ordered[-1]:7.1f}"


def moved(text: str, out: Path) -> tuple[list[float], list[float], list[float]]:
    """Of the moves of a page's sliders the processor's time of script, and of all in the page's
    thread until the next move, and the time on the wall from frame to frame [ms]."""
    out.write_text(text, "utf-8")
    with driven(*browser(), traced=TRACED) as ask:
        ask("/timeouts", {"script": 300_000})
        ask("/url", {"url": out.as_uri()})
        frames: list[float] = ask("/execute/async", {"script": MOVED, "args": []})
        log = ask("/se/log", {"type": "performance"})
    messages = (json.loads(each["message"])["message"] for each in log)
    events = [x["params"] for x in messages if x["method"] == "Tracing.dataCollected"]
    marks = [x for x in events if x["name"] == "move"]
    thread = [x for x in events if x["ph"] == "X" and x["tid"] == marks[0]["tid"]]
    thread = [x for x in thread if x["pid"] == marks[0]["pid"]]
    at = sorted(x["ts"] for x in marks)
    script, every = ([0.0] * len(at) for _ in range(2))
    for x in thread:
        number = bisect(at, x["ts"]) - 1
        if number >= 0 and x["name"] == "FireAnimationFrame":
            script[number] += x.get("tdur", 0) / 1e3
        if number >= 0 and x["name"].endswith("::RunTask"):
            every[number] += x.get("tdur", 0) / 1e3
    within = [
        k for k in range(len(at)) if k % 12 < 11
    ]  # the last of a slider waits for all pictures
    return [script[k] for k in within], [every[k] for k in within], frames


@pytest.mark.parametrize("name", NAMES)
def test_a_move_of_a_slider(name: str, tmp_path: Path) -> None:
    """Choosing again, first and again, script of a move, time to the next frame."""
    file = EXAMPLES / f"{name}.yaml"
    read, plan = load(file), planner.solve(file)
    assert isinstance(read, Scenario)
    page = PROBLEM.live_page(read, plan)
    unit, first, again = in_node(page, states(page), CPU)
    text = report_page(plan, read, file.name)
    print(f"\n{name}: {len(text.encode()):,} bytes, load {os.getloadavg()[0]:.1f}")
    print(f"  choosing again, cold  {row(first)} ms of CPU")
    times = statistics.median(again) / unit
    print(f"  choosing again, warm  {row(again)} ms of CPU; to reach 5 ms")
    print(f"  its median {times:.2f} times a loop of {unit:.1f} ms")
    script, every, frames = moved(text, tmp_path / "report.html")
    print(f"  script of a move      {row(script)} ms of CPU; to reach 8 ms")
    print(f"  a move and its frame  {row(every)} ms of CPU in the page's thread")
    print(f"  from frame to frame   {row(frames)} ms; to reach 33 ms")
