"""How are chips split between writing answers and learning from them? Reinforcement learning."""

from planner.text.faces import loaded_from

__getattr__ = loaded_from(
    __name__,
    {
        "QUESTION": "question",
        "PROBLEM": "problem",
        "least_seconds": "search",
        "pool_times": "search",
        "step_function": "search",
    },
)
