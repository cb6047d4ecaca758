"""The equations of a training step beside published forms of them."""

import pytest

from formulas.numerics.evaluate import kernel
from formulas.training import bubbles, step_memory
from formulas.training import step_time as step
from tests.loops import for_all

ONE_LAYER = {
    "a_whole": 10.0, "a_undiv": 0.0, "a_split": 24.0, "a_soft": 5.0, "a_routed": 0.0, "x_moe": 0.0,
    "cp": 1.0,
}  # fmt: skip


def activations(tp, sp, selective, heads=96, width=12288, length=2048):
    """Activations of one layer over s·b·h, of the widths of GPT-3 with one sequence."""
    equation = step_memory.layer_activations.numpy()
    values = {
        **ONE_LAYER, "a_whole": 10.0 * width, "a_split": 24.0 * width, "a_soft": 5.0 * heads,
        "D_rank": length, "L_train": length, "b_micro": 1.0, "tp": tp, "x_sp": sp,
        "x_softmax": selective,
    }  # fmt: skip
    return equation(**values) / (length * width)


@for_all("tp", [1, 2, 8])
@for_all("sp", [0, 1])
@for_all("selective", [0, 1])
def test_activations_are_those_of_korthikanti(tp, sp, selective):
    """34 + 5as/h alone, 10 + 24/t + 5as/(ht) tensor parallel, all over t in sequence, no 5as/h."""
    softmax = 0 if selective else 5 * 96 * 2048 / 12288
    published = (34 + softmax) / tp if sp else 10 + (24 + softmax) / tp
    assert activations(tp, sp, selective) == pytest.approx(published, rel=1e-12)


def test_the_plain_form_is_the_general_one_on_one_chip():
    plain = step_memory.plain_activations.numpy()(
        b_one=1.0, D_rank=2048.0, one_token=1.0, h_width=12288.0, n_heads=96.0, L_train=2048.0,
        one_seq=1.0,
    )  # fmt: skip
    assert plain / (2048 * 12288) == pytest.approx(activations(1, 0, 0), rel=1e-12)


def test_logits_take_a_gigabyte_per_2048_tokens():
    logits = step_memory.logits_memory.numpy()(k_loss=1.0, v_head=4 * 128e3, D_rank=2048, n_vocab=1)
    assert logits == pytest.approx(1.05e9, rel=2e-3)


@pytest.mark.parametrize(
    ("gpipe", "virtual", "waves"), [(0, 1, 8.0), (1, 1, 64.0), (0, 3, 8 * (1 + 7 / 24))]
)
def test_microbatches_in_flight(gpipe, virtual, waves):
    value = step_memory.waves_in_flight.numpy()(x_gpipe=gpipe, n_micro=64, pp=8, n_virtual=virtual)
    assert value == pytest.approx(waves)


def test_few_microbatches_are_all_in_flight():
    value = step_memory.waves_in_flight.numpy()(x_gpipe=0, n_micro=3, pp=8, n_virtual=1)
    assert value == 3


@pytest.mark.parametrize(
    ("equation", "virtual", "zero_bubble"),
    [
        (bubbles.bubble_time, 1, 0),
        (bubbles.bubble_time_interleaved, 4, 0),
        (bubbles.bubble_time_zb_h1, 1, 1),
    ],
)
@pytest.mark.parametrize("again", [0, 1])
def test_bubbles_of_equal_stages_are_those_of_the_schedules(equation, virtual, zero_bubble, again):
    """Stages of 12 s: a forward pass is a third, or with recomputation a quarter twice."""
    passes = 3 + again
    pass_time = 12.0 / passes
    published = equation.numpy()(
        n_stages=8, n_virtual=virtual, t_fwd=pass_time, t_bwd=pass_time * (1 + again),
        t_wgt=pass_time,
    ) if virtual > 1 else equation.numpy()(
        n_stages=8, t_fwd=pass_time, t_bwd=pass_time * (1 + again), t_wgt=pass_time
    )  # fmt: skip
    ours = step.bubble_of_a_step.numpy()(
        T_chain=96.0,
        T_slow=12.0,
        n_virtual=virtual,
        x_zero_b=zero_bubble,
        n_passes=passes,
        x_trained=1,
    )
    assert ours == pytest.approx(published)


@for_all(
    ("zero", "trained", "bytes_per_parameter"),
    [(0, 1, 4 + 4), (1, 1, 4 + 2), (2, 1, 16 * 4 + 2), (3, 1, 16 * 4 + 16 * 2 * 2),
     (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 16 * 2 * 2)],
)  # fmt: skip
def test_zero_levels_on_the_wire(zero, trained, bytes_per_parameter):
    """Gradients of 4 bytes, weights of 2, 16 micro-batches; frozen weights are but gathered."""
    wire = step.wire_bytes.numpy()(
        b_wire=4, b_weight=2, n_micro=16, x_shard=zero >= 1, x_grads=zero >= 2, x_params=zero >= 3,
        x_trained=trained,
    )  # fmt: skip
    assert wire == bytes_per_parameter


def test_states_of_a_parameter_by_zero_level():
    """16 bytes of a parameter as Rajbhandari et al. shard them over 64 chips, table 1."""
    states = step_memory.state_bytes.numpy()
    bytes_ = [
        states(
            b_weight=2, b_grad=2, b_opt=12, n_dp=64, x_host=0,
            x_shard=zero >= 1, x_grads=zero >= 2, x_params=zero >= 3,
        )
        for zero in range(4)
    ]  # fmt: skip
    assert bytes_ == pytest.approx([16, 4 + 12 / 64, 2 + 14 / 64, 16 / 64])  # 31.4, 16.6, 1.9 GB


def test_an_all_reduce_moves_twice_what_a_ring_passes():
    time = step.tensor_parallel_time.numpy()(
        x_again=0, k_tp=1, tp=4, D_rank=1000, h_model=2, W_tp=1e3, t_tp=0
    )
    assert time == pytest.approx(4 * 2 * 3 / 4 * 2000 / 1e3)


def test_backward_attention_takes_five_halves_of_forward():
    def time(again, softmax):
        return step.attention_step_time.numpy()(
            x_again=again, x_softmax=softmax, k_att=1, k_odd=0, x_odd=0, x_scores=1, F_att=1.0,
            F_half=1.0, k_pairs=0, h_pairs=0, b_micro=1, L_train=1, tp=1, cp=1, W_chip=1,
        )  # fmt: skip

    assert (time(0, 0), time(1, 0), time(0, 1), time(1, 1)) == (3.5, 4.5, 4.5, 4.5)


def test_a_launch_hides_behind_longer_arithmetic():
    layer = step.layer_time.numpy()
    assert layer(T_chip_l=1.0, T_launch=0.1) == pytest.approx(1.0, rel=1e-4)
    assert layer(T_chip_l=0.1, T_launch=1.0) == pytest.approx(1.0, rel=1e-4)
    assert layer(T_chip_l=1.0, T_launch=1.0) == pytest.approx(2**0.25)


def test_every_symbol_of_the_step_is_defined_once():
    lowered = kernel([*step.STEP, *step_memory.STEP_MEMORY], ["T_train", "M_train"])
    assert {"T_train", "M_train"} == set(lowered.outputs)
    assert not {"T_layer", "N_rank", "A_one"} & set(lowered.names)
