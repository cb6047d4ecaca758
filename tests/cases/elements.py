"""What a model caches, in elements, as references count it."""

from planner.architecture import ModelSizes


def kv_elements(sizes: ModelSizes) -> float:
    """Elements that caches grow by per token, indexer keys aside."""
    growing = (one for one in sizes.caches if one.grows and one.kind != "index")
    return sum(one.elements_per_token for one in growing)
