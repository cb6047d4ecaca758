"""Which model, trained how, served how, over a whole life? The lifecycle problem."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
