"""Which replicas of one model in each hour are cheapest, the others held? Covers and cycles."""
