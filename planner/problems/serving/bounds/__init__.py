"""Lower bounds, certificates and multipliers of serving plans, as geometric programs."""
