"""Profiles of collectives: read measured times, fit curves, borrow what was not measured."""
