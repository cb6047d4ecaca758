"""The bibliography: where an equation comes from, down to its section, page or equation number."""

from __future__ import annotations

from dataclasses import dataclass

LECTURE_VIDEO = "https://www.youtube.com/watch?v=xmkSf5IS-zw"


@dataclass(frozen=True)
class Source:
    """A work that can be cited."""

    key: str
    authors: str
    title: str
    year: int
    link: str

    def at(self, place: str) -> Citation:
        """This work at a section, minute, page or equation number."""
        return Citation(self, place)


@dataclass(frozen=True)
class Citation:
    """A place in a work; without a work it is true by definition, or by the derivation shown."""

    source: Source | None
    place: str

    def __str__(self) -> str:
        if self.source is None:
            return self.place
        return f"{self.source.authors}, {self.source.title} ({self.source.year}), {self.place}"

    @property
    def link(self) -> str:
        """Where the work can be read; empty for a definition."""
        return self.source.link if self.source else ""


definition = Citation(None, "by definition")
derived = Citation(None, "derived here")

# The lecture, and the five written accounts of it ("lecture notes").
lecture_notes = Source(
    "notes", "notes on a lecture by Reiner Pope",
    "The Economics of a Token: A Roofline Tour of Frontier Inference", 2026, LECTURE_VIDEO,
)  # fmt: skip
lecture_hardware = Source(
    "hardware", "notes on a lecture by Reiner Pope", "AI Hardware Economics", 2026, LECTURE_VIDEO
)
lecture_equations = Source(
    "equations", "notes on a lecture by Reiner Pope",
    "LLM Inference Economics (7 Equations)", 2026, LECTURE_VIDEO,
)  # fmt: skip
lecture_summary = Source(
    "summary", "Dwarkesh Podcast", "The math behind how LLMs are trained and served", 2026,
    LECTURE_VIDEO,
)  # fmt: skip
lecture_player = Source(
    "player", "Dwarkesh Podcast", "Why Token Cost Tracks Batch", 2026, LECTURE_VIDEO
)

# Papers and reports.
williams_2009 = Source(
    "williams_2009", "Williams, Waterman, Patterson",
    "Roofline: an insightful visual performance model for multicore architectures", 2009,
    "https://doi.org/10.1145/1498765.1498785",
)  # fmt: skip
vaswani_2017 = Source(
    "vaswani_2017", "Vaswani et al.", "Attention Is All You Need", 2017,
    "https://arxiv.org/abs/1706.03762",
)  # fmt: skip
shazeer_2017 = Source(
    "shazeer_2017", "Shazeer et al.",
    "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer", 2017,
    "https://arxiv.org/abs/1701.06538",
)  # fmt: skip
clark_2022 = Source(
    "clark_2022", "Clark et al.", "Unified Scaling Laws for Routed Language Models", 2022,
    "https://arxiv.org/abs/2202.01169",
)  # fmt: skip
hoffmann_2022 = Source(
    "hoffmann_2022", "Hoffmann et al.", "Training Compute-Optimal Large Language Models", 2022,
    "https://arxiv.org/abs/2203.15556",
)  # fmt: skip
pope_2022 = Source(
    "pope_2022", "Pope et al.", "Efficiently Scaling Transformer Inference", 2022,
    "https://arxiv.org/abs/2211.05102",
)  # fmt: skip
leviathan_2022 = Source(
    "leviathan_2022", "Leviathan, Kalman, Matias",
    "Fast Inference from Transformers via Speculative Decoding", 2022,
    "https://arxiv.org/abs/2211.17192",
)  # fmt: skip
ainslie_2023 = Source(
    "ainslie_2023", "Ainslie et al.",
    "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023,
    "https://arxiv.org/abs/2305.13245",
)  # fmt: skip
deepseek_v2 = Source(
    "deepseek_v2", "DeepSeek-AI",
    "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024,
    "https://arxiv.org/abs/2405.04434",
)  # fmt: skip
deepseek_v3 = Source(
    "deepseek_v3", "DeepSeek-AI", "DeepSeek-V3 Technical Report", 2024,
    "https://arxiv.org/abs/2412.19437",
)  # fmt: skip
hockney_1994 = Source(
    "hockney_1994", "Hockney",
    "The communication challenge for MPP: Intel Paragon and Meiko CS-2", 1994,
    "https://doi.org/10.1016/S0167-8191(06)80021-9",
)  # fmt: skip
thakur_2005 = Source(
    "thakur_2005", "Thakur, Rabenseifner, Gropp",
    "Optimization of Collective Communication Operations in MPICH", 2005,
    "https://doi.org/10.1177/1094342005051521",
)  # fmt: skip
little_1961 = Source(
    "little_1961", "Little", "A Proof for the Queuing Formula: L = lambda W", 1961,
    "https://doi.org/10.1287/opre.9.3.383",
)  # fmt: skip
kleinrock_1975 = Source(
    "kleinrock_1975", "Kleinrock", "Queueing Systems, volume 1: Theory", 1975,
    "https://archive.org/details/queueingsystems01klei",
)  # fmt: skip
zhong_2024 = Source(
    "zhong_2024", "Zhong et al.",
    "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model "
    "Serving", 2024,
    "https://arxiv.org/abs/2401.09670",
)  # fmt: skip
nccl_tests = Source(
    "nccl_tests", "NVIDIA", "nccl-tests", 2026, "https://github.com/NVIDIA/nccl-tests"
)
besiroglu_2024 = Source(
    "besiroglu_2024", "Besiroglu et al.", "Chinchilla Scaling: A replication attempt", 2024,
    "https://arxiv.org/abs/2404.10102",
)  # fmt: skip
sardana_2024 = Source(
    "sardana_2024", "Sardana et al.",
    "Beyond Chinchilla-Optimal: Accounting for Inference in Language Model Scaling Laws", 2024,
    "https://arxiv.org/abs/2401.00448",
)  # fmt: skip

SOURCES: dict[str, Source] = {s.key: s for s in list(globals().values()) if isinstance(s, Source)}

__all__ = ["SOURCES", "Citation", "Source", "definition", "derived"]
__all__ += [name for name, value in globals().items() if isinstance(value, Source)]
