"""The scenario file: text with positions, checked into a frozen `Scenario` in base units.

tree.py        plain values with a place each
yaml.py        YAML 1.2 events to a tree, with limits
fields.py      the kinds of value a field may hold
workload.py    lengths, demand, promises
choices.py     layouts, formats and modes, free or limited
references.py  model and system: a name, a file, or a description
budget.py      BudgetScenario: the question of token budgets
lifecycle.py   LifecycleScenario: a model from its first token to its last answer
schema.py      Scenario, and what its values must agree on
mistakes.py    what is wrong, each with its place
changes.py     PATH=VALUE from the command line
loading.py     file, standard input or mapping to Scenario
output.py      Scenario to plain data, and its JSON Schema
"""

from planner.problems.budget.question import BudgetScenario
from planner.problems.lifecycle.question import LifecycleScenario
from planner.problems.serving.question import PROBLEMS, Document, Scenario
from planner.scenario.changes import ALIASES, changed
from planner.scenario.keys.choices import Choose, Current, PoolChoice, Speculation
from planner.scenario.keys.machines import SystemDescription
from planner.scenario.keys.models import ModelDescription
from planner.scenario.keys.references import File
from planner.scenario.keys.workload import Demand, Distribution, Promises, Workload
from planner.scenario.loading import checked, load, opened, read
from planner.scenario.schema_document import json_schema, resolved
from planner.scenario.tree import Place, Tree

__all__ = [
    "ALIASES",
    "PROBLEMS",
    "BudgetScenario",
    "Choose",
    "Current",
    "Demand",
    "Distribution",
    "Document",
    "File",
    "LifecycleScenario",
    "ModelDescription",
    "Place",
    "PoolChoice",
    "Promises",
    "Scenario",
    "Speculation",
    "SystemDescription",
    "Tree",
    "Workload",
    "changed",
    "checked",
    "json_schema",
    "load",
    "opened",
    "read",
    "resolved",
]
