"""Time and memory of a training step: layouts, counts and rates become symbols, then arrays."""
