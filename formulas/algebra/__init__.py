"""Equations and derivations that check themselves."""
