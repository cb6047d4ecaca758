"""Which command? The command line, one function per command."""

from planner.cli.app import main

__all__ = ["main"]
