"""Tolerances of the equations, each with its reason: what counts as equal, near or small."""

from fractions import Fraction

# Where the value at a point is irrational, digits that are carried, of which a sum may cancel a
# third. In a search for a branch, where a point is looked at again, the digits of floats do.
WORKING, SEARCHING = 120, 24

# Relative distance at which two branches of a Max tie: a few roundings of what computes them.
TIE = 1e-12

# Neglected over kept from which a document calls an approximation bad.
NOT_SMALL = 0.5

# The lecture rounds in the head: 14.4 is "about 15".
ROUNDING = Fraction(1, 20)

# A stated number is near the computed one up to half as much again, as figures carried through a
# lecture in the head are, and no longer of its order of magnitude from ten times on.
NEAR = Fraction(3, 2)
FAR = 10
