"""What is known: chips, systems, prices, models and profiles, every figure with source and date.

The sub-modules are imported one by one, so that asking for a chip does not read the models.
"""

from planner.catalogue.chips import Chip, chip, chip_names, chips
from planner.catalogue.figures import Figure
from planner.catalogue.listed_prices import Price, Rental, default_price, electricity, rentals
from planner.catalogue.systems import System, system, system_from, system_names, systems

__all__ = [
    "Chip",
    "Figure",
    "Price",
    "Rental",
    "System",
    "chip",
    "chip_names",
    "chips",
    "default_price",
    "electricity",
    "rentals",
    "system",
    "system_from",
    "system_names",
    "systems",
]
