"""Advice on a serving plan: variations of its question with one change, solved again."""
