"""Numerical tolerances that several rooms share, each with its reason; `formulas` has its own.

A tolerance that one search alone has, such as how near it closes in, stands with the search.
"""

REL_TOL = 1e-9
"""Relative difference below which two values are one [-].

Rounding errors of a whole evaluation stay below 1e-12; what a reader could see is above 1e-4.
"""

AGREE = 1e-6
"""Relative difference within which two methods give the same answer [-].

Conic solvers stop at residuals of 1e-8 of their scaled data, so that answers keep some six digits.
"""

TIE = 1e-3
"""Relative difference of two objectives below which a plainer plan counts as good as a better [-].

It is a tenth of what equal runs of one engine differ by, and no rent is known as well.
"""

QUANTILE_90 = 1.2816
"""Standard deviations from the middle of a normal to the tenth at either end [-]."""

UNSEEN = 5e-4
"""Elasticity, or relative difference, that three printed digits do not show [-]."""
