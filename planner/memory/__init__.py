"""Memory that an engine leaves for the KV cache, and the tokens that fit in it."""
