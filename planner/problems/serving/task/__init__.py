"""From a scenario to serving tasks with every quantity looked up."""
