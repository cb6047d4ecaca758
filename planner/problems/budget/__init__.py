"""How large a model on how many tokens? The budget problem: laws, phases, optimum, proof."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
