"""Batch, replicas and layout, searched exhaustively."""
