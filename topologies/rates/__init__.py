"""Rates of groups of accelerators in byte/s, by several engines."""
