"""Measurements: files read into rows, with predictions and bounds."""
