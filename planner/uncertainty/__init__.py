"""Uncertainty: distributions, samples and Sobol indices of uncertain parameters."""
