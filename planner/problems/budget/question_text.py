"""What a budget or a lifecycle was asked, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.text.wording import count, filled


def question(document: Mapping[str, Any]) -> str:
    """What was asked, in a sentence."""
    scenario = document["scenario"]
    quality, served, rl = scenario["quality"], document["demand"], scenario["rl"]
    if quality is None:
        limit = scenario["cost"]
        number, _, unit = str(limit).partition(" ")
        per = unit or ("USD" if scenario["objective"] == "cost" else "FLOP")
        wanted = f"the best model that costs {float(number):g} {per}"
    elif quality["loss"] is not None:
        wanted = f"a loss of {quality['loss']:g}"
    else:
        like = quality["like"]
        size = like["model"] or f"{count(like['n_active'])} parameters"
        trained = f" on {count(like['tokens'])} tokens" if like["tokens"] else ""
        kind = "a model" if like["tokens"] else "a compute-optimal model"
        wanted = f"as good as {kind} of {size}{trained}"
    parts = [wanted]
    if served["tokens"] is None:
        parts.append(f"tokens served for ever, counted as {count(served['counted'])}")
    elif served["counted"] != served["tokens"]:
        total, counted = count(served["tokens"]), count(served["counted"])
        parts.append(f"{total} tokens served, counted as {counted}")
    else:
        parts.append(
            f"{count(served['tokens'])} tokens served" if served["tokens"] else "not served"
        )
    if rl["tokens"]:
        parts.append(f"{count(rl['tokens'])} tokens of RL")
    if rl["reward"]:
        parts.append(f"a reward of {rl['reward']['needed']:g} after RL")
    if scenario["data"]["unique"]:
        parts.append(f"{count(scenario['data']['unique'])} unique tokens")
    least = "cost in USD" if scenario["objective"] == "cost" else "FLOP"
    aim = "best loss" if quality is None else f"least {least}"
    return "\n".join(filled(f"{', '.join(parts)}; {aim}"))
