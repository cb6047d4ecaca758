"""Plots as SVG, PNG or PDF."""
