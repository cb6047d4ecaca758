"""How do I start it? A plan as the launch of an inference engine: options, script, manifests.

What each engine's release offers is a row of `releases.toml`; a page per engine turns a deployment
into a launch or says why it cannot; `export` is all of it behind one call.
"""

from planner.engines.exports import ENGINES, TARGETS, Export, engine_of, export

__all__ = ["ENGINES", "TARGETS", "Export", "engine_of", "export"]
