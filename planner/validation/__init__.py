"""Predictions against measurements: rows of a file in, scores and plain baselines out."""
