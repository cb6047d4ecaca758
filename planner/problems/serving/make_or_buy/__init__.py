"""Rent chips or buy tokens? Our own cost against the listed prices of hosts."""
