"""What does an engine leave for the cache, and how many tokens is that?"""
