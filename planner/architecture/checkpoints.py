"""Reading how a published checkpoint is quantised: `quantization_config`, `hf_quant_config.json`.

Recognised: fine-grained and per-tensor FP8, MXFP4, compressed-tensors with 2:4 sparsity, NVIDIA
ModelOpt, AMD Quark, GPTQ, AWQ, AutoRound, TorchAO, HQQ, bitsandbytes. A method, an algorithm or a
bit width not known here is refused by name.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from planner.architecture.quantization import DTYPES, FORMATS, Patterns, Precision, Quantization
from planner.text.errors import ModelError, quote

_MAX_NAMES = 200_000
_MAX_EXPRESSION = 300
# A repeated group with a repetition inside takes exponential time on the wrong text.
_RUNAWAY = re.compile(r"\([^()]*[*+}][^()]*\)[*+{]")

_ALL = ["Linear"]  # what compressed-tensors calls every linear layer
_FP8, _NVFP4, _MXFP4 = DTYPES["fp8"], DTYPES["nvfp4"], DTYPES["mxfp4"]


def read_quantization(
    config: object, beside: object, expert_dtype: object, where: str
) -> Quantization:
    """Quantisation read from `quantization_config` or, without it, from hf_quant_config.json.

    `expert_dtype` is DeepSeek-V4's format of the routed experts. Raises ModelError for a method,
    algorithm or format that is not known.
    """
    settings = _mapping(config, f"{where}  quantization_config")
    outer = _mapping(beside, f"{where}  hf_quant_config.json")
    sidecar = _mapping(outer.get("quantization", outer), f"{where}  hf_quant_config.json")
    values = settings or sidecar
    place = f"{where}  {'quantization_config' if settings else 'hf_quant_config.json'}"
    quantization = _read(values, place) if values else Quantization()
    cache = _cache(settings, place) or _cache(sidecar, place) or quantization.cache
    experts = quantization.experts
    if expert_dtype is not None:
        if expert_dtype not in ("fp4", "fp8", "bf16"):
            raise ModelError(
                f"{where}  expert_dtype: is {quote(expert_dtype)}, expected fp4, fp8 or bf16"
            )
        # DeepSeek-V4 stores its FP4 experts in MXFP4 blocks (arXiv 2606.19348).
        experts = {"fp4": _MXFP4, "fp8": quantization.default, "bf16": None}[expert_dtype]
    return replace(quantization, experts=experts, cache=cache)


def _read(values: Mapping[str, object], place: str) -> Quantization:
    method = values.get("quant_method")
    if method is None and "quant_algo" in values:
        method = "modelopt"
    if method in ("fp8", "fbgemm_fp8"):
        return _fp8(values, place)
    if method == "mxfp4":
        unquantized = _patterns(values, ("modules_to_not_convert",), place)
        return Quantization("mxfp4", experts=_MXFP4, unquantized=unquantized)
    if method == "compressed-tensors":
        return _compressed_tensors(values, place)
    if isinstance(method, str) and method.startswith("modelopt"):
        plain = Quantization(
            "modelopt", unquantized=_patterns(values, ("exclude_modules", "ignore"), place)
        )
        algorithm = values.get("quant_algo")
        if algorithm is None:
            return plain
        if algorithm == "MIXED_PRECISION":
            chosen, activation = _layer_by_layer(values, place)
            return replace(plain, chosen=chosen, activation=activation)
        precision, activation = _algorithm(algorithm, place)
        return replace(plain, default=precision, activation=activation)
    if isinstance(method, str) and method in _METHODS:
        return _METHODS[method](values, place)
    methods = f"fp8, mxfp4, compressed-tensors, modelopt, {', '.join(_METHODS)}"
    raise ModelError(f"{place}.quant_method: is {quote(method)}, expected one of {methods}")


def _fp8(values: Mapping[str, object], place: str) -> Quantization:
    block = values.get("weight_block_size")
    precision = _FP8
    if block is not None:
        sides = block if isinstance(block, list) else []
        if len(sides) != 2 or not all(type(side) is int and 0 < side <= 65536 for side in sides):
            raise ModelError(f"{place}.weight_block_size: expected two whole numbers")
        precision = _FP8.with_scales(sides[0] * sides[1], Fraction(4), math.lcm(*sides))
    unquantized = _patterns(values, ("modules_to_not_convert", "ignored_layers"), place)
    chosen = _layer_by_layer(values, place)[0]
    return Quantization("fp8", precision, unquantized=unquantized, chosen=chosen, activation=_FP8)


def _compressed_tensors(values: Mapping[str, object], place: str) -> Quantization:
    groups = _mapping(values.get("config_groups"), f"{place}.config_groups")
    default, activation, chosen = None, None, []
    for key in sorted(groups):
        here = f"{place}.config_groups.{key}"
        group = _mapping(groups[key], here)
        weights = _mapping(group.get("weights"), f"{here}.weights")
        form = str(group.get("format") or values.get("format"))
        precision = _sparse(_scheme(weights, form, here), values, place)
        inputs = group.get("input_activations")
        if isinstance(inputs, Mapping):
            activation = _scheme(inputs, "", here)
        targets = group.get("targets", ["Linear"])
        if isinstance(targets, list) and "Linear" in targets:
            default = precision
        else:
            chosen.append((_patterns(group, ("targets",), here), precision))
    unquantized = _patterns(values, ("ignore",), place)
    if not groups and values.get("sparsity_config"):
        default = _sparse(DTYPES["bf16"], values, place)
        unquantized = _patterns(_mapping(values["sparsity_config"], place), ("ignore",), place)
    return Quantization(
        "compressed-tensors",
        default,
        unquantized=unquantized,
        chosen=tuple(chosen),
        head=True,
        activation=activation,
    )


def _layer_by_layer(
    values: Mapping[str, object], place: str
) -> tuple[tuple[tuple[Patterns, Precision], ...], Precision | None]:
    """Formats given module by module; activations keep their own format where any group does."""
    layers = _mapping(values.get("quantized_layers"), f"{place}.quantized_layers")
    names: dict[Precision, list[str]] = {}
    inputs: set[Precision | None] = set()
    for module, entry in layers.items():
        layer = _mapping(entry, f"{place}.quantized_layers")
        precision, activation = _algorithm(layer.get("quant_algo"), place)
        names.setdefault(precision, []).append(str(module))
        inputs.add(activation)
    chosen = tuple((Patterns(tuple(modules)), precision) for precision, modules in names.items())
    return chosen, inputs.pop() if len(inputs) == 1 else None


def _grouped_integers(values: Mapping[str, object], place: str) -> Quantization:
    """GPTQ and AWQ: one 16-bit scale and one zero point of the weights' width per group."""
    method, bits = str(values["quant_method"]), values.get("bits", values.get("w_bit"))
    group = values.get("group_size", values.get("q_group_size", 128))
    if type(group) is not int or not (group == -1 or 0 < group <= 65536):
        raise ModelError(f"{place}.group_size: is {quote(group)}, expected 1 to 65536, or -1")
    precision = _made(f"int{bits}", group, f"{place}.bits", zeros=True)
    if values.get("checkpoint_format", "") == "marlin-24" or values.get("is_marlin_24_format"):
        precision = _sparse(precision, {"format": "marlin-24"}, place)
    unquantized = _patterns(values, ("modules_to_not_convert",), place)
    rules = _mapping(values.get("dynamic"), f"{place}.dynamic")
    # GPTQModel rules: a minus excludes the named layers, a plus changes their settings.
    left = tuple(f"re:{rule[2:]}" for rule in rules if rule.startswith("-:"))
    if len(left) < len(rules):
        raise ModelError(f"{place}.dynamic: only rules that begin with -: are read")
    unquantized = Patterns((*unquantized.names, *left))
    head = values.get("lm_head") is True
    return Quantization(method, precision, unquantized=unquantized, head=head)


def _by_module(plain: Quantization, modules: Mapping[str, Precision | None]) -> Quantization:
    left = tuple(name for name, form in modules.items() if form is None)
    chosen = tuple((Patterns((name,)), form) for name, form in modules.items() if form is not None)
    return replace(plain, unquantized=Patterns((*plain.unquantized.names, *left)), chosen=chosen)


def _quark(values: Mapping[str, object], place: str) -> Quantization:
    """AMD Quark (quark.docs.amd.com, QConfig): formats of all, and of modules by pattern."""
    if values.get("layer_type_quant_config"):
        raise ModelError(f"{place}.layer_type_quant_config: is not read; expected none")

    def spec(entry: object, part: str, here: str) -> Precision | None:
        settings = _mapping(_mapping(entry, here).get(part), f"{here}.{part}")
        block, mixed = settings.get("block_size"), settings.get("dtype") == "mx"
        if isinstance(block, list) and len(block) == 2 and all(type(x) is int for x in block):
            return _FP8.with_scales(block[0] * block[1], Fraction(4), max(block))
        named = str(settings.get("mx_element_dtype" if mixed else "dtype")).split("_")[0]
        group = settings.get("group_size") or (32 if mixed else None)
        zeros = settings.get("symmetric") is False
        return _made(named, group, f"{here}.{part}", zeros=zeros) if settings else None

    common = values.get("global_quant_config")
    unquantized = _patterns(values, ("exclude",), place)
    here = f"{place}.global_quant_config"
    default, inputs = spec(common, "weight", here), spec(common, "input_tensors", here)
    layers = _mapping(values.get("layer_quant_config"), f"{place}.layer_quant_config")
    caches = _mapping(values.get("kv_cache_quant_config"), f"{place}.kv_cache_quant_config")
    caches_as = [spec(entry, "output_tensors", f"{place}.{name}") for name, entry in caches.items()]
    plain = Quantization(
        "quark", default, unquantized=unquantized, head=True, activation=inputs,
        cache=caches_as[0] if caches_as else None,
    )  # fmt: skip
    modules = {name: spec(entry, "weight", f"{place}.{name}") for name, entry in layers.items()}
    return _by_module(plain, modules)


def _auto_round(values: Mapping[str, object], place: str) -> Quantization:
    """Intel AutoRound (github.com/intel/auto-round): `extra_config` changes single modules."""

    def spec(settings: Mapping[str, object], here: str) -> Precision | None:
        bits, group, kind, symmetric = (
            settings.get(key, values.get(key, usual))
            for key, usual in (
                ("bits", 4),
                ("group_size", 128),
                ("data_type", "int"),
                ("sym", True),
            )
        )
        named = f"{str(kind).rstrip('0123456789')}{bits}"
        return None if bits == 16 else _made(named, group, here, zeros=symmetric is False)

    extra = _mapping(values.get("extra_config"), f"{place}.extra_config")
    modules = {
        # A name with marks of an expression is one.
        f"re:{name}" if re.search(r"[*+|()\\^$]", name) else name: spec(
            _mapping(settings, f"{place}.extra_config"), f"{place}.extra_config.{name}"
        )
        for name, settings in extra.items()
    }
    head = values.get("quant_lm_head") is True
    return _by_module(Quantization("auto-round", spec({}, f"{place}.bits"), head=head), modules)


def _torchao(values: Mapping[str, object], place: str) -> Quantization:
    """TorchAO (docs.pytorch.org/ao): one type, or types by module, under old names or new."""
    if values.get("include_input_output_embeddings"):
        raise ModelError(f"{place}.include_input_output_embeddings: is not read; expected false")
    quant_type, place = values.get("quant_type"), f"{place}.quant_type"
    arguments = _mapping(values.get("quant_type_kwargs"), f"{place}_kwargs")

    def spec(entry: object) -> tuple[Precision | None, Precision | None]:
        if entry is None:
            return None, None
        typed = isinstance(entry, Mapping)
        data = _mapping(_mapping(entry, place).get("_data"), place) if typed else arguments
        named = _mapping(entry, place).get("_type") if typed else entry
        row = FORMATS["torchao"].get(str(named).removesuffix("Config").replace("_", "").lower())
        if row is None:
            names = ", ".join(FORMATS["torchao"])
            raise ModelError(
                f"{place}: is {quote(named)}, expected one of {names}, in any spelling"
            )
        form, group = DTYPES[row["weights"]], data.get("group_size", row.get("group"))
        if "group" in row and type(group) is int and group > 0:
            form = form.with_scales(group, Fraction(row["scales"]))
        return form, DTYPES[row["activations"]] if "activations" in row else None

    quant_type = (
        quant_type.get("default", quant_type) if isinstance(quant_type, Mapping) else quant_type
    )
    data = quant_type.get("_data") if isinstance(quant_type, Mapping) else None
    listed = data.get("module_fqn_to_config", data.get("fqn_to_config")) if data else None
    modules = dict(_mapping(listed, place)) or {"_default": quant_type}
    default, activation = spec(modules.pop("_default", None))
    unquantized = _patterns(values, ("modules_to_not_convert",), place)
    plain = Quantization("torchao", default, unquantized=unquantized, activation=activation)
    return _by_module(plain, {name: spec(entry)[0] for name, entry in modules.items()})


def _hqq(values: Mapping[str, object], place: str) -> Quantization:
    """HQQ (github.com/mobiusml/hqq): scale and zero of 16 bits a group, for all or by module."""
    settings, place = _mapping(values.get("quant_config"), place), f"{place}.quant_config"
    modules: dict[str, Precision | None] = {}
    for name, entry in (
        {"": settings}.items() if "weight_quant_params" in settings else settings.items()
    ):
        spec = _mapping(_mapping(entry, place).get("weight_quant_params"), f"{place}.{name}")
        named, group = f"int{spec.get('nbits')}", spec.get("group_size", 64)
        modules[name] = _made(named, group, f"{place}.{name}", scales=Fraction(4))
    unquantized = _patterns(values, ("skip_modules",), place)
    return _by_module(Quantization("hqq", modules.pop("", None), unquantized=unquantized), modules)


def _bitsandbytes(values: Mapping[str, object], place: str) -> Quantization:
    """Blocks of 64 weights of 4 bits share a scale, itself of 8 bits where quantised twice."""
    unquantized = _patterns(values, ("llm_int8_skip_modules",), place)
    four, eight = values.get("load_in_4bit") is True, values.get("load_in_8bit") is True
    if four == eight:
        raise ModelError(f"{place}.load_in_4bit: expected one of load_in_4bit and load_in_8bit")
    if eight:
        return Quantization("bitsandbytes", DTYPES["int8"], unquantized=unquantized)
    twice = values.get("bnb_4bit_use_double_quant") is True
    # A second scale of four bytes for every 256 of the first.
    scale = 1 + Fraction(4, 256) if twice else Fraction(4)
    precision = DTYPES["int4"].with_scales(64, scale)
    return Quantization("bitsandbytes", precision, unquantized=unquantized)


_METHODS: Mapping[str, Callable[[Mapping[str, object], str], Quantization]] = {
    "gptq": _grouped_integers, "awq": _grouped_integers, "quark": _quark,
    "auto-round": _auto_round, "torchao": _torchao, "hqq": _hqq, "bitsandbytes": _bitsandbytes,
}  # fmt: skip


def _sparse(precision: Precision, values: Mapping[str, object], place: str) -> Precision:
    """Format with 2:4 sparsity if `sparsity_config` or Marlin-24 declares it, else unchanged.

    compressed-tensors' sparse-24-bitmask keeps half the values and a bit for each weight, Marlin-24
    half and two bits for each that is kept: a bit a weight in both.
    """
    sparsity = _mapping(values.get("sparsity_config"), f"{place}.sparsity_config")
    form = "marlin-24" if values.get("format") == "marlin-24" else sparsity.get("format", "dense")
    if form == "dense":
        return precision
    if form not in ("marlin-24", "sparse-24-bitmask") or sparsity.get("targets", _ALL) != _ALL:
        expected = "expected dense, marlin-24 or sparse-24-bitmask of all Linear"
        raise ModelError(f"{place}.sparsity_config.format: is {quote(form)}, {expected}")
    saved = DTYPES[precision.name].bytes / 2 - Fraction(1, 8)
    return replace(precision, bytes=precision.bytes - saved)


def _made(
    named: str, group: object, place: str, *, zeros: bool = False, scales: Fraction = Fraction(2)
) -> Precision:
    """The format of a type such as `int4`, `fp8` or `mx_fp4`: scales [byte] a group, and zeros."""
    kind, bits = named.rstrip("0123456789").replace("float", "fp").lstrip("u"), named[-1:]
    if bits == "4" and kind in ("fp", "mx_fp", "nv_fp") and group in (None, 16, 32):
        return _NVFP4 if kind == "nv_fp" or (kind == "fp" and group == 16) else _MXFP4
    if bits == "8" and kind == "fp":
        return _FP8
    if bits not in ("4", "8") or kind != "int":
        raise ModelError(f"{place}: is {quote(named)}, expected 4 or 8 bits, float or int")
    plain = DTYPES[named.lstrip("u")]
    if type(group) is not int or group <= 0:
        return plain
    return plain.with_scales(group, scales + (Fraction(int(bits), 8) if zeros else 0))


def _scheme(values: Mapping[str, object], form: str, place: str) -> Precision:
    bits, kind, group = values.get("num_bits"), values.get("type"), values.get("group_size")
    if form.startswith("nvfp4") or (bits == 4 and kind == "float" and group == 16):
        return _NVFP4
    if form.startswith("mxfp4") or (bits == 4 and kind == "float" and group == 32):
        return _MXFP4
    if bits == 8 and kind in ("float", "int"):
        return DTYPES["fp8" if kind == "float" else "int8"]
    if bits == 4 and kind == "int":
        if type(group) is int and 0 < group <= 65536:
            return DTYPES["int4"].with_scales(group, Fraction(2))
        return DTYPES["int4"]
    raise ModelError(
        f"{place}: {quote(bits)} bits of type {quote(kind)}, expected 4 or 8 bits, float or int"
    )


def _algorithm(name: object, place: str) -> tuple[Precision, Precision | None]:
    """ModelOpt's formats of weights, and of activations (None: the checkpoint's own)."""
    algorithms = FORMATS["algorithms"]
    if not isinstance(name, str) or name not in algorithms:
        names = ", ".join(algorithms)
        raise ModelError(f"{place}.quant_algo: is {quote(name)}, expected one of {names}")
    row = algorithms[name]
    weights = DTYPES[row["weights"]]
    if "group" in row:
        weights = weights.with_scales(row["group"], Fraction(row["scales"]), row.get("block"))
    return weights, DTYPES[row["activations"]] if "activations" in row else None


def _cache(values: Mapping[str, object], place: str) -> Precision | None:
    named = values.get("kv_cache_quant_algo", values.get("kv_cache_scheme"))
    if named is None:
        return None
    if isinstance(named, Mapping):
        return _scheme(named, "", f"{place}.kv_cache_scheme")
    if isinstance(named, str) and named.lower() in ("fp8", "int8", "nvfp4"):
        return DTYPES[named.lower()]
    raise ModelError(f"{place}.kv_cache_quant_algo: is {quote(named)}, expected FP8 or NVFP4")


def _patterns(values: Mapping[str, object], keys: tuple[str, ...], place: str) -> Patterns:
    names: list[str] = []
    for key in keys:
        listed = values.get(key) or []
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise ModelError(f"{place}.{key}: expected a list of module names")
        names += listed
    if len(names) > _MAX_NAMES:
        raise ModelError(f"{place}.{keys[0]}: has {len(names)} entries, expected {_MAX_NAMES}")
    for name in names:
        if name.startswith("re:") and (len(name) > _MAX_EXPRESSION or _RUNAWAY.search(name)):
            raise ModelError(f"{place}.{keys[0]}: the expression {quote(name)} is too complex")
    try:
        return Patterns(tuple(names))
    except re.error as error:
        raise ModelError(f"{place}.{keys[0]}: {error} in an expression") from error


def _mapping(value: object, place: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(f"{place}: is {quote(value)}, expected a mapping")
    return value
