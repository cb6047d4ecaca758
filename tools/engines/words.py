"""Words of launches of random plans, one JSON object a line, for the engines' own checks.

    python -m tools.engines.words --seeds 0-400 > words.jsonl

With the project's environment, from the root of a checkout; with --shared of long contexts, over
which chips of tp are spread. The engines are large and want others of the same packages, so each
has its own environment, into which these import without a GPU (vllm 0.33.0 and sglang 0.5.23 did
with --no-deps, torch for CPUs and what they then ask for):

    python tools/engines/vllm_checks.py words.jsonl
    python tools/engines/sglang_checks.py words.jsonl

Each prints how many launches it parsed and checked, and every refusal with its count.
"""

import argparse
import json
import sys

import planner
from planner.catalogue.models import record
from planner.engines import ENGINES, export
from planner.text.errors import Infeasible, InputError
from tests.cases.launches import question, shared


def main() -> None:
    """Solve, export for every engine that runs the plan, and print the words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-20", help="from-to, the last left out")
    parser.add_argument("--shared", action="store_true", help="chips of tp share contexts")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split("-"))
    for seed in range(first, last):
        asked = shared(seed) if given.shared else question(seed)
        try:
            plan = planner.solve(asked)
        except InputError:
            continue
        for engine in ENGINES if plan.feasible else ():
            try:
                launches = export(plan, engine).launches
            except Infeasible:
                continue
            for launch in launches:
                words = [[each.name, each.value] for each in launch.options]
                named = {key: asked[key] for key in ("model", "system")}
                row = {"seed": seed, "engine": engine, **named, "words": words}
                config = dict(record(asked["model"]).config)
                sys.stdout.write(json.dumps({**row, "config": config}) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
