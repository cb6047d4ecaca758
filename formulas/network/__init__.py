"""Collectives, expert traffic, pipelines."""
