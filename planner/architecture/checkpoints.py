"""Reading how a published checkpoint is quantised: `quantization_config`, `hf_quant_config.json`.

Recognised: fine-grained and per-tensor FP8, MXFP4, compressed-tensors, NVIDIA ModelOpt, GPTQ, AWQ,
bitsandbytes. A method, an algorithm or a bit width not known here is refused by name.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from planner.architecture.module_names import Patterns
from planner.architecture.quantization import DTYPES, FORMATS, Precision, Quantization
from planner.text.errors import ModelError, quoted

_MAX_NAMES = 200_000
_MAX_EXPRESSION = 300
# A repeated group with a repetition inside takes exponential time on the wrong text.
_RUNAWAY = re.compile(r"\([^()]*[*+}][^()]*\)[*+{]")

_FP8, _NVFP4, _MXFP4 = DTYPES["fp8"], DTYPES["nvfp4"], DTYPES["mxfp4"]


def read_quantization(
    config: object, beside: object, expert_dtype: object, where: str
) -> Quantization:
    """The quantisation that `quantization_config` (`given`) and the file beside it describe.

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
                f"{where}  expert_dtype: is {quoted(expert_dtype)}, expected fp4, fp8 or bf16"
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
        return _modelopt(values, place)
    if method in ("gptq", "awq"):
        return _grouped_integers(values, method, place)
    if method == "bitsandbytes":
        return _bitsandbytes(values, place)
    methods = "fp8, mxfp4, compressed-tensors, modelopt, gptq, awq or bitsandbytes"
    raise ModelError(f"{place}.quant_method: is {quoted(method)}, expected {methods}")


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
        precision = _scheme(weights, str(group.get("format") or values.get("format")), here)
        inputs = group.get("input_activations")
        if isinstance(inputs, Mapping):
            activation = _scheme(inputs, "", here)
        targets = group.get("targets", ["Linear"])
        if targets == ["Linear"]:
            default = precision
        else:
            chosen.append((_patterns(group, ("targets",), here), precision))
    unquantized = _patterns(values, ("ignore",), place)
    return Quantization(
        "compressed-tensors",
        default,
        unquantized=unquantized,
        chosen=tuple(chosen),
        head=True,
        activation=activation,
    )


def _modelopt(values: Mapping[str, object], place: str) -> Quantization:
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


def _grouped_integers(values: Mapping[str, object], method: str, place: str) -> Quantization:
    bits = values.get("bits", values.get("w_bit"))
    group = values.get("group_size", values.get("q_group_size", 128))
    if bits not in (4, 8) or type(group) is not int or not (group == -1 or 0 < group <= 65536):
        raise ModelError(f"{place}.bits: is {quoted(bits)}, expected 4 or 8 bits in groups")
    # One 16-bit scale and one zero point of `bits` per group.
    overhead = Fraction(2) + Fraction(bits, 8)
    plain = DTYPES[f"int{bits}"]
    precision = plain if group == -1 else plain.with_scales(group, overhead)
    unquantized = _patterns(values, ("modules_to_not_convert",), place)
    return Quantization(
        method, precision, unquantized=unquantized, head=values.get("lm_head") is True
    )


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
        f"{place}: {quoted(bits)} bits of type {quoted(kind)}, expected 4 or 8 bits, float or int"
    )


def _algorithm(name: object, place: str) -> tuple[Precision, Precision | None]:
    """ModelOpt's formats of weights, and of activations (None: the checkpoint's own)."""
    algorithms = FORMATS["algorithms"]
    if not isinstance(name, str) or name not in algorithms:
        names = ", ".join(algorithms)
        raise ModelError(f"{place}.quant_algo: is {quoted(name)}, expected one of {names}")
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
    raise ModelError(f"{place}.kv_cache_quant_algo: is {quoted(named)}, expected FP8 or NVFP4")


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
            raise ModelError(f"{place}.{keys[0]}: the expression {quoted(name)} is too complex")
    try:
        return Patterns(tuple(names))
    except re.error as error:
        raise ModelError(f"{place}.{keys[0]}: {error} in an expression") from error


def _mapping(value: object, place: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(f"{place}: is {quoted(value)}, expected a mapping")
    return value
