"""Memory: what an engine takes of it, and what is left for the cache."""
