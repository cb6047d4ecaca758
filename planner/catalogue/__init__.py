"""Catalogue of chips, systems, prices, models and profiles; figures have source and date.

The modules are imported one by one, so that asking for a chip does not read the models.
"""
