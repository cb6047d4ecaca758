"""How large a model on how many tokens? The budget problem: laws, phases, optimum, proof."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
