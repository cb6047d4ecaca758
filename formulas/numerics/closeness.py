"""Tolerances of the equations, each with its reason: what counts as equal, near or small."""

from fractions import Fraction

# Of an expression with a root or a logarithm at a rational point, walked in floats: the sides of an
# identity agree to nine digits, which a proof then says.
DIGITS = 1e-9

# A limit is near at the last of three steps, and no farther from it than at the first; below
# VANISHING a claim is compared with itself no more.
NEAR_LIMIT = 1e-3
AS_NEAR = 1e-12
VANISHING = 1e-300

# Relative distance at which two branches of a Max tie: a few roundings of what computes them.
TIE = 1e-12

# Neglected over kept from which a document calls an approximation bad.
NOT_SMALL = 0.5

# The lecture rounds in the head: 14.4 is "about 15".
ROUNDING = Fraction(1, 20)
