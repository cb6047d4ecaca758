"""Parts shared by families: embedding and head, lists per layer, windows, experts, MTP blocks."""

from collections.abc import Sequence
from dataclasses import replace

from planner.architecture.config_reader import MAX_LAYERS, Reader
from planner.architecture.families.traits import Shape, Windows
from planner.architecture.layers import Layer, Model, PredictionBlocks, Weight, matrix, vector
from planner.architecture.recurrent import Scan
from planner.text.errors import quote
from planner.text.tables import table

# One thing, many names: published configurations disagree on how to spell these.
_TABLE = table("planner.architecture", "config_keys.toml")
ALIASES = {name: tuple(spellings) for name, spellings in _TABLE["names"].items()}
EXPERTS, PER_TOKEN, SHARED_KEYS = ALIASES["experts"], ALIASES["per_token"], ALIASES["shared"]
HIDDEN, LAYERS, INNER = ALIASES["hidden"], ALIASES["layers"], ALIASES["inner"]
HEADS, KV_HEADS, CONTEXT = ALIASES["heads"], ALIASES["kv_heads"], ALIASES["context"]
GROUPS, FIRST_DENSE, MTP = ALIASES["groups"], ALIASES["first_dense"], ALIASES["prediction"]
WINDOW_SIZE_KEYS, PATTERNS = ALIASES["window"], ALIASES["window_pattern"]

FULL_OR_LINEAR = {"full_attention": True, "linear_attention": False}
_UNGROUPED = ("greedy", "gready")  # as DeepSeek-V2-Lite spells it


def context(reader: Reader) -> int | None:
    """The longest context a configuration states, under whichever name it gives first [token]."""
    lengths = [reader.optional(key) for key in CONTEXT]
    return next((length for length in lengths if length is not None), None)


def assemble(
    name: str,
    family: str,
    measures: Shape,
    layers: Sequence[Layer],
    *,
    extra: tuple[Weight, ...] = (),
    prediction: PredictionBlocks | None = None,
    final_norm: int | None = None,
) -> Model:
    """The model of these layers, with embedding, final norm and head around them."""
    hidden, vocab = measures.hidden, measures.vocab
    weights = [
        Weight("embed_tokens", "embedding", vocab * hidden, 0, True),
        vector("norm", "other", hidden if final_norm is None else final_norm),
        *extra,
    ]
    if measures.tied:
        # The embedding matrix is the head: stored once, multiplied with once per token.
        weights.append(Weight("lm_head", "head", 0, vocab * hidden, True))
    else:
        weights.append(matrix("lm_head", "head", hidden, vocab))
    outer = (name, family, hidden, vocab, measures.heads)
    made = Model(*outer, tuple(layers), tuple(weights), measures.tied, measures.max_context)
    return replace(made, prediction=prediction)


def full_layers(reader: Reader, count: int, every: int) -> list[bool]:
    """Per layer whether attention is full, not linear: by `layer_types`, else each `every`-th."""
    named = reader.words("layer_types", count, FULL_OR_LINEAR)
    return named or [(index + 1) % every == 0 for index in range(count)]


def scan(reader: Reader, family: str) -> Scan:
    """The scan of a state-space family, by the keys of its row."""
    row = {size: (tuple(keys), absent) for size, (keys, absent) in _TABLE["scans"][family].items()}
    return Scan(
        state_size=reader.whole(*row["state_size"]),
        kernel=reader.whole(*row["kernel"]),
        bias=reader.flag(*row["bias"]),
        conv_bias=reader.flag(*row["conv_bias"]),
        groups=reader.whole(*row["groups"]),
    )


def sparse_layers(reader: Reader, count: int, first_dense: int = 0) -> list[bool]:
    """Per layer whether its feed-forward part is a mixture, by whichever keys say so."""
    named = reader.words("mlp_layer_types", count, {"dense": False, "sparse": True})
    first = reader.whole(FIRST_DENSE, first_dense, least=0, most=MAX_LAYERS)
    last = reader.optional("moe_layer_end_index", least=0, most=MAX_LAYERS)
    frequency = reader.value("moe_layer_freq")
    listed = reader.flags("moe_layer_freq", count) if isinstance(frequency, list) else None
    if named is not None or listed is not None:
        return named or listed or []
    every = reader.whole("moe_layer_freq", 1, most=MAX_LAYERS)
    # Counted from one, unlike the other key of the same meaning.
    interval = reader.whole("moe_layer_interval", 1, most=MAX_LAYERS)
    end = count if last is None else last + 1
    return [
        first <= index < end and index % every == 0 and (index + 1) % interval == 0
        for index in range(count)
    ]


def overrides(reader: Reader, count: int) -> list[dict[str, int]]:
    """Changes of each layer's measures in `per_layer_config`, by key; empty if unchanged."""
    layers: list[dict[str, int]] = [{} for _ in range(count)]
    section = reader.section("per_layer_config")
    for key in section.keys() if section is not None else ():
        if section is None or not key.isdecimal() or len(key) > 4 or int(key) >= count:
            raise reader.fail("per_layer_config", f"names {quote(key)} of {count} layers")
        layer = section.section(key)
        for name in layer.keys() if layer is not None else ():
            if layer is not None:
                layers[int(key)][name] = layer.whole(name)
    return layers


def check_experts(reader: Reader, experts: int, active: int) -> None:
    """Raise ModelError if the active experts per token exceed the routed experts."""
    if active > experts:
        raise reader.fail(PER_TOKEN[0], f"is {active}, more than the {experts} routed experts")


def idle_experts(reader: Reader) -> int:
    """Experts that have no weights: they give nothing, their input, or a constant."""
    reader.ignore("zero_expert_type")
    return sum(reader.whole(key, 0, least=0) for key in ALIASES["idle"])


def expert_groups(reader: Reader, experts: int, active: int) -> tuple[int, int]:
    """Groups of experts, and how many of them a token may use; one of one where routing is free.

    Group-limited routing, DeepSeek-V3 report, section 2.1.2.
    """
    if reader.value(GROUPS) is False:
        reader.ignore("topk_group")
        return 1, 1
    groups = max(reader.whole(GROUPS, 1, least=0), 1)
    chosen = max(reader.whole("topk_group", groups, least=0), 1)
    if groups == 1 or reader.text("topk_method") in _UNGROUPED:
        return 1, 1
    if chosen > groups:
        raise reader.fail("topk_group", f"is {chosen}, more than the {groups} groups of experts")
    if experts % groups:
        raise reader.fail(GROUPS[0], f"is {groups}, which does not divide the {experts} experts")
    if active > experts // groups * chosen:
        raise reader.fail(
            "topk_group", f"is {chosen}: too few groups of experts for the {active} of a token"
        )
    return groups, chosen


def predict(reader: Reader, layer: Layer, hidden: int) -> PredictionBlocks | None:
    """The prediction blocks of DeepSeek-V3's kind, each a layer with a projection of its own."""
    blocks = reader.whole(MTP, 0, least=0, most=MAX_LAYERS)
    return predicting(blocks, blocks, blocks * layer.parameters, hidden)


def qwen_prediction(reader: Reader, layer: Layer, hidden: int) -> PredictionBlocks | None:
    """Qwen's prediction blocks: layers that share one projection."""
    blocks = reader.whole("mtp_num_hidden_layers", 0, least=0, most=MAX_LAYERS)
    return predicting(blocks, 1, blocks * layer.parameters, hidden)


def predicting(
    blocks: int, projections: int, parameters: int, hidden: int
) -> PredictionBlocks | None:
    """MTP blocks with `parameters` in their layers, plus projections of 2h; None if 0 blocks."""
    joined = projections * (2 * hidden * hidden + 3 * hidden)  # with three norms each
    return PredictionBlocks(blocks, parameters + joined) if blocks else None


def minimax_prediction(reader: Reader, block: Layer, hidden: int) -> PredictionBlocks | None:
    """MiniMax's prediction blocks, whose make-up is not published."""
    modules = reader.whole("num_mtp_modules", 0, least=0, most=MAX_LAYERS)
    depth = reader.whole("mtp_transformer_layers", 1, least=0, most=MAX_LAYERS)
    if not reader.flag("use_mtp", True) or not modules * depth:
        return None
    return PredictionBlocks(modules * depth, None)


_WINDOWED = dict.fromkeys(("full_attention", "attention", "global"), False)
_WINDOWED |= dict.fromkeys(("sliding_attention", "local"), True)


def windows(reader: Reader, count: int, habit: Windows) -> list[int | None]:
    """The window of each of `count` layers [token], None where attention is full."""
    named = reader.words("layer_types", count, _WINDOWED)
    size = reader.optional(WINDOW_SIZE_KEYS, least=0) or None
    if size is None and not any(reader.is_set(key) for key in WINDOW_SIZE_KEYS):
        size = habit.size
    used = habit.used_if is None or reader.flag(*habit.used_if)
    pattern = reader.value(PATTERNS)
    limit = count
    if habit.used_if is not None:
        limit = reader.whole("max_window_layers", 28, least=0, most=MAX_LAYERS)
    if not used:
        bounded = [False] * count
    elif named is not None:
        bounded = named
    elif isinstance(pattern, str):
        if not pattern or len(pattern) > MAX_LAYERS or set(pattern) - set("LG"):
            raise reader.fail(PATTERNS[0], "expected a number, or letters L (local) and G (global)")
        bounded = [pattern[index % len(pattern)] == "L" for index in range(count)]
    elif habit.every is not None and size is not None:
        every = reader.whole(PATTERNS, habit.every, most=MAX_LAYERS)
        full = 0 if habit.leading else every - 1
        bounded = [index % every != full for index in range(count)]
    else:
        bounded = [habit.always and size is not None] * count
    if named is None and habit.until:
        below = habit.until == "below"
        bounded = [each and (index < limit) == below for index, each in enumerate(bounded)]
    if any(bounded) and size is None:
        raise reader.fail(WINDOW_SIZE_KEYS[0], "is missing; layer_types names windowed layers")
    return [size if one else None for one in bounded]
