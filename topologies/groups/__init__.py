"""Rates of groups of chips inside a network."""
