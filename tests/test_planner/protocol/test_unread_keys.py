"""Every kind that reads a model's configuration says, once, which of its keys nobody reads."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

import planner
from planner.engines.fit_question import FitOptions, fit
from tests.paths import ROOT

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
    "unsloth_fixed": True,
}  # fmt: skip
WORDS = "nobody reads 'unsloth_fixed'"
WHERE = {
    "serving": ["model", "system=hgx-h100", "chips=8"], "training": ["model"], "rl": ["model"],
    "cache": ["model"], "prices": ["given.model", "given.n_active=null"],
    "fleet": ["models.chat.model"],
}  # fmt: skip


@pytest.fixture
def config(tmp_path):
    """A configuration with a key that means nothing to weights or caches."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", WHERE)
def test_every_kind_says_it_once(kind, config):
    """In the warnings, and in the notes that faces print."""
    key, *more = WHERE[kind]
    starter = files("planner.problems") / kind / "starter.yaml"
    plan = planner.solve(Path(str(starter)), sets=[f"{key}={config}", *more])
    assert sum(WORDS in words for words in plan.warnings) == 1
    assert sum(WORDS in note.text for note in plan.answer.notes) == 1


def test_a_buying_question_says_it_once(config):
    """Make or buy is a serving question with hosts."""
    of = ROOT / "examples" / "buy-glm-4.6.yaml"
    plan = planner.solve(of, sets=[f"model={config}", "buy.model=llama-3.1-8b"])
    assert sum(WORDS in words for words in plan.warnings) == 1


def test_a_fit_says_it_once(config):
    """Of options alone."""
    options = FitOptions(model=str(config), system="hgx-h100", tp=1)
    assert sum(WORDS in note for note in fit(None, options).notes) == 1
