"""Which layout trains this model soonest, or cheapest? The training problem: lattice, step, plan."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
