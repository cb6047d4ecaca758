"""A network as a graph: nodes, links, distances, placement, checks."""
