"""Answers of every kind of problem computed anew by code that shares nothing with its search.

A module for each kind has `question(number)`, a random sound scenario, and `faults(asked,
document)`, what does not hold of the answer. `tests.campaign.soundness` does so for serving.
"""
