"""Text utilities: errors, quantities, units, wording."""
