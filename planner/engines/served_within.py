"""Maximum users and load within the promises, on the layout of the answer of `planner fit`."""

from collections.abc import Sequence

from planner.memory.engine_fit import Fit
from planner.problems.serving.question import Scenario
from planner.protocol.solve import solve
from planner.scenario.loading import load
from planner.text.errors import InputError

QUESTIONS = {"users": "objective=throughput", "load": "workload.demand=max"}


def max_load(source: str | None, sets: Sequence[str], fit: Fit, wanted: str) -> float | None:
    """Requests in flight (`users`) [seq] or arriving (`load`) [seq/s] of one replica.

    The scenario's promises hold on the layout that fits, whatever it costs; None where none of it
    keeps them. Raises InputError for a word that is neither, and without a scenario.
    """
    if wanted not in QUESTIONS:
        raise InputError(f"--for {wanted}: expected one of {', '.join(QUESTIONS)}")
    question = load(source) if source and source.endswith((".yaml", ".yml", ".toml")) else None
    if not isinstance(question, Scenario):
        raise InputError(f"--for {wanted} reads promises of a scenario; give one, such as s.yaml")
    layout = {key: n for key, n in fit.layout.items() if key != "ep" or n > 1}
    chips = layout["tp"] * layout["pp"] * layout["dp_attention"]
    pins = [f"choose.{key}={n}" for key, n in {**layout, "replicas": 1, "cp": 1}.items()]
    free = ["choose.mode=aggregated", "choose.batch=null", "workload.concurrency=null",
            "workload.demand=null", "nodes=null", "price=$1/hour"]  # fmt: skip
    chosen = solve(str(source), [*sets, *free, f"chips={chips}", *pins, QUESTIONS[wanted]]).chosen
    if not chosen:
        return None
    return float(chosen["batch"] if wanted == "users" else chosen["requests_per_s"])
