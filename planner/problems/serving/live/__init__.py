"""The serving search as a page carries it: layouts as rows, kernels as JavaScript, sliders."""
