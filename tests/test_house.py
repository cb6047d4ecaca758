"""The shape of the house: limits and exceptions that may only shrink.

`python -m tests.house` prints the table, `--list RULE` what breaks a rule. What stands in
tests/data/house.json is what is not mended yet; nothing may be added to it.
"""

from __future__ import annotations

from tests.house.layers import contract
from tests.house.measures import FIGURES, RULES, exceptions, key, limits
from tests.loops import for_all


@for_all("figure", FIGURES, ids=lambda figure: figure.name)
def test_no_figure_grows(figure):
    """A number of the sources is at most what it was when it was last written down."""
    assert figure.count() <= limits()[figure.name]


@for_all("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_broken_only_where_it_is_written_down(rule):
    """Nothing new breaks a rule, and an exception that is no longer needed is taken out."""
    offenders = {key(one): one for one in rule.offenders()}
    allowed = set(exceptions()[rule.name])
    assert not [line for name, line in offenders.items() if name not in allowed]
    assert not allowed - offenders.keys(), "no longer needed: python -m tests.house --tighten"


def test_the_layers_of_the_linter_are_those_of_the_house():
    """At most thirteen lines of layers; the linter excuses the imports that the house does."""
    assert len(contract()["layers"]) <= 13
    assert sorted(contract()["ignore_imports"]) == exceptions()["imports that point up"]
