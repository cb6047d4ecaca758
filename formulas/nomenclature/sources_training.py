"""The bibliography, continued: training, scaling laws, storage, sparse and reversible networks."""

from __future__ import annotations

from formulas.nomenclature.sources import Source

gpipe_2018 = Source(
    "gpipe_2018", "Huang et al.",
    "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism", 2018,
    "https://arxiv.org/abs/1811.06965",
)  # fmt: skip
narayanan_2021 = Source(
    "narayanan_2021", "Narayanan et al.",
    "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021,
    "https://arxiv.org/abs/2104.04473",
)  # fmt: skip
qi_2023 = Source(
    "qi_2023", "Qi et al.", "Zero Bubble Pipeline Parallelism", 2023,
    "https://arxiv.org/abs/2401.10241",
)  # fmt: skip
kaplan_2020 = Source(
    "kaplan_2020", "Kaplan et al.", "Scaling Laws for Neural Language Models", 2020,
    "https://arxiv.org/abs/2001.08361",
)  # fmt: skip
muennighoff_2023 = Source(
    "muennighoff_2023", "Muennighoff et al.", "Scaling Data-Constrained Language Models", 2023,
    "https://arxiv.org/abs/2305.16264",
)  # fmt: skip
khatri_2025 = Source(
    "khatri_2025", "Khatri et al.",
    "The Art of Scaling Reinforcement Learning Compute for LLMs", 2025,
    "https://arxiv.org/abs/2510.13786",
)  # fmt: skip
gray_1987 = Source(
    "gray_1987", "Gray, Putzolu",
    "The 5 minute rule for trading memory for disc accesses and the 10 byte rule for trading "
    "memory for CPU time", 1987, "https://doi.org/10.1145/38713.38755",
)  # fmt: skip
deepseek_v32 = Source(
    "deepseek_v32", "DeepSeek-AI",
    "DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek Sparse Attention", 2025,
    "https://github.com/deepseek-ai/DeepSeek-V3.2-Exp",
)  # fmt: skip
chen_2016 = Source(
    "chen_2016", "Chen et al.", "Training Deep Nets with Sublinear Memory Cost", 2016,
    "https://arxiv.org/abs/1604.06174",
)  # fmt: skip
gomez_2017 = Source(
    "gomez_2017", "Gomez et al.",
    "The Reversible Residual Network: Backpropagation Without Storing Activations", 2017,
    "https://arxiv.org/abs/1707.04585",
)  # fmt: skip
feistel_1973 = Source(
    "feistel_1973", "Feistel", "Cryptography and Computer Privacy", 1973,
    "https://doi.org/10.1038/scientificamerican0573-15",
)  # fmt: skip
krajewski_2024 = Source(
    "krajewski_2024", "Krajewski et al.", "Scaling Laws for Fine-Grained Mixture of Experts", 2024,
    "https://arxiv.org/abs/2402.07871",
)  # fmt: skip
abnar_2025 = Source(
    "abnar_2025", "Abnar et al.",
    "Parameters vs FLOPs: Scaling Laws for Optimal Sparsity for Mixture-of-Experts Language Models",
    2025, "https://arxiv.org/abs/2501.12370",
)  # fmt: skip
ludziejewski_2025 = Source(
    "ludziejewski_2025", "Ludziejewski et al.",
    "Joint MoE Scaling Laws: Mixture of Experts Can Be Memory Efficient", 2025,
    "https://arxiv.org/abs/2502.05172",
)  # fmt: skip
llama_2024 = Source(
    "llama_2024", "Llama Team", "The Llama 3 Herd of Models", 2024,
    "https://arxiv.org/abs/2407.21783",
)  # fmt: skip
deepseek_llm_2024 = Source(
    "deepseek_llm_2024", "DeepSeek-AI",
    "DeepSeek LLM: Scaling Open-Source Language Models with Longtermism", 2024,
    "https://arxiv.org/abs/2401.02954",
)  # fmt: skip
hu_2024 = Source(
    "hu_2024", "Hu et al.",
    "MiniCPM: Unveiling the Potential of Small Language Models with Scalable Training Strategies",
    2024, "https://arxiv.org/abs/2404.06395",
)  # fmt: skip

__all__ = [name for name, value in list(globals().items()) if isinstance(value, Source)]
