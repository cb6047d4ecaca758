"""Model, search, plan: what to run, and what it costs."""
