"""A plan in the words of an inference engine: flags, files and manifests that start it.

launch.py      what a page makes of a plan: options, each with its reason
deployment.py  a plan in the terms that engines share
limits.py      what stops any engine; words.py  what several pages say alike
vllm.py        one page an engine: its version, its options, what it cannot run
sglang.py
trtllm.py
script.py      a launch as a script, kubernetes.py  as manifests
exports.py     all of it behind one call
"""

from planner.engines.exports import ENGINES, TARGETS, Export, export, known

__all__ = ["ENGINES", "TARGETS", "Export", "export", "known"]
