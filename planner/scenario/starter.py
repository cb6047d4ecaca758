"""Commented scenarios for `planner init`: each loads as it is."""

from __future__ import annotations

from planner.text.errors import CatalogueError

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

BUDGET = """\
# A budget's question: how large a model, and how many tokens for each phase of its life?
# Counts are written 13e9, 13B or "2 T tokens". Give quality (the least cost is sought)
# or cost (the best loss is).

problem: budget
law: besiroglu-2024              # a scaling law (planner catalog laws), or a file of your own
quality:
  like: {n_active: 13B}          # as good as a compute-optimal model of this size,
                                 # or {loss: 2.05}
# cost: 1e24 FLOP                # in place of quality; or a sum of money, $5M

inference:
  tokens: 2e12                   # served over the model's life, or a demand:
  # rate: 50e6 tokens/s
  # lifetime: 60 days            # or forever
  # growth: 20 %/month           # of the rate
  # discount: 0.1                # per year
  # obsolescence: 50%            # chance that it is overtaken and serves nothing

# rl: {tokens: 1e11, k: 3}       # k FLOP per parameter and token: 2 rollouts alone, 6 trained on
# data: {unique: 2e12}           # beyond it tokens repeat, as far as the law knows what that does
# choose: {sparsity: [1, 8, 32]} # N_total/N_active, where the law knows it

phases:                          # dollars need a chip, its price and its utilisation
  pretrain:  {system: hgx-h100, mfu: 40%}
  rl:        {system: hgx-h100, mfu: 20%}
  inference: {system: hgx-h100, mfu: 20%}
  # each may have its own price: {system: hgx-h200, mfu: 20%, price: $2.50/hour}

objective: cost                  # cost (USD) or flop
"""

LIFECYCLE = """\
# A model's whole life: which model, trained on how many tokens, served how, at the least cost?
# Serving is planned for the very model that is chosen, so the price of a token is an outcome.

problem: lifecycle
law: besiroglu-2024              # a scaling law (planner catalog laws), or a file of your own;
                                 # with sparsity: besiroglu-2024 + clark-2022-s-base
quality:
  like: {n_active: 13B}          # as good as a compute-optimal model of this size,
                                 # or {loss: 2.05}
inference:
  tokens: 2e13                   # served over the model's life, input and output together,
  # rate: 5e6 tokens/s           # or a demand: with it the chips that serve are counted
  # lifetime: 1 year
  # growth: 0.5                  # per year

family: {attention: gqa}         # the family rule with gqa or mla (planner/budgets/family.py),
                                 # or {like: llama-3.1-70b}: one model at other sizes
# choose: {sparsity: [1, 8, 32], smallest: 1B, largest: 200B}

serving:                         # one unit, as in problem: serving
  system: hgx-h200               # or a list; the cheapest is taken
  chips: [1, 2, 4, 8]
  workload: {input_tokens: 3000, output_tokens: 600}
  promises: {ttft: 2 s, tpot: 50 ms}
  choose: {weights: fp8}
  # utilisation: 60%             # share of the paid time in which the units are full

phases:                          # without mfu: the share of the peak that a published run reached
  pretrain: {system: hgx-h100, duration: 60 days}
  # rl: {system: hgx-h100, mfu: 20%}

# rl: {tokens: 1e11, k: 3}
# data: {unique: 2e12}           # tokens that differ from each other
"""

KINDS = {"serving": SERVING, "budget": BUDGET, "lifecycle": LIFECYCLE}


def starter(kind: str = "serving") -> str:
    """The text of a starter scenario; raises CatalogueError for an unknown kind."""
    if kind not in KINDS:
        raise CatalogueError.unknown("kind of scenario", kind, KINDS)
    return KINDS[kind]
