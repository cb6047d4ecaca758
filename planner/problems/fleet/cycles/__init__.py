"""Pricing of replicas by the duals, over all layouts and of each model by hour: cycles of hours."""
