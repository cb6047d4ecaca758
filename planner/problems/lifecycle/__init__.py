"""Which model, trained how, served how, over a whole life? The lifecycle problem."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
