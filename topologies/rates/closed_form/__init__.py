"""Rates in closed form."""
