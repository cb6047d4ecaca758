"""Training arithmetic, bubbles, reversible layers."""
