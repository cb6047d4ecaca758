"""The lifecycle problem: the cheapest model, its training and its serving over a whole life."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
