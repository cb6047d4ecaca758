"""What `planner model` prints: the make-up of a model, counted from its layers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.architecture import read_config, summary
from planner.catalogue import models
from planner.text.quantities import show

__all__ = ["described", "model_text"]

CLASSES = ("attention", "dense_ffn", "shared", "routed", "embedding", "head", "router", "other")


def described(name: str) -> dict[str, Any]:
    """The make-up of a catalogue name or of a config.json, base units.

    Raises
    ------
    InputError
        If it is neither a known name nor a file that can be counted.
    """
    if name not in models.names() and (
        Path(name).exists() or "/" in name or name.endswith(".json")
    ):
        return summary(read_config(Path(name)))
    record = models.record(name)
    return summary(models.load(name)) | {"as_of": record.as_of}


def model_text(found: Mapping[str, Any]) -> str:
    """The same on a terminal."""
    active = found["n_active"]
    lines = [
        f"{found['name']} ({found['family']}), "
        f"{found['n_layers']} layers, hidden {found['hidden']}",
        f"total parameters     {found['n_total']:>20,}",
        f"active, all          {active['all']:>20,}",
        f"  no input embedding {active['no_input_embedding']:>20,}   what FLOP are counted with",
        f"  no embedding, head {active['no_embedding_no_head']:>20,}",
        "",
        "layers",
    ]
    for kind in found["layers"]:
        mixer, window = kind["mixer"] or "nothing", kind.get("window")
        if window:
            mixer = f"{mixer} {window}" if mixer == "window" else f"{mixer}, window {window}"
        lines.append(f"  {kind['count']:>4} x {mixer} + {kind['ffn'] or 'nothing'}")
    experts = found["experts"]
    if experts["routed"]:
        lines.append(
            f"  {experts['routed']} experts, {experts['active']} of them and "
            f"{experts['shared']} shared for each token"
        )
    lines += ["", "weights"]
    for group in CLASSES:
        if found["params"][group]:
            size = show(found["weight_bytes"][group], "size")
            dtype = found["weight_dtypes"][group]
            lines.append(f"  {group:<10} {found['params'][group]:>18,}  {size:>9}  {dtype}")
    lines += [
        f"  {'in all':<10} {found['n_total']:>18,}  "
        f"{show(sum(found['weight_bytes'].values()), 'size'):>9}",
        "",
        f"KV cache             {found['kv_bytes_per_token']:,.0f} byte/token ({found['kv_dtype']})",
    ]
    for key, label in (
        ("window_bytes_per_sequence", "windows"),
        ("state_bytes_per_sequence", "state"),
    ):
        if found[key]:
            lines.append(f"{label:<20} {show(found[key], 'size')} per sequence")
    attention = found["attention_flop_per_cached_token"]
    lines.append(f"attention            {attention:,.0f} FLOP per cached token")
    if found["excluded"]:
        lines.append(f"not counted          {', '.join(found['excluded'])}")
    lines.append(f"source               {found['source']}")
    return "\n".join(lines)
