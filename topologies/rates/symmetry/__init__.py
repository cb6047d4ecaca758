"""Symmetries that reduce the flow program."""
