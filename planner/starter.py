"""Commented scenarios for `planner init`: each loads as it is."""

from __future__ import annotations

from planner.errors import CatalogueError

__all__ = ["KINDS", "starter"]

SERVING = """\
# A serving question: what does it cost to serve this model, and how should it be laid out?
# Quantities carry their unit: 3.35 TB/s, 80 GB, 64 GiB, 400 Gbit/s, $3.50/hour, 50 ms.
# GB is 1e9 bytes and GiB 1024^3; Gb is a bit, GB a byte. A bare number is in base units.

problem: serving
model: deepseek-v3               # a name (planner catalog models), a path to a config.json,
                                 # or varied in place: {like: deepseek-v3, kv: fp8}
system: hgx-h200                 # a name (planner catalog systems),
                                 # or varied in place: {like: hgx-h200, memory_bandwidth: 5 TB/s}
chips: 32                        # chips paid: a number, a list, or {from: 8, to: 64}
# price: $3.50/hour              # per chip; the catalogue's median with its date when left out

workload:
  input_tokens: 4000             # or a distribution: {mean: 4000, cv: 0.8},
  output_tokens: 1000            # or {quantiles: {p50: 800, p90: 2500}}
  # demand: 10 requests/s        # or 5000 tokens/s of output: sizes a fleet
  # concurrency: 256             # a closed loop: this many requests always in flight
  # cached_input: 30%            # share of the input served from a prefix cache

promises:                        # what must hold; each is optional
  ttft: 2 s                      # time to first token
  tpot: 50 ms                    # time per output token
  # e2e: 60 s                    # the whole request

# choose:                        # limits on, or values of, any choice
#   tp: [1, 2, 4, 8]
#   mode: aggregated             # aggregated, disaggregated, or one phase alone: decode, prefill
#   weights: fp8

# current: {tp: 8, replicas: 4, batch: 64}    # your own layout, evaluated beside the chosen one

objective: cost                  # cost, throughput, latency or energy
estimate: calibrated             # bound (nothing beats it) or calibrated (what to expect)
profile: auto
assumptions: physical            # or lecture
"""

KINDS = {"serving": SERVING}


def starter(kind: str = "serving") -> str:
    """The text of a starter scenario; raises CatalogueError for an unknown kind."""
    if kind not in KINDS:
        raise CatalogueError.unknown("kind of scenario", kind, KINDS)
    return KINDS[kind]
