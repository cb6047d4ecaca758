"""Scaling laws of the loss in size and tokens, their fits, and families of models."""
