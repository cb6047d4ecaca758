"""How many tokens, how large a model, at least cost?"""
