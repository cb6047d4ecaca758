"""Questions of reinforcement learning that are quick to answer."""


def question(**changes):
    """Qwen3-32B on 32 H100, GRPO-like; `work` is changed key by key."""
    work = {"rollouts": 256, "global_batch": 128, "prompt": 100, "answer": 1500, "most": 4096}
    return {
        "problem": "rl", "model": "qwen3-32b", "system": "hgx-h100", "chips": 32,
        "work": {**work, **changes.pop("work", {})}, "rollout": {"tp": 4, "weights": "bf16"},
        "training": {"choose": {"cp": 1, "tp": 4, "recompute": "full", "offload": "none"}},
        **changes,
    }  # fmt: skip
