"""Answers as terminal text."""
