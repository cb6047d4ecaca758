"""Pretraining, reinforcement learning and serving of one model at least total cost."""
