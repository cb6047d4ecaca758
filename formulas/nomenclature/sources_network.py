"""The bibliography, continued: collective communication and the libraries that do it."""

from __future__ import annotations

from formulas.nomenclature.sources import Source

patarasuk_2009 = Source(
    "patarasuk_2009", "Patarasuk, Yuan",
    "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009,
    "https://doi.org/10.1016/j.jpdc.2008.09.002",
)  # fmt: skip
sanders_2009 = Source(
    "sanders_2009", "Sanders, Speck, Träff",
    "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009,
    "https://doi.org/10.1016/j.parco.2009.09.001",
)  # fmt: skip
klenk_2020 = Source(
    "klenk_2020", "Klenk, Jiang, Thorson, Dennison",
    "An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives", 2020,
    "https://doi.org/10.1109/ISCA45697.2020.00085",
)  # fmt: skip
nccl = Source("nccl", "NVIDIA", "NCCL", 2026, "https://github.com/NVIDIA/nccl")
deep_ep = Source("deep_ep", "DeepSeek-AI", "DeepEP", 2025, "https://github.com/deepseek-ai/DeepEP")

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Source)]
