"""Search for the best model over its whole life: sizes, price tangents, one joint program."""
