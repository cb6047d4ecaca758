"""Budget problem, model size and number of tokens: laws, phases, optimum, proof."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
