"""What a move of a page's slider costs: to choose again, in script, and until the next frame.

Run by `pytest tests/benches/bench_page.py -m benchmark -s`. Choosing again is processor time in
Node, also as a multiple of a loop of arithmetic timed in the same run; script and frames are times
on the wall in a browser without a window, so the load of the machine is printed beside them.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

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
MOVED = """
const done = arguments[0], root = document.documentElement, rows = [];
const frame = () => new Promise(requestAnimationFrame);
(async () => {
  for (const input of document.querySelectorAll("#sliders input"))
    for (const share of [-90, -40, 40, 90]) {
      const begun = performance.now(), at = Number(input.dataset.at ??= input.value);
      input.value = at + share; input.dispatchEvent(new Event("input"));
      await frame(); await frame();
      rows.push([Number(root.dataset.drawn), performance.now() - begun]);
    }
  done(rows);
})();
"""


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


def moved(text: str, out: Path) -> list[Any]:
    """Script and time to the next frame of each move of a page's sliders [ms]."""
    out.write_text(text, "utf-8")
    with driven(*browser()) as ask:
        ask("/timeouts", {"script": 120_000})
        ask("/url", {"url": out.as_uri()})
        rows: list[Any] = ask("/execute/async", {"script": MOVED, "args": []})
    return rows


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
    rows = moved(text, tmp_path / "report.html")
    print(f"  script of a move      {row([x for x, _ in rows])} ms; to reach 8 ms")
    print(f"  to the next frame     {row([x for _, x in rows])} ms; to reach 33 ms")
