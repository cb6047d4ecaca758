"""What should I run? One room per kind of problem."""
