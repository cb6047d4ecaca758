"""Catalogue of training: published runs, and fitted coefficients of software generations."""
