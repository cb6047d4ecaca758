"""Times and memory of training layouts: parts add up, arrays are floats, nothing beats peak."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from formulas.numerics.evaluate import scalar_program
from planner.catalogue.models import load
from planner.catalogue.systems import system
from planner.catalogue.training.training_stacks import (
    coefficient_priors,
    training_stack,
    training_stack_names,
)
from planner.problems.training.step.step_tables import equation_table
from planner.problems.training.step.step_times import MEMORY, bound_symbols, step_times
from planner.problems.training.step.training_counts import training_counts
from planner.problems.training.step.training_task import LayoutTable, TrainingTask, training_machine
from planner.text.errors import InputError
from tests.loops import for_all


def task_of(model="gpt-3-175b", system_name="hgx-a100", stack="megatron-lm-2021", **more):
    """A step of 1,536 sequences of 2,048 tokens."""
    machine = training_machine(system(system_name), more.get("precision", "bf16"))
    counts = training_counts(load(model))
    asked = {"batch": 1536, "sequence": 2048, **more}
    return TrainingTask(counts, machine, training_stack(stack), **asked)


def some_layouts(rows, columns, seed=0):
    """Rows of counts against columns of choices."""
    rng = np.random.default_rng(seed)

    def powers(top):
        return 2 ** rng.integers(0, top, (rows, 1))

    return LayoutTable.of(
        tp=powers(4), pp=powers(5), dp=powers(7), micro_batch=powers(3), cp=powers(2),
        schedule=rng.integers(0, 4, (1, columns)), recompute=rng.integers(0, 4, (1, columns)),
        zero=rng.integers(0, 4, (1, columns)), offload=rng.integers(0, 3, (1, columns)),
        sequence_parallel=rng.integers(0, 2, (1, columns)),
        overlap=rng.integers(0, 2, (1, columns)),
    )  # fmt: skip


@pytest.mark.parametrize("model", ["gpt-3-175b", "llama-3.1-405b", "deepseek-v3"])
def test_terms_and_memory_add_up(model):
    task = task_of(model, "hgx-h100", "megatron-bridge-2026", sequence=4096)
    times = step_times(task, some_layouts(40, 30))
    assert sum(times.terms.values()) == pytest.approx(times.step, rel=1e-12)
    assert all(np.all(term >= 0) for term in times.terms.values())
    assert tuple(times.memory) == MEMORY
    assert sum(times.memory.values()) == pytest.approx(times.used, rel=1e-12)
    assert np.all(times.step >= times.bound)
    assert np.array_equal(times.fits, times.used <= task.machine.memory)


def test_rows_against_columns_are_the_flat_layouts():
    task, layouts = task_of(), some_layouts(7, 5)
    whole = step_times(task, layouts, ("step", "used"))
    for index in range(35):
        one = step_times(task, layouts.at(index), ("step", "used"))
        assert one.step == pytest.approx(whole.step.flat[index], rel=1e-12)
        assert one.used == pytest.approx(whole.used.flat[index], rel=1e-12)


def test_the_kernel_is_the_trees_walked_with_floats():
    task, layouts = task_of(), some_layouts(6, 4, seed=3)
    equations, outputs = equation_table("both")
    for index in range(24):
        layout = layouts.at(index)
        symbols = {n: float(v) for n, v in bound_symbols(task, layout).items()}
        walked = scalar_program(equations, outputs, frozenset(symbols))(symbols)
        times = step_times(task, layout, ("step", "used"))
        assert times.step == pytest.approx(walked["step"], rel=1e-12)
        assert times.used == pytest.approx(walked["used"], rel=1e-12)


def test_faster_parts_of_a_machine_never_slow_a_step():
    task, layouts = task_of(), some_layouts(30, 20)
    before = step_times(task, layouts, ("step",)).step
    for part in ("hbm", "link", "card", "host"):
        machine = replace(task.machine, **{part: 2 * getattr(task.machine, part)})
        after = step_times(replace(task, machine=machine), layouts, ("step",)).step
        assert np.all(after <= before * (1 + 1e-12)), part


def test_gpt_3_has_its_published_arithmetic():
    """72·B·s·l·h²(1 + s/12h + V/12lh): Narayanan et al., the causal half of attention."""
    counts = training_counts(load("gpt-3-175b"))
    layers, width, length, vocabulary = 96, 12288, 2048, 50257
    published = 72 * length * layers * width**2
    published *= 1 + length / (12 * width) + vocabulary / (12 * layers * width)
    assert counts.flop(1, length) == pytest.approx(published, rel=1e-3)


def test_a_sliding_window_has_fewer_pairs():
    whole, windowed = (training_counts(load(m)) for m in ("llama-3.1-8b", "gpt-oss-20b"))
    assert whole.pair_flop(8192) == whole.pair_flop(65536)
    assert windowed.pair_flop(65536) < 0.7 * windowed.pair_flop(256)


def test_embedding_and_head_even_126_layers_on_8_stages():
    """Llama 3 405B: 16 layers a stage, 15 on the first and the last."""
    task = task_of("llama-3.1-405b", "hgx-h100", "megatron-bridge-2026")
    symbols = bound_symbols(task, LayoutTable.of(pp=8))
    assert [float(symbols[n]) for n in ("n_full", "n_first", "n_last")] == [16, 15, 15]
    even = bound_symbols(task, LayoutTable.of(pp=7))
    assert [float(even[n]) for n in ("n_full", "n_first", "n_last")] == [18, 18, 18]


def test_members_of_a_group_pool_their_cards():
    task = task_of(stack="megatron-lm-2021")
    layout = LayoutTable.of(tp=np.array([8, 4, 2, 1]), dp=64)
    pooled = bound_symbols(task, layout)["W_dp"]
    assert pooled.tolist() == [25e9, 50e9, 100e9, 200e9]
    flat = replace(task, stack=replace(task.stack, pooled_cards=False))
    assert bound_symbols(flat, layout)["W_dp"].tolist() == [25e9] * 4


def test_zero_3_pays_for_every_micro_batch():
    """Half the micro-batch gathers the weights twice as often."""
    task = task_of(batch=512)
    layouts = LayoutTable.of(dp=128, zero=3, micro_batch=np.array([4, 2, 1]), overlap=0)
    exposed = step_times(task, layouts, ("step", "terms")).terms["dp_exposed"]
    assert exposed[1] / exposed[0] == pytest.approx(2, rel=0.02)
    assert exposed[2] / exposed[1] == pytest.approx(2, rel=0.02)


def test_the_last_stage_is_the_worst_where_logits_are_large():
    task = task_of("llama-3.1-8b", "hgx-h100", "megatron-bridge-2026", sequence=8192)
    layout = LayoutTable.of(pp=4, dp=2, micro_batch=4, recompute="full", zero=1)
    times = step_times(task, layout)
    assert times.worst_stage == 4
    logits = 4 * 128256 * 4 * 8192 * task.coefficients["k_loss"]
    assert times.memory["logits"] == pytest.approx(logits)


def test_a_layout_in_words_and_back():
    layout = LayoutTable.of(tp=8, recompute="selective", schedule="interleaved")
    words = layout.words()
    assert (words["recompute"], words["schedule"], words["overlap"]) == (
        "selective", "interleaved", True,
    )  # fmt: skip
    assert LayoutTable.of(**words) == layout
    with pytest.raises(InputError, match="no 'tpp'"):
        LayoutTable.of(tpp=2)
    with pytest.raises(InputError, match="known: gpipe"):
        LayoutTable.of(schedule="2f2b")


ARITHMETIC = (
    "matrix", "attention", "element_wise", "quantisation", "tp", "cp", "ep", "launch", "head",
)  # fmt: skip


@for_all("stack", training_stack_names())
@for_all("model", ["llama-3.1-70b", "deepseek-v3"])
def test_communication_hides_in_no_more_time_than_there_is(stack, model):
    """Behind the backward pass of the last micro-batch; under ZeRO-2 and 3 behind every one."""
    task = task_of(model, "hgx-h100", stack, batch=1024, sequence=8192)
    layouts = some_layouts(60, 40, seed=1)
    times = step_times(task, layouts, ("step", "terms"))
    work = sum(times.terms[name] for name in ARITHMETIC)
    micro = task.batch / (layouts.dp * layouts.micro_batch)
    window = np.where(np.asarray(layouts.zero) >= 2, work, work / micro * 2 / 3)
    hidden = times.hidden["dp_hidden"]
    assert np.all(hidden <= window * (1 + 1e-9))
    assert np.all(window <= times.step)
    assert np.any(hidden > 0) == task.stack.overlaps


@for_all("stack", training_stack_names())
def test_no_collective_of_a_stack_is_faster_than_its_links(stack):
    """On every chip that it was fitted on, in every format and release."""
    fitted, priors = training_stack(stack), coefficient_priors()
    words = {scope: [x.at for x in fitted.adjustments if x.scope == scope] for scope in SCOPES}
    places = product(*(words[scope] or [""] for scope in SCOPES))
    for place in places:
        values = fitted.coefficients(dict(zip(SCOPES, place, strict=True)))
        assert all(values[name] >= prior.least for name, prior in priors.items())
    for name, prior in priors.items():
        assert fitted.values[name] <= prior.most * (1 + 1e-3)


SCOPES = ("chip", "precision", "era")


def in_flight(stage, stages, virtual, micro):
    """Most chunks of layers that a stage has run forward and not back, interleaved, run in order:
    Megatron's warm-up of 2 (stages behind) + (virtual - 1) * stages, then one each way in turn."""
    chunks = micro * virtual
    warm = min(chunks, 2 * (stages - 1 - stage) + (virtual - 1) * stages)
    ahead, most = 0, 0
    for change in [1] * warm + [1, -1] * (chunks - warm) + [-1] * warm:
        ahead += change
        most = max(most, ahead)
    return most


@for_all(("stages", "virtual"), [(2, 2), (4, 2), (8, 3), (16, 8)])
@for_all("waves", [1, 2, 4])
def test_micro_batches_in_flight_are_those_of_the_schedule(stages, virtual, waves):
    from formulas.numerics.evaluate import kernel
    from formulas.training.step_memory import waves_behind, waves_in_flight

    micro = waves * stages
    at = {"x_gpipe": 0, "n_micro": micro, "pp": stages, "n_virtual": virtual}
    for stage, equation in enumerate((waves_in_flight, waves_behind)):
        made = kernel((equation,), {"waves": equation.lhs})(**at)["waves"]
        assert made * virtual == pytest.approx(in_flight(stage, stages, virtual, micro))


@pytest.mark.parametrize(("virtual", "zero"), [(4, 1), (8, 1), (4, 2), (8, 2)])
def test_llama_405b_as_it_was_trained(virtual, zero):
    """The Llama 3 Herd of Models, table 4: 400 TFLOP/s a chip at tp 8, pp 16, dp 128 in bf16, its
    optimiser states and gradients sharded, nothing run again. A stack of the same publisher."""
    task = task_of("llama-3.1-405b", "hgx-h100", "torchtitan-2025", batch=2048, sequence=8192)
    layout = LayoutTable.of(
        tp=8, pp=16, dp=128, schedule="interleaved", virtual_stages=virtual, zero=zero,
        sequence_parallel=1,
    )  # fmt: skip
    times = step_times(task, layout)
    assert times.fits
    rate = task.counts.flop(task.batch, task.sequence) / (16384 * times.step)
    assert float(rate) == pytest.approx(400e12, rel=0.15)


@pytest.mark.parametrize(
    ("layers", "items", "pp"),
    [(40, (1, 2), 2), (40, (1, 2), 4), (80, (1, 2), 8), (12, (0, 1), 5), (40, (1, 2), 1)],
)
def test_items_are_dealt_to_stages_like_layers(layers, items, pp):
    """Dealt one by one, the first stages one more; then what is no layer is taken away."""
    before, behind = items
    kinds = ["item"] * before + ["layer"] * layers + ["item"] * behind
    least, over = divmod(len(kinds), pp)
    stages, start = [], 0
    for stage in range(pp):
        end = start + least + (stage < over)
        stages.append(kinds[start:end].count("layer"))
        start = end
    task = task_of()
    stack = replace(task.stack, stage_items=items)
    counts = replace(task.counts, n_layers=layers)
    symbols = bound_symbols(replace(task, stack=stack, counts=counts), LayoutTable.of(pp=pp))
    made = [float(symbols[name]) for name in ("n_full", "n_first", "n_last")]
    assert made == [max(stages), stages[0], stages[-1]]


def test_single_kernels_keep_every_tensor_between_them():
    """A gated layer, tensor by tensor: LLaMA's norm in 32 bits, a gate of two kernels."""
    task = task_of("llama-3.1-8b", stack="physical")
    hidden, width, queries, keys = 4096, 14336, 4096, 1024
    norm = [4 * hidden, 2 * hidden, 2 * hidden]  # its input in 32 bits, unscaled, scaled
    attention = [2 * queries, 2 * keys, 2 * keys, 2 * queries]
    gate = [2 * width] * 4  # gate, its activation, up, their product
    eager = replace(task, stack=replace(task.stack, eager=True))
    symbols = bound_symbols(eager, LayoutTable.of())
    layer = sum(float(symbols[name]) for name in ("a_whole", "a_undiv", "a_split"))
    assert layer == sum([*norm, *norm, *attention, *gate])


def test_a_stack_that_gathers_holds_logits_and_inputs_whole():
    task = task_of("llama-3.1-8b", stack="physical", batch=64)
    gathers = replace(task, stack=replace(task.stack, gathered=True))
    layouts = LayoutTable.of(tp=np.array([1, 8]), dp=8, sequence_parallel=1)
    memory = step_times(gathers, layouts).memory
    assert memory["logits"][1] == memory["logits"][0]
    divided = step_times(task, layouts).memory
    assert divided["logits"][1] == pytest.approx(divided["logits"][0] / 8)
    held = memory["activations"][1] - divided["activations"][1]
    tokens, layers = 2048, 32
    inputs = 2 * 2 * 4096 * (1 - 1 / 8)  # of two products, in 16 bits
    k_act = coefficient_priors()["k_act"].value
    assert held == pytest.approx(k_act * tokens * layers * inputs)


def test_products_of_a_format_that_never_ran_are_no_faster_than_the_best_measured():
    """No dense row of the stack ran in bf16; one in fp8 keeps what its rows say."""
    stack = training_stack("megatron-bridge-2026")
    assert not stack.measured_in("bf16", routed=False)
    place = {"chip": "h100", "precision": "bf16", "part": "dense"}
    assert 989 / stack.coefficients(place)["k_mat"] <= 794.5 * (1 + 1e-3)
    known = {"chip": "h100", "precision": "fp8", "part": "dense"}
    free = replace(stack, formats=())
    assert stack.coefficients(known) == free.coefficients(known)


@pytest.mark.parametrize(("chips", "dp", "rate"), [(8192, 64, 430e12), (16384, 128, 400e12)])
def test_the_default_stack_meets_the_rates_of_llama_405b(chips, dp, rate):
    """The Llama 3 Herd of Models, table 4; it fits where gradients are sharded as there."""
    task = task_of("llama-3.1-405b", "hgx-h100", "megatron-bridge-2026", batch=2048, sequence=8192)
    layout = LayoutTable.of(
        tp=8, pp=16, dp=dp, schedule="interleaved", virtual_stages=8, zero=2, sequence_parallel=1
    )
    times = step_times(task, layout)
    made = task.counts.flop(task.batch, task.sequence) / (chips * times.step)
    assert float(made) == pytest.approx(rate, rel=0.15)
    assert times.fits or dp == 64
