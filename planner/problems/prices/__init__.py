"""What do listed prices say of the machine behind them? Sizes, caches, tiers, contradictions."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
