"""Rates under given routing."""
