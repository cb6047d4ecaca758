"""Inferences from listed prices about the machine: sizes, caches, tiers, contradictions."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
