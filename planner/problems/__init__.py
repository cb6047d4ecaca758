"""Problem kinds of the planner: one package per kind."""
