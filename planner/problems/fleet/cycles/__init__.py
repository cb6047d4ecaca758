"""Which replicas are worth the duals, of all layouts and of one model in each hour? Cycles."""
