"""Decode and prefill steps of a serving replica, pools, queues."""
