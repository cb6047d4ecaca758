"""Refresh of listed prices: read on request only, and compared with the snapshot."""
