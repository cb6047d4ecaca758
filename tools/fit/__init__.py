"""Fit what ships to published tables that are not in the repository, and score such fits."""
