"""Equations lowered to NumPy: tapes, kernels, slopes."""
