"""Format a plan as text, JSON or HTML, without decisions or computations."""
