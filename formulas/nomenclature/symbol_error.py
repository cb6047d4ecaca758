"""What is raised about symbols, importable without SymPy."""


class SymbolError(ValueError):
    """A name that no symbol bears, one that bears a symbol already, or a value it cannot take."""
