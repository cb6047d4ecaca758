"""Which machines to reserve, rent and take as spot for several models? The fleet problem."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
