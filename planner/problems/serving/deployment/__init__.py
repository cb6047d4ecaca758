"""One or several pools of replicas that serve together."""
