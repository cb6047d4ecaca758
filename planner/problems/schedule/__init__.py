"""When does the next batch depart? Trains of seats at fixed intervals: waits, queue, simulation."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(__name__, {"QUESTION": "question", "PROBLEM": "problem"})
