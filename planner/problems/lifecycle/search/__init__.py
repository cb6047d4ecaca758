"""Which model is best over its whole life? Sizes, tangents of the price, one joint program."""
