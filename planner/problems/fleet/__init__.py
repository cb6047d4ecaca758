"""Which machines to reserve, rent and take as spot for several models? The fleet problem."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
