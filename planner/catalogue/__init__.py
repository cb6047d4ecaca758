"""What is known: chips, systems, prices, models and profiles, every figure with source and date.

The modules are imported one by one, so that asking for a chip does not read the models.
"""
