"""The bibliography: where an equation comes from, down to its section, page or equation number."""

from __future__ import annotations

from dataclasses import dataclass

LECTURE_VIDEO = "https://www.youtube.com/watch?v=xmkSf5IS-zw"


@dataclass(frozen=True)
class Source:
    """A work that can be cited."""

    key: str
    authors: str
    year: int
    link: str
    title: str

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
        """URL of the work; empty for a definition."""
        return self.source.link if self.source else ""


def _arxiv(key: str, authors: str, year: int, paper: str, title: str) -> Source:
    return Source(key, authors, year, f"https://arxiv.org/abs/{paper}", title)


def _doi(key: str, authors: str, year: int, name: str, title: str) -> Source:
    return Source(key, authors, year, f"https://doi.org/{name}", title)


definition = Citation(None, "by definition")
derived = Citation(None, "derived here")

# fmt: off
# ruff: noqa: E501  (a bibliography reads better as a table)

# The lecture, and the five written accounts of it ("lecture notes").
lecture_notes = Source("notes", "notes on a lecture by Reiner Pope", 2026, LECTURE_VIDEO, "The Economics of a Token: A Roofline Tour of Frontier Inference")
lecture_hardware = Source("hardware", "notes on a lecture by Reiner Pope", 2026, LECTURE_VIDEO, "AI Hardware Economics")
lecture_equations = Source("equations", "notes on a lecture by Reiner Pope", 2026, LECTURE_VIDEO, "LLM Inference Economics (7 Equations)")
lecture_summary = Source("summary", "Dwarkesh Podcast", 2026, LECTURE_VIDEO, "The math behind how LLMs are trained and served")
lecture_player = Source("player", "Dwarkesh Podcast", 2026, LECTURE_VIDEO, "Why Token Cost Tracks Batch")

# Rooflines, serving, models
williams_2009 = _doi("williams_2009", "Williams, Waterman, Patterson", 2009, "10.1145/1498765.1498785", "Roofline: an insightful visual performance model for multicore architectures")
vaswani_2017 = _arxiv("vaswani_2017", "Vaswani et al.", 2017, "1706.03762", "Attention Is All You Need")
shazeer_2017 = _arxiv("shazeer_2017", "Shazeer et al.", 2017, "1701.06538", "Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer")
clark_2022 = _arxiv("clark_2022", "Clark et al.", 2022, "2202.01169", "Unified Scaling Laws for Routed Language Models")
hoffmann_2022 = _arxiv("hoffmann_2022", "Hoffmann et al.", 2022, "2203.15556", "Training Compute-Optimal Large Language Models")
pope_2022 = _arxiv("pope_2022", "Pope et al.", 2022, "2211.05102", "Efficiently Scaling Transformer Inference")
leviathan_2022 = _arxiv("leviathan_2022", "Leviathan, Kalman, Matias", 2022, "2211.17192", "Fast Inference from Transformers via Speculative Decoding")
li_2024 = _arxiv("li_2024", "Li, Wei, Zhang, Zhang", 2024, "2401.15077", "EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty")
orkllm_2026 = Source("orkllm_2026", "oRKLLM", 2026, "https://github.com/oRKLLM/ork-driver/wiki/Exp-2026-06-26-MoE-Routing-Skew", "MoE Routing Skew: how often experts of LFM2 and Qwen3.6 are picked")
ainslie_2023 = _arxiv("ainslie_2023", "Ainslie et al.", 2023, "2305.13245", "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints")
deepseek_v2 = _arxiv("deepseek_v2", "DeepSeek-AI", 2024, "2405.04434", "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model")
deepseek_v3 = _arxiv("deepseek_v3", "DeepSeek-AI", 2024, "2412.19437", "DeepSeek-V3 Technical Report")
hockney_1994 = _doi("hockney_1994", "Hockney", 1994, "10.1016/S0167-8191(06)80021-9", "The communication challenge for MPP: Intel Paragon and Meiko CS-2")
thakur_2005 = _doi("thakur_2005", "Thakur, Rabenseifner, Gropp", 2005, "10.1177/1094342005051521", "Optimization of Collective Communication Operations in MPICH")
little_1961 = _doi("little_1961", "Little", 1961, "10.1287/opre.9.3.383", "A Proof for the Queuing Formula: L = lambda W")
steiner_1957 = Source("steiner_1957", "Steiner", 1957, "https://www.jstor.org/stable/1885712", "Peak Loads and Efficient Pricing")
bailey_1954 = _doi("bailey_1954", "Bailey", 1954, "10.1111/j.2517-6161.1954.tb00149.x", "On Queueing Processes with Bulk Service")
siegmund_1979 = _doi("siegmund_1979", "Siegmund", 1979, "10.2307/1426855", "Corrected Diffusion Approximations in Certain Random Walk Problems")
kleinrock_1975 = Source("kleinrock_1975", "Kleinrock", 1975, "https://archive.org/details/queueingsystems01klei", "Queueing Systems, volume 1: Theory")
zhong_2024 = _arxiv("zhong_2024", "Zhong et al.", 2024, "2401.09670", "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving")
nccl_tests = Source("nccl_tests", "NVIDIA", 2026, "https://github.com/NVIDIA/nccl-tests", "nccl-tests")
besiroglu_2024 = _arxiv("besiroglu_2024", "Besiroglu et al.", 2024, "2404.10102", "Chinchilla Scaling: A replication attempt")
sardana_2024 = _arxiv("sardana_2024", "Sardana et al.", 2024, "2401.00448", "Beyond Chinchilla-Optimal: Accounting for Inference in Language Model Scaling Laws")

# Collective communication and its libraries
patarasuk_2009 = _doi("patarasuk_2009", "Patarasuk, Yuan", 2009, "10.1016/j.jpdc.2008.09.002", "Bandwidth optimal all-reduce algorithms for clusters of workstations")
sanders_2009 = _doi("sanders_2009", "Sanders, Speck, Träff", 2009, "10.1016/j.parco.2009.09.001", "Two-tree algorithms for full bandwidth broadcast, reduction and scan")
klenk_2020 = _doi("klenk_2020", "Klenk, Jiang, Thorson, Dennison", 2020, "10.1109/ISCA45697.2020.00085", "An In-Network Architecture for Accelerating Shared-Memory Multiprocessor Collectives")
nccl = Source("nccl", "NVIDIA", 2026, "https://github.com/NVIDIA/nccl", "NCCL")
deep_ep = Source("deep_ep", "DeepSeek-AI", 2025, "https://github.com/deepseek-ai/DeepEP", "DeepEP")

# Long contexts
yang_2024 = _arxiv("yang_2024", "Yang et al.", 2024, "2411.01783", "Context Parallelism for Scalable Million-Token Inference")
helix_2025 = _arxiv("helix_2025", "Bhatia et al.", 2025, "2507.07120", "Helix Parallelism: Rethinking Sharding Strategies for Interactive Multi-Million-Token LLM Decoding")
vllm_memory = Source("vllm_memory", "vLLM project", 2026, "https://github.com/vllm-project/vllm", "vLLM: v1/worker/gpu_worker.py, v1/core/kv_cache_utils.py")
sglang_memory = Source("sglang_memory", "SGLang project", 2026, "https://github.com/sgl-project/sglang", "SGLang: srt/server_args.py, model_runner_kv_cache_mixin.py")
trtllm_memory = Source("trtllm_memory", "NVIDIA", 2026, "https://github.com/NVIDIA/TensorRT-LLM", "TensorRT-LLM: pyexecutor/_util.py")

# Training, scaling laws, storage, sparse and reversible networks
gpipe_2018 = _arxiv("gpipe_2018", "Huang et al.", 2018, "1811.06965", "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism")
narayanan_2021 = _arxiv("narayanan_2021", "Narayanan et al.", 2021, "2104.04473", "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM")
qi_2023 = _arxiv("qi_2023", "Qi et al.", 2023, "2401.10241", "Zero Bubble Pipeline Parallelism")
rajbhandari_2019 = _arxiv("rajbhandari_2019", "Rajbhandari, Rasley, Ruwase, He", 2019, "1910.02054", "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models")
dao_2023 = _arxiv("dao_2023", "Dao", 2023, "2307.08691", "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning")
kaplan_2020 = _arxiv("kaplan_2020", "Kaplan et al.", 2020, "2001.08361", "Scaling Laws for Neural Language Models")
muennighoff_2023 = _arxiv("muennighoff_2023", "Muennighoff et al.", 2023, "2305.16264", "Scaling Data-Constrained Language Models")
khatri_2025 = _arxiv("khatri_2025", "Khatri et al.", 2025, "2510.13786", "The Art of Scaling Reinforcement Learning Compute for LLMs")
gray_1987 = _doi("gray_1987", "Gray, Putzolu", 1987, "10.1145/38713.38755", "The 5 minute rule for trading memory for disc accesses and the 10 byte rule for trading memory for CPU time")
deepseek_v32 = Source("deepseek_v32", "DeepSeek-AI", 2025, "https://github.com/deepseek-ai/DeepSeek-V3.2-Exp", "DeepSeek-V3.2-Exp: Boosting Long-Context Efficiency with DeepSeek Sparse Attention")
chen_2016 = _arxiv("chen_2016", "Chen et al.", 2016, "1604.06174", "Training Deep Nets with Sublinear Memory Cost")
gomez_2017 = _arxiv("gomez_2017", "Gomez et al.", 2017, "1707.04585", "The Reversible Residual Network: Backpropagation Without Storing Activations")
feistel_1973 = _doi("feistel_1973", "Feistel", 1973, "10.1038/scientificamerican0573-15", "Cryptography and Computer Privacy")
krajewski_2024 = _arxiv("krajewski_2024", "Krajewski et al.", 2024, "2402.07871", "Scaling Laws for Fine-Grained Mixture of Experts")
abnar_2025 = _arxiv("abnar_2025", "Abnar et al.", 2025, "2501.12370", "Parameters vs FLOPs: Scaling Laws for Optimal Sparsity for Mixture-of-Experts Language Models")
ludziejewski_2025 = _arxiv("ludziejewski_2025", "Ludziejewski et al.", 2025, "2502.05172", "Joint MoE Scaling Laws: Mixture of Experts Can Be Memory Efficient")
llama_2024 = _arxiv("llama_2024", "Llama Team", 2024, "2407.21783", "The Llama 3 Herd of Models")
deepseek_llm_2024 = _arxiv("deepseek_llm_2024", "DeepSeek-AI", 2024, "2401.02954", "DeepSeek LLM: Scaling Open-Source Language Models with Longtermism")
hu_2024 = _arxiv("hu_2024", "Hu et al.", 2024, "2404.06395", "MiniCPM: Unveiling the Potential of Small Language Models with Scalable Training Strategies")
renyi_1953 = _doi("renyi_1953", "Rényi", 1953, "10.1007/BF02127580", "On the theory of order statistics")
young_1974 = _doi("young_1974", "Young", 1974, "10.1145/361147.361115", "A first order approximation to the optimum checkpoint interval")
chowdhery_2022 = _arxiv("chowdhery_2022", "Chowdhery et al.", 2022, "2204.02311", "PaLM: Scaling Language Modeling with Pathways")
korthikanti_2022 = _arxiv("korthikanti_2022", "Korthikanti et al.", 2022, "2205.05198", "Reducing Activation Recomputation in Large Transformer Models")
# fmt: on

SOURCES: dict[str, Source] = {s.key: s for s in list(globals().values()) if isinstance(s, Source)}
