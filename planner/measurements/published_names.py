"""Published spellings of chips, models and number formats in the catalogue's words.

A model id is resolved by its parts (organisation, name, size, release, format), never by a list of
the ids that one table happens to hold. `aliases.toml` keeps what no rule can tell; an unknown name
is refused by name instead of guessed. A model that no entry holds is named by the path of its
configuration, with the id that it stands for after a number sign: `New_config.json#org/New-FP8`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict

from planner.architecture import Model, from_config, model_sizes
from planner.architecture.counts import ModelSizes
from planner.architecture.huggingface import read_config
from planner.architecture.quantization import DTYPES
from planner.catalogue.chips import MATH, Chip, chip, chip_names
from planner.catalogue.models import load, model_names, record
from planner.text import tables
from planner.text.errors import InputError, ModelError, did_you_mean, quote

CONFIG = re.compile(r"(.+\.json)(?:#(.+))?")  # a configuration, and the id that it stands for

RELEASE = re.compile(r"\d{4}|\d{6,8}|v\d+\.\d+|\d+k")  # 0528, 20250826, v0.1, 8k


class BadRow(InputError):  # noqa: N818 - an answer, raised
    """A row cannot be put into the catalogue's words; the message is the reason."""


@dataclass(frozen=True)
class NamedModel:
    """A catalogue entry, and the format that the published id names (None where it names none).

    Where no entry is meant, `config` is the path of the configuration.
    """

    name: str
    weights: str | None
    config: str = ""


class PublishedShape(TypedDict):
    """A model that no configuration is published of: a configuration, and where it is published."""

    config: Mapping[str, object]
    source: str


@dataclass(frozen=True)
class Aliases:
    """The table of names: published ones to the catalogue's, and facts that no rule can tell."""

    tunings: Sequence[str]
    chips: Mapping[str, str]
    machines: Mapping[str, str]
    models: Mapping[str, str]
    same_shape: Mapping[str, str]
    quantised: Mapping[str, str]
    formats: Mapping[str, str]
    words: Mapping[str, str]
    engines: Mapping[str, str]
    released: Mapping[str, str]
    overlaps: Mapping[str, int]
    shapes: Mapping[str, PublishedShape]


@cache
def aliases() -> Aliases:
    """The table of names."""
    return Aliases(**tables.table("planner.measurements", "aliases.toml"))


@cache
def resolve_chip(name: str) -> Chip:
    """The catalogue's chip for a published spelling; raises BadRow for one without figures."""
    chips = aliases().chips
    if name in chips:
        return chip(chips[name])
    wanted = _chip_words(name)
    for spelling in (*chips, *chip_names()):
        if _chip_words(spelling) == wanted:
            return chip(chips.get(spelling, spelling))
    raise BadRow(f"no chip figures for {quote(name)}")


def row_machine(chip_name: str) -> str | None:
    """The machine whose network joins chips of a kind; None where the catalogue has none."""
    return aliases().machines.get(chip_name)


def half_batches(words: str, layout: Mapping[str, int] | None) -> int:
    """Number of overlapped half-batches in a run; 1 if its table does not state it.

    Raises BadRow for an unknown word, or if nothing was sent that a half could hide.
    """
    halves = aliases().overlaps.get(words.strip().lower() or "none")
    if halves is None:
        raise BadRow(f"unknown overlap {quote(words)}")
    if halves > 1 and layout is not None and min(layout["dp_attention"], layout["ep"]) == 1:
        raise BadRow("two batches overlap, but no experts are spread over copies of attention")
    return halves


def number_format(name: str) -> str:
    """A number format in the catalogue's words; raises BadRow for an unknown one."""
    formats, text = {**{x: x for x in DTYPES}, **aliases().formats}, name.strip()
    for spelling in (text, text.lower()):
        if spelling in formats:
            return formats[spelling]
    raise BadRow(f"unknown number format {quote(name)}")


@cache
def resolve_model(published: str) -> NamedModel:
    """The catalogue entry that a published id names.

    The organisation is left off, letters are made small, then words at the end that name a tuning,
    a release or a format are left off until an entry is met. An entry that holds the format itself
    (`qwen3-32b-fp8`) wins over the plain one. Raises BadRow if no entry is met.
    """
    table = aliases()
    path = CONFIG.fullmatch(published)
    if path is not None:
        config, meant = path.groups()
        file = Path(config)
        folder = file.resolve().parent.name if file.name == "config.json" else ""
        words = _words((folder or file.stem.removesuffix("_config")).replace("--", "/", 1))
        described = words if meant is None else _words(meant)
        formats = [aliases().words[word] for word in described if word in aliases().words]
        while len(words) > 1 and words[-1] in aliases().words:
            words.pop()
        return NamedModel("-".join(words), formats[-1] if formats else None, config)
    if published in table.shapes:
        return NamedModel(published, None)
    if published in table.models:
        return NamedModel(table.models[published], None)
    entry = match_name(published, _entries())
    if entry is None:
        hint = did_you_mean(published.rsplit("/", maxsplit=1)[-1].lower(), model_names())
        put = hint or "; a folder with its config.json can be given by --models"
        raise BadRow(f"no shape for the model {quote(published)}{put}")
    formats = [aliases().words[word] for word in _words(published) if word in aliases().words]
    quantised = any(entry.endswith(f"-{each}") for each in formats)
    return NamedModel(entry, None if quantised or not formats else formats[-1])


def catalogue_name(published: str) -> str | None:
    """Name of the catalogue entry of a published id; None if not found."""
    try:
        return resolve_model(published).name
    except BadRow:
        return None


def is_entry(published: str) -> bool:
    """True if a catalogue entry has the name of a published id without its organisation."""
    table = aliases()
    listed = published in table.shapes or published in table.models
    return listed or letters(published.rstrip("/").split("/")[-1]) in _entries()


@cache
def published_sizes(
    model: str, weights: str | None, kv: str | None, activations: str | None = None
) -> ModelSizes:
    """Sizes of a published model name in the given formats, None meaning the checkpoint's own.

    A checkpoint that is published in the wanted format, or in a narrower one, is taken as it is.
    """
    table, named = aliases(), resolve_model(model)
    weights = weights or named.weights
    if named.name in table.shapes:
        shape = table.shapes[named.name]
        layers: Model = from_config(
            shape["config"], named.name, where=named.name, source=shape["source"]
        )
        return model_sizes(layers, weights, kv, activations)
    if named.config:
        try:
            layers = read_config(named.config)
        except ModelError as why:
            raise BadRow(" ".join(str(why).partition(" (known:")[0].split())) from None
        return model_sizes(layers, None if _holds(layers, weights) else weights, kv, activations)
    entry, weights = resolve_checkpoint(model, weights)
    return model_sizes(load(entry), weights, kv, activations)


@cache
def resolve_checkpoint(model: str, weights: str | None) -> tuple[str, str | None]:
    """Catalogue entry of a published model in a format, and the format left to quantise to.

    The format is None where the entry's own is as narrow. Raises BadRow if no entry is met.
    """
    name = resolve_model(model).name
    quantised = aliases().quantised.get(f"{name} {weights}")
    if quantised is None and f"{name}-{weights}" in model_names():
        quantised = f"{name}-{weights}"
    if quantised or _holds(load(name), weights):
        return quantised or name, None
    return name, weights


def sizes_on_chip(chip: Chip, model: str, weights: str | None, kv: str | None) -> ModelSizes:
    """`published_sizes` as a chip computes them: formats only stored are multiplied in bf16."""
    stored = published_sizes(model, weights, kv)
    unit = MATH.get(stored.activation_dtype, stored.activation_dtype)
    return stored if unit in chip.flops else published_sizes(model, weights, kv, "bf16")


@cache
def base_architecture(name: str) -> str:
    """The entry whose shape a model shares, so that tunings of one shape count as one model."""
    shared: str | None = aliases().same_shape.get(name)
    if shared is not None:
        return shared
    if name in model_names() and record(name).like:
        return base_architecture(record(name).like)
    for ending in ("-fp8", "-nvfp4"):
        if name.endswith(ending) and name.removesuffix(ending) in model_names():
            return base_architecture(name.removesuffix(ending))
    return name


def _holds(layers: Model, weights: str | None) -> bool:
    if weights is None:
        return True
    counted = model_sizes(layers, None, None)
    main = "routed" if counted.n_experts else "dense_ffn"
    name = counted.weight_dtype.get(main, "bf16")
    own_bytes, wanted = DTYPES[name].bytes, DTYPES[weights].bytes
    return name == weights or own_bytes <= wanted < DTYPES["bf16"].bytes


def spellings(published: str) -> list[str]:
    """Letters of a published name: whole, then without words that do not describe the shape.

    That is a vendor that the name repeats, and tunings, releases and formats at its end.
    """
    words, vendor = _words(published), letters(published.rpartition("/")[0])
    spelled = [letters("".join(words))]
    while len(words) > 1 and _empty(words[-1]):
        words.pop()
    spelled.append(letters("".join(words)))
    if len(words) > 1 and words[0] in vendor:
        spelled.append(letters("".join(words[1:])))
    return list(dict.fromkeys(spelled))


def match_name(published: str, entries: Mapping[str, str]) -> str | None:
    """Look up an id among entries by their `letters`; None if not found.

    The last words are left off while they say nothing of the shape.
    """
    words = _words(published)
    for start in range(min(2, len(words))):  # a leading `meta` or `nvidia` repeats the vendor
        rest = words[start:]
        formats = [word for word in rest if word in aliases().words]
        while rest:
            for ending in ([aliases().words[formats[-1]]] if formats else []) + [""]:
                name = letters("".join(rest) + ending)
                if name in entries:
                    return entries[name]
            # Active parameters and experts, as in 17b-16e, are part of no entry's name.
            ending_words = 2 if re.search(r"\d+b-\d+e$", "-".join(rest)) else 1
            if ending_words == 1 and not _empty(rest[-1]):
                break
            rest = rest[:-ending_words]
    return None


@cache
def _entries() -> Mapping[str, str]:
    table = aliases()
    entries = {letters(name): name for name in (*model_names(), *table.shapes)}
    return entries | {letters(name): entry for name, entry in table.models.items()}


def _words(published: str) -> list[str]:
    name = published.strip().rstrip("/").split("/")[-1].lower().replace("quantized.", "quantized-")
    return [word for word in re.split(r"[-_ :]+", name) if word]


def _empty(word: str) -> bool:
    return (
        word in aliases().tunings or word in aliases().words or RELEASE.fullmatch(word) is not None
    )


def letters(name: str) -> str:
    """Normalise a name to lower-case letters, digits and dots, equal for all its spellings."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _chip_words(name: str) -> str:
    text = name.lower().replace("‑", "-")
    text = re.sub(r"nvidia|amd|instinct|geforce|virtualized|tensor core|gpu|\(.*?\)", " ", text)
    text = re.sub(r"\b\d+\s*(gb|gib)\b|\bhbm\w*|\bsxm\d?\b|_sxm\d?\b|-sxm\b", " ", text)
    return re.sub(r"[^a-z0-9]", "", text)
