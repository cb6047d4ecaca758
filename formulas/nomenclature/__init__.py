"""Symbols with units and meanings, citations, dimensions."""
