"""No model, engine version or script is told apart by its name where that could change a time.

What a published script set is data by the runs that it made (`published_scripts.toml`), and what an
engine of a year does is data by its name (`engine_traits.toml`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulas.nomenclature import sources
from planner.catalogue.models import model_names
from tests.loops import for_all
from tests.paths import ROOT

# Formats of configurations, wording, claims of a lecture, a server's documents and what is cited
# hold names and change no time.
ASIDE = (
    "planner/architecture", "planner/claims", "planner/pages", "planner/report", "planner/scenario",
    "formulas/nomenclature",
)  # fmt: skip
CITED = {source.key for source in vars(sources).values() if isinstance(source, sources.Source)}
FAMILIES = sorted({re.match(r"[a-z]+", name)[0] for name in model_names()} - {"phi"})
MODEL = re.compile(
    rf"\b({'|'.join(FAMILIES)})(?![.\w])|\b({'|'.join(FAMILIES)}|phi-)-?v?\d", re.IGNORECASE
)
VERSION = re.compile(
    r"^v?\d+\.\d+\.\d+(rc\d+|\.post\d+)*$|^(vllm|sglang|trtllm|llama\.cpp).*\d{4}$"
)
SCRIPT = re.compile(
    r"inferencex|semianalysis|benchmark_serving|bench_serving|dsr1|mlperf|dashboard"
    r"|^serving_(runs|steady|more)|^m0\d{4}$",
    re.IGNORECASE,
)


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What may be looked up or compared: every string without a blank, keywords and attributes.

    Sentences and docstrings say something, and are no keys.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if not re.search(r"\s", node.value.strip()):
                yield node.lineno, node.value
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.Name) and node.id not in CITED:
            yield node.lineno, node.id


def suspects(text: str) -> list[str]:
    """Names that a source could tell apart, with their lines."""
    return [
        f"{line}: {word}"
        for line, word in words(ast.parse(text))
        if MODEL.search(word.replace("_", "-")) or VERSION.search(word) or SCRIPT.search(word)
    ]


def test_no_condition_names_a_model_a_version_or_a_script():
    """Every source of both packages, but for those that only read configurations or speak."""
    sources = [*(ROOT / "planner").rglob("*.py"), *(ROOT / "formulas").rglob("*.py")]
    assert len(sources) > 300
    listed = {
        str(path.relative_to(ROOT)): names_there
        for path in sources
        if not str(path.relative_to(ROOT)).startswith(ASIDE)
        and (names_there := suspects(path.read_text(encoding="utf-8")))
    }
    assert not listed


@for_all(
    "source",
    [
        "x = 2 if row.model.startswith('deepseek') else 1",
        "if name == 'qwen3-32b': t *= 2",
        "FACTOR = {'llama-3.1-8b': 1.3}",
        "if version in ('1.2.0rc6.post3', '0.5.1'): t += 1",
        "if source == 'InferenceX': poll = 30",
        "DRAFTS = {'1.1.0rc2.post2': 3}",
        "if engine == 'trtllm-2024': t = 1",
        "SLOW = {'deepseek-v3'}\nif model in SLOW: t *= 2",
        "t *= FACTORS.get('gpt-oss-120b', 1)",
        "FACTOR = dict(qwen3_32b=1.3)",
        "if 'DeepSeekV3' in architecture: t = 1",
        "if model_type == 'deepseek_v3': t *= 2",
        "if name == 'phi-4': t *= 2",
        "if path.name == 'serving_runs.csv': t *= 2",
        "if row.id == 'm01820': t *= 2",
        "LLAMA = 1.3\nt *= LLAMA",
    ],
)
def test_such_conditions_are_seen(source):
    """The test would see each of the ways in which names used to change times."""
    assert suspects(source)


@pytest.mark.parametrize("source", ["if engine == 'trtllm': x = 1", "if kind == 'latent': x = 2"])
def test_engines_and_kinds_of_attention_may_be_told_apart(source):
    """Engines are told apart by families and traits; attention by what it keeps."""
    assert not suspects(source)


def test_the_paths_that_are_left_aside_are_there():
    """A folder that moves is looked at again."""
    assert all((Path(ROOT) / part).is_dir() for part in ASIDE)
