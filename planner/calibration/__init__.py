"""Measurements in, a named and dated profile out."""
