"""Optimisation: geometric and integer programs."""
