"""Tools of the maintainers, which no wheel holds."""
