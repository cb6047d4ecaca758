"""How many tokens, how large a model: scaling laws, budgets and the whole life of a model."""
