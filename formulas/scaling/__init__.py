"""Scaling laws and token budgets."""
