"""Measures of the sources of the project; `python -m tests.house` prints them."""
