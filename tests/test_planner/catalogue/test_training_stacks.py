"""Training stacks: priors, places, bands and which one is taken."""

from math import log

import pytest

from planner.catalogue.training.training_stacks import (
    choose_training_stack,
    coefficient_priors,
    parse_stack,
    training_stack,
    training_stack_names,
    usual_adjustments,
)
from planner.text.errors import CatalogueError


def test_every_stack_has_every_coefficient_near_its_prior():
    """A fit that left physics behind would show: six of the prior's spreads."""
    priors = coefficient_priors()
    for name in training_stack_names():
        stack = training_stack(name)
        assert stack.values.keys() == priors.keys()
        for coefficient, prior in priors.items():
            off = abs(log(stack.values[coefficient] / prior.value))
            assert off < 6 * prior.spread, (name, coefficient)


def test_bands_widen_with_distance():
    for name in training_stack_names():
        stack = training_stack(name)
        for routed in (False, True):
            known = stack.band(routed=routed, model=next(iter(stack.models), ""))
            model = stack.band(routed=routed, model="never seen")
            chip = stack.band(routed=routed, model="never seen", chip="abacus")
            assert chip.low <= model.low <= known.low < 1 < known.high <= model.high <= chip.high


def test_a_routed_model_on_a_stack_of_dense_ones_has_a_band_twice_as_wide():
    stack = training_stack("llm-foundry-2023")
    dense, routed = (stack.band(routed=each, model="never seen") for each in (False, True))
    assert (routed.low, routed.high) == (dense.low**2, dense.high**2)


def test_the_usual_stack_was_fitted_on_the_chip_with_pipelines():
    assert choose_training_stack("auto", "a100").name == "aa-scaling-2023"
    assert choose_training_stack("auto", "gb300", routed=True).name == "megatron-bridge-2026"
    stack = choose_training_stack("auto", "mi300x")  # of no row
    assert choose_training_stack(stack.name, stack.chips[0]) == stack


def test_a_place_changes_its_coefficients():
    usual = next(one for one in usual_adjustments() if one.at == "flash-1")
    table = {
        "title": "", "as_of": "2024-01", "source": "", "chips": ["a100"], "rows": 0,
        "coefficients": {"k_att": 2.0}, "bands": {"dense": {"known": [0.9, 1.1, 9]}},
        "adjustments": [
            {"of": "k_att", "scope": "kernel", "at": "flash-1", "factor": usual.factor},
            {"of": "every", "scope": "era", "at": "2024", "factor": 0.5},
        ],
    }  # fmt: skip
    stack = parse_stack("made", table)
    plain, old = (stack.coefficients({"kernel": k}) for k in ("flash", "flash-1"))
    assert old["k_att"] == plain["k_att"] * usual.factor
    halved = stack.coefficients({"era": "2024"})
    assert halved["k_mat"] == plain["k_mat"] / 2
    assert halved["k_hide"] == plain["k_hide"]  # a share, no time
    assert halved["M_base"] == plain["M_base"]


def test_an_unknown_name_or_coefficient_is_refused(tmp_path):
    with pytest.raises(CatalogueError, match="did you mean 'aa-scaling-2023'"):
        training_stack("aa-scaling-2024")
    with pytest.raises(CatalogueError, match="no coefficient 'k_matt'"):
        parse_stack("made", {"coefficients": {"k_matt": 1.0}, "bands": {}})
    path = tmp_path / "serving.toml"
    path.write_text("engine = 'vllm'\n", encoding="utf-8")
    with pytest.raises(CatalogueError, match="is no training stack"):
        training_stack(str(path))


def test_a_share_above_one_is_refused():
    """14 seconds of traffic do not hide in a step of eight."""
    table = {
        "title": "", "as_of": "2024-01", "source": "", "chips": ["a100"], "rows": 0,
        "coefficients": {"k_hide": 2.08}, "bands": {"dense": {"known": [0.9, 1.1, 9]}},
    }  # fmt: skip
    with pytest.raises(CatalogueError, match=r"k_hide = 2\.08 is a share"):
        parse_stack("mine", table)


def test_a_format_that_no_row_ran_widens_the_band():
    """Twice in logarithms, as every distance that was never measured."""
    for name in training_stack_names():
        stack = training_stack(name)
        if not stack.formats:
            continue
        part, precision = stack.formats[0].split()
        routed = part == "routed"
        known = stack.band(routed=routed, precision=precision)
        strange = stack.band(routed=routed, precision="fp6")
        assert not stack.measured_in("fp6", routed=routed)
        assert strange.high == pytest.approx(known.high**2)
        assert strange.low == pytest.approx(known.low**2)
