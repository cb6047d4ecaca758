"""The bibliography, continued: serving over long contexts, copies of experts."""

from __future__ import annotations

from formulas.nomenclature.sources import Source

yang_2024 = Source(
    "yang_2024", "Yang et al.", "Context Parallelism for Scalable Million-Token Inference", 2024,
    "https://arxiv.org/abs/2411.01783",
)  # fmt: skip
helix_2025 = Source(
    "helix_2025", "Bhatia et al.",
    "Helix Parallelism: Rethinking Sharding Strategies for Interactive Multi-Million-Token LLM "
    "Decoding", 2025,
    "https://arxiv.org/abs/2507.07120",
)  # fmt: skip

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Source)]
