"""Builders of fabrics: a few figures in, a checked `networkx.DiGraph` out; one family a file."""
