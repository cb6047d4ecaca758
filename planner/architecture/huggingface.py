"""From a Hugging Face `config.json` to a model's layers.

An unknown `model_type`, or a structural key that nobody read, is refused by name: a model is never
guessed. Vision and audio towers, and blocks for multi-token prediction, are left out and named.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planner.architecture.checkpoints import read_quantization
from planner.architecture.config_reader import Reader
from planner.architecture.layers import Model
from planner.architecture.quantization import DTYPES, torch_dtype
from planner.text.errors import Mistake, ModelError, did_you_mean, quote

_MAX_BYTES = 16 * 2**20
# Keys that a nested language model takes from the outer level if it lacks them; alternative
# names of a key share a tuple.
_INHERITED = (("tie_word_embeddings",), ("torch_dtype", "dtype"), ("quantization_config",))
_TOWERS = {
    "vision_config": "vision tower",
    "audio_config": "audio tower",
    "vision_tower_config": "vision tower",
    "speech_config": "audio tower",
}
# Keys that hold the language model in a checkpoint with other towers.
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_GUESSING = "; its layers cannot be built without guessing"
_ELSEWHERE = ("add_cross_attention", "is_encoder_decoder")


def read_config(path: str | Path) -> Model:
    """The model that the configuration file at `path` describes.

    A quantisation file beside it is read too: `X_hf_quant_config.json` beside `X_config.json`, or
    `hf_quant_config.json` in the same folder. Raises ModelError, with the file and the key, for
    anything that cannot be turned into layers without guessing.
    """
    file = Path(path)
    config = _load(file)
    beside = _quantisation_file(file)
    stem = file.stem.removesuffix("_config")
    name = file.resolve().parent.name if file.name == "config.json" else stem
    return from_config(
        config,
        name or stem,
        quant=_load(beside) if beside is not None else None,
        where=str(path),
        source=str(path),
    )


def from_config(
    config: Mapping[str, object],
    name: str,
    quant: Mapping[str, object] | None = None,
    *,
    where: str | None = None,
    source: str = "",
) -> Model:
    """Model described by a configuration's keys; `quant` is hf_quant_config.json, if any.

    `where` names the configuration in errors, `source` says where it was published.
    """
    from planner.architecture.families import FAMILIES  # read when a configuration is

    where = where if where is not None else name
    if not isinstance(config, Mapping):
        raise ModelError(f"{where}  is {quote(config)}, expected a mapping of keys")
    values, kind, excluded = _language_part(config, where)
    reader = Reader(values, where)
    reader.value("model_type")
    for key in _ELSEWHERE:
        if reader.flag(key, False):
            raise reader.fail(key, "is true; only decoder-only language models are counted")
    dtype = reader.text(("dtype", "torch_dtype"), "bfloat16")
    precision = torch_dtype(dtype)
    if precision is None:
        names = ", ".join(DTYPES)
        raise reader.fail("torch_dtype", f"is {quote(dtype)}, expected a format such as {names}")
    expert = reader.value("expert_dtype")
    quantization_config = reader.value("quantization_config")
    model = FAMILIES[kind](reader, name)
    unknown = reader.finish()
    if model.prediction is not None:
        excluded.append(f"multi-token prediction ({model.prediction.blocks} blocks)")
    quantization = read_quantization(quantization_config, quant, expert, where)
    paths = [path for path, weight in model.all_weights() if weight.linear]
    quantization, unmatched = quantization.placed(paths, len(model.layers))
    return replace(
        model,
        precision=precision,
        quantization=quantization,
        excluded=tuple(excluded),
        source=source,
        warnings=(*_unknown_keys(unknown), *unmatched),
    )


def _language_part(
    config: Mapping[str, object], where: str
) -> tuple[dict[str, object], str, list[str]]:
    """The keys of the language model, its type, and what of the checkpoint is left out."""
    from planner.architecture.families import FAMILIES, WRAPPERS

    outer = Reader(config, where)
    kind = outer.text("model_type")
    key = next((key for key in _NESTED if config.get(key) is not None), None)
    nested = outer.section(key) if key is not None else None
    if nested is None or key is None:
        if not kind:
            raise outer.fail("model_type", "is missing; expected the name of a family")
        named = WRAPPERS.get(kind, kind)
        if named not in FAMILIES:
            raise outer.fail("model_type", _unknown(kind))
        return {**config, "model_type": named}, named, _towers(config)
    inner_keys = nested.keys()
    inner = {name: nested.value(name) for name in inner_keys}
    for names in _INHERITED:
        if all(inner.get(name) is None for name in names):
            inner.update({name: config[name] for name in names if outer.has(name)})
        outer.ignore(*names)
    outer.ignore(*(name for name in config if str(name).endswith("_config")))
    beside = outer.beside(inner)
    excluded = _towers(config) + ([f"projector or tower ({', '.join(beside)})"] if beside else [])
    named = nested.text("model_type") or WRAPPERS.get(kind) or kind
    if any(inner.get(deeper) is not None for deeper in _NESTED):
        values, named, more = _language_part(inner, nested.where)
        return values, named, excluded + more
    named = WRAPPERS.get(named, named)
    if named not in FAMILIES:
        raise nested.fail("model_type", _unknown(named) if named else "is missing")
    return {**inner, "model_type": named}, named, excluded


def _unknown_keys(keys: list[str]) -> tuple[str, ...]:
    if not keys:
        return ()
    more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
    names = ", ".join(quote(key) for key in keys[:8])
    return (f"nobody reads {names}{more} of the configuration: taken to change no weight or cache",)


def _unknown(kind: str) -> str:
    from planner.architecture.families import FAMILIES, REFUSED_FAMILIES, WRAPPERS

    hint = did_you_mean(kind, (*FAMILIES, *WRAPPERS))
    if kind in REFUSED_FAMILIES:
        return f"{quote(kind)} is not counted: {REFUSED_FAMILIES[kind]}"
    return f"{quote(kind)} is not a known family{hint or _GUESSING}"


def _towers(config: Mapping[str, object]) -> list[str]:
    return [
        f"{tower} ({key})" for key, tower in _TOWERS.items() if isinstance(config.get(key), Mapping)
    ]


def _quantisation_file(file: Path) -> Path | None:
    prefix = file.name.removesuffix("config.json") if file.name.endswith("_config.json") else ""
    for name in (f"{prefix}hf_quant_config.json", "hf_quant_config.json"):
        candidate = file.with_name(name)
        if candidate != file and candidate.is_file():
            return candidate
    return None


def _load(file: Path) -> dict[str, object]:
    """One JSON mapping, refused rather than half read."""
    try:
        if file.is_dir():
            raise _refused(file, "is a directory, expected a config.json")
        if file.exists() and not file.is_file():
            raise _refused(file, "is not a regular file, expected a config.json")
        if file.stat().st_size > _MAX_BYTES:
            raise _refused(file, "is larger than 16 MiB, expected a config.json")
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _refused(file, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise _refused(file, "is not text in UTF-8, expected JSON") from error
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise _refused(file, "is nested too deeply, expected a config.json") from error
    except json.JSONDecodeError as error:
        raise _refused(file, f"is not JSON: {error.msg}", error.lineno, error.colno) from error
    except ValueError as error:
        raise _refused(file, str(error)) from error
    if not isinstance(value, dict):
        raise _refused(file, f"holds {quote(value)}, expected a mapping of keys")
    return value


def _refused(file: Path, message: str, *place: int) -> ModelError:
    line, column = place or (None, None)
    return ModelError(Mistake(str(file), line, column, "", message))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {quote(key)} is given twice")
            seen.add(key)
    return values
