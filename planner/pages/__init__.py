"""Interfaces for a browser, a program or an agent that return the command's documents."""
