"""What is raised about symbols, importable without SymPy."""


class SymbolError(ValueError):
    """Symbol that is unknown, defined twice, missing, or given a value outside its domain."""
