"""What a contributor's row or room lacks is told as such: no fault of ours."""

import pytest

from planner.catalogue import scaling_laws
from planner.laws.law_forms import get_form
from planner.scenario import kinds
from planner.text.errors import CatalogueError, InputError
from planner.text.tables import table


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"form": "chinchila"}, "law.hoffmann-2022.form: unknown form 'chinchila'; did you mean"),
        ({"form": None}, "law.hoffmann-2022.form: unknown form 'None'"),
        ({"coefficients": None}, "law.hoffmann-2022: "),
        ({"scope": None, "extra": 3}, "law.hoffmann-2022: "),
    ],
)
def test_a_row_that_is_no_law_is_named(monkeypatch, change, words):
    """Form, coefficients and keys of a law of the catalogue."""
    rows = table("planner.catalogue", "laws.toml")
    row = {**next(iter(rows["law"].values())), **change}
    law = {"hoffmann-2022": {key: value for key, value in row.items() if value is not None}}
    monkeypatch.setattr(scaling_laws, "table", lambda *_: rows | {"law": law})
    scaling_laws._laws.cache_clear()
    with pytest.raises(CatalogueError) as refused:
        scaling_laws.law_names()
    scaling_laws._laws.cache_clear()
    assert words in str(refused.value)


def test_a_form_without_equations_is_named():
    """A form of the table that nobody has written down yet."""
    with pytest.raises(CatalogueError, match="unknown form of law 'kapplan'; did you mean"):
        get_form("kapplan")


def test_a_kind_of_one_file_has_no_starter(monkeypatch):
    """`planner init` of it says what is missing; a kind that there is not, which there are."""
    monkeypatch.setitem(kinds.PROBLEM_PACKAGES, "toy", "tests.cases.toy")
    with pytest.raises(InputError, match=r"the kind toy has no starter: .* starter\.yaml"):
        kinds.starter("toy")
    with pytest.raises(CatalogueError, match="unknown kind of scenario"):
        kinds.starter("nothing")
