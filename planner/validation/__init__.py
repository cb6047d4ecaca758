"""Predicted against measured: rows of a file in, scores beside plain baselines out."""
