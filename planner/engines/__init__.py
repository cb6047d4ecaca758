"""Launch of a plan on an inference engine: options, script, manifests.

What an engine's release offers, and which facts of a plan it carries, are rows of `releases.toml`;
`engine_rules.toml`, which the search reads too, says what an engine cannot run; `export` is all
of it behind one call.
"""

from planner.engines.engine import ENGINES
from planner.engines.exports import TARGETS, Export, benchmark, export, resolve_engine

__all__ = ["ENGINES", "TARGETS", "Export", "benchmark", "export", "resolve_engine"]
