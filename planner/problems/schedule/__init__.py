"""Problem kind `schedule`: batches depart at fixed intervals; waits, queue, simulation."""

from planner.text.faces import lazy_module

__getattr__ = lazy_module(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
