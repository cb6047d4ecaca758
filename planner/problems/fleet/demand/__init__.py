"""Demand over the hours: as it is written in a scenario, and in a file."""
