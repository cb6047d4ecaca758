"""Keep a cache, move it to another tier, or compute it again? Tiers, hold times and traces."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
