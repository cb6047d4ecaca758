"""Scenarios whose pre-training is laid out, and the model of a size as a file."""

import json

from planner.architecture.counts import model_sizes
from planner.laws.model_family import ModelFamily

RUN = {
    "chips": 256, "global_batch": "2 M tokens", "sequence": 4096,
    "choose": {"cp": 1, "pp": 1, "zero": [1, 3], "recompute": ["none", "full"],
               "offload": "none", "overlap": True, "sequence_parallel": True},
}  # fmt: skip


def budget(**changes):
    """A budget in USD of a quality, trained on 256 H100 by their best layout."""
    return {
        "problem": "budget",
        "quality": {"like": {"n_active": 13e9}},
        "inference": {"tokens": 2e12},
        "phases": {
            "pretrain": {"system": "hgx-h100", "training": RUN, **changes},
            "inference": {"system": "hgx-h100", "mfu": 0.2},
        },
        "objective": "cost",
        "draws": 0,
    }


def member(n_active):
    """The member of the family rule, counted."""
    return model_sizes(ModelFamily().member(n_active))


def written(model, folder):
    """A Hugging Face configuration of a dense model that is counted, as a file."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": model.hidden,
        "num_hidden_layers": model.n_layers, "num_attention_heads": model.n_q_heads,
        "num_key_value_heads": model.n_kv_heads, "head_dim": 128,
        "intermediate_size": model.params["dense_ffn"] // (3 * model.hidden * model.n_layers),
        "vocab_size": model.vocab, "tie_word_embeddings": model.tied, "torch_dtype": "bfloat16",
    }  # fmt: skip
    path = folder / f"{model.n_active['all']}.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def usd_per_mtok(n_active, folder):
    """What `problem: training` charges for a token of the member's training [USD per million]."""
    import planner

    run = dict(RUN)
    question = {
        "problem": "training", "model": written(member(n_active), folder), "system": "hgx-h100",
        "work": {"global_batch": run.pop("global_batch"), "sequence": run.pop("sequence")},
        "objective": "cost", **run,
    }  # fmt: skip
    return planner.solve(question).cost
