"""How does loss fall with size and tokens? Scaling laws, their fits, and families of models."""
