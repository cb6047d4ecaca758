"""What do measured runs say? Calibrations and validations, typed."""
