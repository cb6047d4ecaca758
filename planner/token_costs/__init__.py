"""Costs of the phases of a model's life, and the size and tokens that minimise them."""
