"""What engines refuse, rule by rule: a pool and a layout on either side of every border."""

from dataclasses import replace

import numpy as np

from planner.architecture.counts import InnerWidth
from planner.problems.serving.step.engine_rules import RULES, engine_tables
from planner.problems.serving.step.layouts import Layouts
from tests.cases.engine_pools import A100, B200, FULL, H100, MI300, MODEL, T4, V100, pool_with
from tests.loops import for_all

DENSE = {"n_experts": 0}
LATENT = {"caches": (replace(FULL, kind="latent"),)}
WINDOWS = {"caches": (FULL, replace(FULL, kind="window"))}
CHUNKS = {"caches": (FULL, replace(FULL, kind="chunked"))}
BLOCKS = {"caches": (replace(FULL, kind="block_sparse"),)}
STATE = {"state_bytes_per_sequence": 8.0}
MADE_UP = replace(MI300, figures={})
PADDED = {"weight_dtype": {**MODEL.weight_dtype, "routed": "mxfp4"}}
INDEXERS = (replace(FULL, kind="sparse", layers=8), replace(FULL, kind="index", layers=2))
WHOLE = {"caches": (INDEXERS[0], replace(INDEXERS[1], layers=8))}
ONE = {"caches": (replace(FULL, kind="latent", heads=1),)}
RANKS, HELIX = {"tp": 12, "dcp": 3}, {**ONE, "role": "decode", "chip": B200}
DECODES = {**ONE, "role": "decode"}
ANY = "vllm"
# By rule: pool, layout, engine; then what runs and what does not.
RUNS = {
    "query heads": [({}, {"tp": 3}), ({}, {"tp": 4}), ({}, {"tp": 1})],
    "KV heads": [({}, {"tp": 2}), ({}, {"tp": 4}), ({}, {"tp": 12}), (LATENT, {"tp": 3})],
    "dense width over tp": [({}, {"tp": 2}), ({}, {"tp": 6}), ({}, {"dp_attention": 4}),
                            ({"inner": (InnerWidth("dense_ffn", 700, 128),)}, {"tp": 1})],
    "dense width of a dense model": [({}, {"tp": 4}), (DENSE, {"tp": 3})],
    "dense width over the stage": [({}, {"tp": 2}), ({}, {"dp_attention": 2}),
                                   (DENSE, {"tp": 2, "dp_attention": 3})],
    "shared width over tp": [({}, {"tp": 4}), ({}, {"dp_attention": 3})],
    "shared width over the stage": [({}, {"tp": 4, "dp_attention": 2, "ep": 8}),
                                    ({}, {"tp": 4, "tp_expert": 4})],
    "expert width": [({}, {"tp_expert": 3}), ({}, {"ep": 2}), (PADDED, {"tp_expert": 2})],
    "vocabulary": [({}, {"tp": 6}), ({}, {"tp": 128}), ({"vocab": 384}, {"tp": 6}),
                   ({"vocab": 385}, {"tp": 7})],
    "even experts": [({}, {"ep": 4}), ({"copies": 1}, {"ep": 3}), (DENSE, {"ep": 3}),
                     ({**DENSE, "copies": 5}, {"ep": 3}), ({"n_experts": 1}, {"ep": 1})],
    "even experts with copies": [({}, {"ep": 3}), ({"copies": 1}, {"ep": 3})],
    "copies of experts beside expert parallelism": [({}, {}), ({"copies": 1}, {"ep": 2})],
    "overlap by DeepEP": [
        ({}, {"halves": 2, "ep": 4, "dp_attention": 4}), ({}, {"dp_attention": 10, "ep": 2}),
        ({}, {"halves": 2, "ep": 8, "dp_attention": 16}),
        ({"chip": MI300}, {"halves": 2, "ep": 3, "dp_attention": 3}),
    ],
    "overlap of NVIDIA chips": [({}, {"halves": 2}), ({"chip": MI300}, {})],
    "overlap of a family": [
        ({"family": "qwen3_moe"}, {"halves": 2}, "sglang"), ({"family": "glm4_moe"}, {}, "sglang"),
    ],
    "overlap of shared indexers": [
        ({"caches": INDEXERS}, {}, "sglang"), (WHOLE, {"halves": 2}, "sglang"),
    ],
    "experts of a family whole or over all": [
        ({"family": "nemotron_h"}, {"ep": 4, "dp_attention": 4}, "sglang"),
        ({"family": "nemotron_h"}, {"tp_expert": 4, "dp_attention": 4}, "sglang"),
        ({}, {"ep": 2, "tp_expert": 2, "dp_attention": 4}, "sglang"),
    ],
    "nodes of one size": [
        ({}, {"pp": 9}), ({"machine": 8}, {"pp": 16}), ({"machine": 8}, {"tp": 4, "pp": 4}),
        ({"machine": 8}, {"tp": 2, "pp": 6}), ({"machine": 4}, {"tp": 16}),
        ({"machine": 8}, {"pp": 7}),
    ],
    "stages that decode": [
        ({"role": "decode", "stages": 4}, {"pp": 4}), ({"role": "decode", "stages": 4}, {}),
        ({"role": "prefill"}, {"pp": 3}), ({"role": "decode"}, {"pp": 3}),
    ],
    "architecture": [({}, {}), ({"family": "minimax_m3"}, {}, "sglang")],
    "no copies of experts": [({}, {})],
    "all experts or none": [({}, {"ep": 4}), ({}, {"tp_expert": 4})],
    "copies on all chips or none": [({}, {"tp": 2}), ({}, {"dp_attention": 2})],
    "copies of a dense model": [
        ({**DENSE, "family": "llama"}, {"dp_attention": 2}, "sglang"), (DENSE, {}),
        ({}, {"dp_attention": 2}), ({"n_experts": 1}, {"dp_attention": 2}),
    ],
    "no overlap": [({}, {})],
    "overlap of whole exchanges": [({}, {"halves": 2}), ({}, {"tp_expert": 2})],
    "parts of a context": [({}, {})],
    "parts of a context read alone": [({"role": "prefill"}, {"cp": 2}), ({"role": "decode"}, {})],
    "ranks of a context": [({}, RANKS), ({}, {"tp": 4}), (ONE, {"tp": 6, "dcp": 6})],
    "ranks of latent caches": [(ONE, RANKS, "sglang"), ({}, {"tp": 4}, "sglang")],
    "ranks beside windows": [({}, RANKS), (WINDOWS, {"tp": 12})],
    "ranks that share an index": [(WHOLE, {"tp": 12}, "sglang"), (ONE, RANKS, "sglang")],
    "ranks that share an index before Blackwell": [
        ({**WHOLE, "chip": B200}, RANKS), (WHOLE, {"tp": 12}),
    ],
    "kernels of ranks": [
        ({"kv_dtype": "fp8"}, RANKS), ({"kv_dtype": "fp8", "chip": MI300}, {"tp": 12}),
        ({}, RANKS), ({**ONE, "chip": MI300}, RANKS), ({**BLOCKS, "chip": MI300}, {"tp": 12}),
    ],
    "ranks that receive a cache": [
        (DECODES, {"tp": 12, "dcp": 12}), (DECODES, {"tp": 12}), (ONE, RANKS),
        ({**DECODES, "role": "prefill"}, RANKS),
    ],
    "ranks behind stages": [({**DECODES, "stages": 2}, {"tp": 12}),
                            ({**DECODES, "stages": 1}, RANKS)],
    "ranks behind parts": [({**DECODES, "parts": 2}, {"tp": 12}, "sglang"),
                           ({**DECODES, "parts": 1}, RANKS, "sglang")],
    "ranks that draft": [({"drafts": 1}, {"tp": 12}, "sglang"), (ONE, RANKS, "sglang"),
                         ({"drafts": 1, "chip": MI300}, RANKS, "sglang")],
    "Helix": [(HELIX, {"tp": 4, "dcp": 4}, "trtllm"), ({}, {"tp": 4}, "trtllm")],
    "a cache enters no pipeline": [
        ({"role": "prefill"}, {"pp": 2}), (WINDOWS, {"pp": 2}), ({"role": "decode"}, {}),
    ],
    "no drafts in a pipeline": [
        ({"drafts": 1, "role": "prefill"}, {"pp": 2}), ({}, {"pp": 2}), ({"drafts": 1}, {}),
    ],
    "a draft model beside copies": [
        ({"drafts": 2, "method": "llama-3.2-1b"}, {"tp": 2}),
        ({"drafts": 2, "method": "eagle-3"}, {"dp_attention": 2}), ({}, {"dp_attention": 2}),
    ],
    "drafts in whole rounds": [
        ({"mtp_blocks": 2, "drafts": drafts}, {}) for drafts in (0, 1, 2, 4)
    ] + [({"mtp_blocks": 0, "drafts": 3}, {}), ({"mtp_blocks": 1, "drafts": 3}, {})],
    "generation": [({}, {}, "vllm"), ({"chip": A100}, {}, "trtllm"), ({"chip": T4}, {}, "vllm")],
    "memory that is free": [({"share": 0.993}, {}), ({"share": 0.968}, {"tp": 2}, "sglang"),
                            ({}, {"tp": 2})],
    "maker": [({}, {}), ({"chip": MI300}, {}), ({"chip": MADE_UP}, {}, "trtllm")],
    "cache dtype": [({"kv_dtype": dtype}, {}) for dtype in ("bf16", "fp16", "fp8")]
    + [({"kv_dtype": "nvfp4", "chip": B200}, {})],
    "cache dtype of the checkpoint": [
        ({"stored_kv": stored, "kv_dtype": kv}, {})
        for stored, kv in (("", "bf16"), ("bf16", "bf16"), ("fp8", "fp8"), ("bf16", "fp8"))
    ],
    "FP4 arithmetic": [
        ({"weights": "nvfp4", "chip": B200}, {}, "trtllm"), ({"weights": "nvfp4"}, {}),
        ({"weights": "fp4"}, {}, "sglang"), ({"chip": A100}, {}, "trtllm"),
        ({"weights": "fp4", "chip": MI300}, {}), ({"weights": "mxfp4"}, {}, "trtllm"),
    ],
    "FP8 arithmetic": [({"weights": "fp8"}, {}), ({"chip": A100}, {})],
    "conversion": [({}, {}), ({"weights": "fp8"}, {}), ({"stored": "", "weights": "int4"}, {}),
                   ({"stored": "fp8", "weights": "fp8"}, {}, "trtllm"),
                   *[({"stored": kind, "weights": "fp8"}, {}) for kind in ("fp16", "fp32")]],
    "drafting": [
        ({}, {}), ({"method": "eagle"}, {}, "trtllm"), ({"drafts": 1, "method": "eagle-3"}, {}),
        ({"drafts": 1, "method": "llama-3.2-1b"}, {}, "sglang"),
        *[({"drafts": 1, "mtp_blocks": 1, "family": "deepseek_v3", "method": method}, {})
          for method in ("", "mtp")],
    ],
}  # fmt: skip
BREAKS = {
    "query heads": [({}, {"tp": 5}), ({}, {"tp": 8}), ({}, {"tp": 24})],
    "KV heads": [({}, {"tp": 3}), ({}, {"tp": 6})],
    "dense width over tp": [({}, {"tp": 4}), ({}, {"tp": 12}), ({}, {"tp": 768}),
                            ({"inner": (InnerWidth("dense_ffn", 700, 128),)}, {"tp": 2}),
                            ({"inner": (*MODEL.inner, InnerWidth("dense_ffn", 128, 1))},
                             {"tp": 3})],
    "dense width of a dense model": [(DENSE, {"tp": 4})],
    "dense width over the stage": [({}, {"tp": 4}), ({}, {"tp": 2, "dp_attention": 2}),
                                   (DENSE, {"tp": 2, "dp_attention": 2})],
    "shared width over tp": [({}, {"tp": 3}), ({}, {"tp": 8})],
    "shared width over the stage": [({}, {"tp": 4, "dp_attention": 2, "ep": 4, "tp_expert": 2})],
    "expert width": [({}, {"tp_expert": 2}), ({}, {"tp_expert": 6}), (PADDED, {"tp_expert": 5})],
    "vocabulary": [({}, {"tp": 5}), ({"vocab": 385}, {"tp": 6}), ({"vocab": 384}, {"tp": 7}),
                   ({}, {"tp": 768})],
    "even experts": [({}, {"ep": 3}), ({"copies": 1}, {"ep": 4}), ({"n_experts": 1}, {"ep": 2})],
    "even experts with copies": [({"copies": 1}, {"ep": 4}), ({"copies": 2}, {"ep": 8})],
    "copies of experts beside expert parallelism": [({"copies": 8}, {"tp": 4, "tp_expert": 4})],
    "overlap by DeepEP": [
        ({}, {"halves": 2, "ep": 3, "dp_attention": 3}),
        ({}, {"halves": 2, "ep": 4, "dp_attention": 12}),
    ],
    "overlap of NVIDIA chips": [({"chip": MI300}, {"halves": 2})],
    "overlap of a family": [({"family": "glm4_moe"}, {"halves": 2}, "sglang")],
    "overlap of shared indexers": [({"caches": INDEXERS}, {"halves": 2}, "sglang")],
    "experts of a family whole or over all": [
        ({"family": "nemotron_h"}, {"ep": 2, "tp_expert": 2, "dp_attention": 4}, "sglang"),
    ],
    "nodes of one size": [
        ({"machine": 8}, {"pp": 9}), ({"machine": 4}, {"dp_attention": 10}),
        ({"machine": 8}, {"tp": 4, "pp": 3}), ({"machine": 4}, {"tp": 5, "pp": 2}),
    ],
    "stages that decode": [
        ({"role": "decode", "stages": 1}, {"pp": 2}), ({"role": "decode", "stages": 4}, {"pp": 2}),
    ],
    "architecture": [({"family": "minimax_m1"}, {}), ({"family": "qwen3_5"}, {}, "trtllm")],
    "no copies of experts": [({"copies": 1}, {})],
    "all experts or none": [({}, {"ep": 2, "tp_expert": 2})],
    "copies on all chips or none": [({}, {"tp": 2, "dp_attention": 2})],
    "copies of a dense model": [
        ({**DENSE, "family": "llama"}, {"dp_attention": 2}),
        (DENSE, {"dp_attention": 2}, "sglang"),
    ],
    "no overlap": [({}, {"halves": 2})],
    "overlap of whole exchanges": [({}, {"halves": 2, "tp_expert": 2})],
    "parts of a context": [({}, {"cp": 2})],
    "parts of a context read alone": [({"role": "decode"}, {"cp": 2}), ({}, {"cp": 2})],
    "ranks of a context": [
        ({}, {"tp": 4, "dcp": 2}), ({}, {"tp": 12, "dcp": 2}), (ONE, {"tp": 6, "dcp": 4}),
    ],
    "ranks of latent caches": [({}, RANKS, "sglang")],
    "ranks beside windows": [(WINDOWS, RANKS), (CHUNKS, RANKS)],
    "ranks that share an index": [(WHOLE, RANKS, "sglang")],
    "ranks that share an index before Blackwell": [(WHOLE, RANKS)],
    "kernels of ranks": [({"chip": MI300}, RANKS), (BLOCKS, RANKS),
                         ({**ONE, "kv_dtype": "fp8", "chip": MI300}, RANKS)],
    "ranks that receive a cache": [
        (DECODES, RANKS), ({"role": "decode"}, {"tp": 12, "dcp": 12}),
        ({**DECODES, **STATE}, {"tp": 12, "dcp": 12}),
    ],
    "ranks behind stages": [({**DECODES, "stages": 2}, RANKS)],
    "ranks behind parts": [({**DECODES, "parts": 2}, RANKS, "sglang")],
    "ranks that draft": [({"drafts": 1}, RANKS, "sglang")],
    "Helix": [
        *[({**HELIX, **odd}, {"tp": 4, "dcp": 4}, "trtllm")
          for odd in ({"role": ""}, {"role": "prefill"}, {"chip": H100})],
        (HELIX, {"tp": 4, "dcp": 2}, "trtllm"),
    ],
    "a cache enters no pipeline": [
        ({"role": "decode"}, {"pp": 2}),
        *[({"role": "prefill", **mixed}, {"pp": 2}) for mixed in (WINDOWS, CHUNKS, STATE)],
    ],
    "no drafts in a pipeline": [({"drafts": 1}, {"pp": 2}),
                                ({"drafts": 1, "role": "decode"}, {"pp": 2})],
    "drafts in whole rounds": [({"mtp_blocks": 2, "drafts": drafts}, {}) for drafts in (3, 5)],
    "generation": [({"chip": V100}, {}), ({"chip": T4}, {}, "trtllm")],
    "memory that is free": [({"share": 0.994}, {}), ({"share": 0.969}, {"tp": 2}, "sglang")],
    "maker": [({"chip": MI300}, {}, "trtllm")],
    "cache dtype": [
        ({"kv_dtype": "int8"}, {}), ({"kv_dtype": "fp16"}, {}, "sglang"),
        ({"kv_dtype": "nvfp4"}, {}), ({"kv_dtype": "nvfp4", "chip": B200, **LATENT}, {}),
    ],
    "cache dtype of the checkpoint": [({"stored_kv": "fp8"}, {})],
    "FP4 arithmetic": [
        ({"weights": "nvfp4"}, {}, "trtllm"), ({"weights": "nvfp4", "chip": MI300}, {}),
        ({"weights": "fp4", "chip": MI300}, {}, "trtllm"),
    ],
    "FP8 arithmetic": [({"weights": "fp8", "chip": A100}, {})],
    "conversion": [({"weights": "fp8"}, {}, "trtllm"), ({"weights": "int4"}, {}),
                   ({"stored": "fp8", "weights": "bf16"}, {}),
                   ({"stored": "int4", "weights": "fp8"}, {})],
    "drafting": [
        ({"drafts": 1, "mtp_blocks": 1}, {}), ({"drafts": 1, "family": "deepseek_v3"}, {}),
        ({"drafts": 1, "family": "deepseek_v3", "method": "eagle"}, {}, "trtllm"),
        ({"drafts": 1, "method": "n-gram"}, {}), ({"drafts": 1, "method": "n-gram"}, {}, "sglang"),
    ],
    "a draft model beside copies": [
        ({"drafts": 2, "method": "llama-3.2-1b"}, {"dp_attention": 2}),
    ],
}  # fmt: skip
CASES = [
    (rule, *case, *([ANY] if len(case) == 2 else []), expected)
    for table, expected in ((RUNS, False), (BREAKS, True))
    for rule, cases in table.items()
    for case in cases
]


@for_all("rule", RULES)
def test_a_rule_is_broken_on_one_side_of_its_border(rule):
    """The published rule by a layout that the engine runs, and by one that it refuses."""
    verdicts = [case for case in CASES if case[0] == rule]
    assert {expected for *_, expected in verdicts} == {True, False}
    for _, changes, layout, engine, expected in verdicts:
        pool, table = pool_with(changes), engine_tables()[engine]
        broken = RULES[rule].broken(pool, Layouts.of(**layout), table)
        assert bool(np.all(broken)) is expected, (changes, layout)
        assert np.shape(broken) in ((), (1,))


def test_what_a_cache_is_called():
    """None where an engine has no such cache, or no chip for it, or the model keeps one latent."""
    tables = engine_tables()
    assert tables["vllm"].cache(pool_with({"kv_dtype": "bf16"})) == "bfloat16"
    assert tables["trtllm"].cache(pool_with({"kv_dtype": "bf16"})) == "auto"
    assert tables["sglang"].cache(pool_with({"kv_dtype": "bf16"})) == "bf16"
    own = pool_with({"kv_dtype": "bf16", "family": "deepseek_v4"})
    assert tables["sglang"].cache(own) == "bfloat16"
    assert tables["sglang"].cache(pool_with({"kv_dtype": "fp8", **LATENT})) == "fp8_e4m3"
    four = {"kv_dtype": "nvfp4", "chip": B200}
    assert tables["vllm"].cache(pool_with(four)) == "nvfp4"
    assert tables["vllm"].cache(pool_with({**four, **LATENT})) is None
    assert tables["vllm"].cache(pool_with({**four, "chip": H100})) is None


def test_a_pool_in_words():
    """Copies are experts; weights of another format than the checkpoint's are converted."""
    assert pool_with({"copies": 3}).experts == 11
    assert not pool_with({}).converted
    assert pool_with({"weights": "fp8"}).converted
    assert not pool_with({"weights": "fp8", "stored": ""}).converted
    assert not pool_with({}).hybrid
    # Sixty-four blocks of a width are whole on 1, 2 and 3 chips of six, not on four.
    assert pool_with({}).cut("dense_ffn", np.array([1, 2, 3, 4])).tolist() == [
        False, False, False, True
    ]  # fmt: skip
    assert not pool_with({}).cut("dense_ffn", np.array([4]), frozenset({"fp8"})).any()
