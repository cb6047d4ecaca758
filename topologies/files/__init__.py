"""Fabrics in files: how they are generated (YAML), link by link (JSON), for others to read."""
