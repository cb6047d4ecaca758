"""Which layout trains a model soonest, or cheapest? Training: lattice, step, search, plan."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
