"""Rates by the narrowest cut."""
