"""Derivatives of a serving plan's outputs at a fixed layout."""
