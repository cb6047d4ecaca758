"""Pairs of layouts in two pools: prefill layouts with the decode layouts they run with."""
