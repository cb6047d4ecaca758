"""Prices, cache tiers, schedules."""
