"""The numbers of a serving plan: names, units, and the equation of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from planner.protocol.document import Unit
from planner.protocol.output import Output

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.serving.plan import ServingAnswer
    from planner.protocol.plan import Plan


@dataclass(frozen=True)
class ServingOutput(Output):
    """An output, its name in the equations, its unit over theirs, and its label in sections."""

    word: str = ""
    scale: int = 1
    label: str = ""


@dataclass(frozen=True)
class LoopTimes:
    """Times of requests in a closed loop: those that run, and those that wait for memory.

    `wait` is how long the latter wait for a place. 5 % and 1 % of the requests of a load test,
    whose first come all at once, have their first token later than `ttft_p95` and `ttft_p99`; of
    later requests 5 % later than `settled_p95`.
    """

    users: Annotated[int, Unit("seq")]
    waiting: Annotated[int, Unit("seq")]
    wait: Annotated[float, Unit("s")]
    ttft_p95: Annotated[float, Unit("s")]
    ttft_p99: Annotated[float, Unit("s")]
    settled_p95: Annotated[float, Unit("s")]


def _equation(name: str, word: str, scale: int, plan: Plan[ServingAnswer]) -> sp.Expr | None:
    answer = plan.answer
    if answer.plan is None or getattr(answer.plan, name) is None:
        return None
    from planner.problems.serving.closed_form import expression

    return scale * expression(word, answer.plan.mode, answer)


def _output(
    name: str, label: str, unit: str, word: str, *aliases: str,
    scale: int = 1, promise: str = "", rises: bool = False,
) -> ServingOutput:  # fmt: skip
    return ServingOutput(
        name, unit, aliases, f"promises.{promise}" if promise else None,
        partial(_equation, name, word, scale), rises=rises, word=word, scale=scale, label=label,
    )  # fmt: skip


OUTPUTS = (
    _output("usd_per_mtok", "price", "USD per million tokens", "usd_per_token", "cost", "price",
            scale=10**6),
    _output("usd_per_mtok_input", "price of input", "USD per million input tokens",
            "usd_per_input_token", scale=10**6),
    _output("usd_per_mtok_output", "price of output", "USD per million output tokens",
            "usd_per_output_token", scale=10**6),
    _output("usd_per_hour", "bill", "USD/hour", "usd_per_s", scale=3600),
    _output("ttft", "TTFT", "s", "ttft", promise="ttft"),
    _output("tpot", "TPOT", "s", "tpot", promise="tpot"),
    _output("e2e", "end to end", "s", "latency", "latency", promise="e2e"),
    _output("tokens_per_s", "throughput", "token/s", "tokens_per_s", "throughput", rises=True),
    _output("tokens_per_s_per_chip", "per chip", "token/(s*chip)", "tokens_per_s_per_chip",
            rises=True),
    _output("tokens_per_s_per_user", "per user", "token/s", "tokens_per_s_per_user", "speed",
            promise="tokens_per_s_per_user", rises=True),
    _output("requests_per_s", "requests", "seq/s", "requests", rises=True),
    _output("watts_per_chip", "power per chip", "J/s", "watts", "power"),
    _output("joule_per_token", "energy", "J/token", "joule_per_token", "energy"),
    _output("grams_per_mtok", "carbon dioxide", "g per million tokens", "grams_per_token", "carbon",
            scale=10**6),
    _output("batch", "in flight", "seq", "sequences"),
)  # fmt: skip
# Tail latencies, defined only under a load (`demand`, `loop`) and limited by its promises.
PROMISE_OUTPUTS = tuple(
    Output(name, "s", promise=f"promises.{name}", key=f"demand.{name}", or_key=f"loop.{name}")
    for name in ("ttft_p95", "ttft_p99")
)
BY_NAME = {output.name: output for output in OUTPUTS}
# Outputs that are undefined in a mode.
ABSENT = {"aggregated": (), "decode": ("ttft", "e2e"), "prefill": ("tpot", "e2e")}
