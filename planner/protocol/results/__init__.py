"""Typed results of calibrations and validations on measured runs."""
