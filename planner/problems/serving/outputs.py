"""The numbers of a serving plan: names, units, and the equation of each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from planner.protocol.output import Output

if TYPE_CHECKING:
    import sympy as sp

    from planner.problems.serving.plan import ServingAnswer
    from planner.protocol.plan import Plan


def _equation(name: str, word: str, plan: Plan[ServingAnswer]) -> sp.Expr | None:
    """The expression of what the equations call `word`; SymPy is loaded with it."""
    answer = plan.answer
    if answer.plan is None or getattr(answer.plan, name) is None:
        return None
    from planner.problems.serving.closed_form import expression

    return expression(word, answer.plan.mode, answer)


def _output(
    name: str, unit: str, word: str, *aliases: str, promise: str = "", rises: bool = False
) -> Output:
    """An output that the equations call `word`."""
    path = f"promises.{promise}" if promise else None
    return Output(name, unit, aliases, path, equation=partial(_equation, name, word), rises=rises)


OUTPUTS = (
    _output("usd_per_mtok", "USD per million tokens", "usd_per_token", "cost", "price"),
    _output("usd_per_mtok_input", "USD per million input tokens", "usd_per_input_token"),
    _output("usd_per_mtok_output", "USD per million output tokens", "usd_per_output_token"),
    _output("usd_per_hour", "USD/hour", "usd_per_s"),
    _output("ttft", "s", "ttft", promise="ttft"),
    _output("tpot", "s", "tpot", promise="tpot"),
    _output("e2e", "s", "latency", "latency", promise="e2e"),
    _output("tokens_per_s", "token/s", "tokens_per_s", "throughput", rises=True),
    _output("tokens_per_s_per_chip", "token/(s*chip)", "tokens_per_s_per_chip", rises=True),
    _output("tokens_per_s_per_user", "token/s", "tokens_per_s_per_user", "speed",
            promise="tokens_per_s_per_user", rises=True),
    _output("requests_per_s", "seq/s", "requests", rises=True),
    _output("joule_per_token", "J/token", "joule_per_token", "energy"),
    _output("batch", "seq", "sequences"),
)  # fmt: skip
UNITS = {output.name: output.unit for output in OUTPUTS}
