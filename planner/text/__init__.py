"""How is it said? Errors, quantities, units, wording."""
