"""Compute time and memory time, batching, experts, KV cache."""
