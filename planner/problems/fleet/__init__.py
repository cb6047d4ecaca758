"""Fleet problem: machines to reserve, rent on demand and take as spot for several models."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
