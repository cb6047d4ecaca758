"""Keep a cache, move it to another tier, or compute it again? Tiers, hold times and traces."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
