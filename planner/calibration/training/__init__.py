"""Which coefficients do measured steps of training give?"""
