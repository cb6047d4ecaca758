"""Rates by linear programs of flows."""
