"""Sensitivities of an answer: elasticities, the next switch of its choice, break-even points."""
