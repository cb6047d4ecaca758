"""What is wired: networks of accelerators as graphs, plain numbers out."""
