"""Known machines and their figures."""
