"""How sure? Distributions, samples and Sobol indices of uncertain parameters."""
