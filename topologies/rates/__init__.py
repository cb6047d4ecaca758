"""How fast a group of accelerators can talk: plain rates in byte/s, one engine a file."""
