"""Groups of layers: published models, printed tokens, and what a request takes, by counting."""

import pytest

from planner.memory.cache_groups import CacheGroups, LayerCache, cache_groups, pooled_groups

GIB = 2**30


@pytest.mark.parametrize(
    ("full", "bounded", "groups"),
    [(18, 18, 2), (8, 40, 6), (10, 52, 7), (5, 29, 7)],
    ids=["gpt-oss", "Gemma 3 12B", "Gemma 3 27B", "Gemma 3 4B"],
)
def test_groups_are_equally_long(full, bounded, groups):
    """The smallest kind gives the length, unless the largest is hardly longer."""
    made = cache_groups([LayerCache(full, 2048), LayerCache(bounded, 2048, 128)])
    assert made.full + len(made.windows) == groups


def test_gpt_oss_takes_twice_its_bytes():
    """36 layers, 36.9 kB a token by the full half alone; a pool of two groups prints 73,728 B."""
    made = cache_groups([LayerCache(18, 2048), LayerCache(18, 2048, 128)])
    blocks = made.blocks(3.33 * GIB)
    assert made.page / made.tokens * 2 == 73_728
    assert blocks // 2 * 16 == pytest.approx(3.33 * GIB / 73_728, rel=1e-3)


def test_printed_tokens_of_published_logs():
    """Gemma 3 12B: 130,304 at 47.72 GiB; 27B: 36,560 at 19.53; MLA by 576 x 2 bytes a layer."""
    small = cache_groups([LayerCache(8, 8192), LayerCache(40, 8192, 1024)])
    large = cache_groups([LayerCache(10, 8192), LayerCache(52, 8192, 1024)])
    assert small.blocks(47.72 * GIB) // 6 * 16 == pytest.approx(130_304, rel=2e-3)
    assert large.blocks(19.53 * GIB) // 7 * 16 == pytest.approx(36_560, rel=2e-3)
    latent = cache_groups([LayerCache(61, 1152), LayerCache(61, 132)])
    assert latent.exact
    assert latent.page == 16 * 61 * (1152 + 132)


def test_a_window_costs_what_a_step_adds_to_it():
    """With 8,192 tokens a step a window of 128 takes blocks as one of 8,320 would."""
    made = CacheGroups(1.0, 16, 1, (128,))
    assert made.of_request(131_072, 8192) == 8192 + (128 - 1 + 8192 + 15) // 16 + 1
    assert made.of_request(64, 8192) == 4 + 5  # a short request: all of it, and one block


@pytest.mark.parametrize("room", [0, 5, 40, 129, 1000])
def test_the_longest_request_is_the_last_that_fits(room):
    """By trying every length."""
    made = CacheGroups(1.0, 16, 2, (128, 512), states=3)
    longest = made.longest(room, 64)
    lengths = range(0, 16 * (room + 2), 16)
    assert longest == max((x for x in lengths if x and made.of_request(x, 64) <= room), default=0)


def test_an_attention_page_holds_a_state():
    """16 full and 48 linear layers: four groups, a block as long as a state needs."""
    made = cache_groups([LayerCache(16, 4096), LayerCache(48, 3_200_000, state=True)])
    assert (made.full, made.states, made.tokens) == (1, 3, 784)
    assert made.of_request(7840, 2048) == 10 + 3


def test_without_groups_every_layer_holds_everything():
    """An engine before them, or one that hands caches over."""
    made = cache_groups([LayerCache(8, 8192), LayerCache(40, 8192, 1024)], hybrid=False)
    assert (made.windows, made.page) == ((), 48 * 8192 * 16)


def test_layers_of_several_sizes_have_no_rule():
    """Windows whose heads differ from those of full layers."""
    assert not cache_groups([LayerCache(10, 4096), LayerCache(50, 8192, 1024)]).exact


def test_a_pool_counts_windows_and_states_by_share():
    """SGLang: windows hold 0.8 of the tokens, states 0.9 of the memory of caches."""
    made = pooled_groups([LayerCache(10, 100), LayerCache(50, 100, 1024)], 0.8)
    assert made.page == 1000 + 0.8 * 5000
    states = pooled_groups([LayerCache(10, 100), LayerCache(1, 5, state=True)], 1, 0.9)
    assert states.page == pytest.approx(1900)


def test_layers_with_pages_of_their_own_take_their_own_bytes():
    """Gemma 4 from vLLM 0.21 on: 50 GiB held 55,000 tokens before and 525,000 then (vllm 43308)."""
    layers = [LayerCache(10, 8192), LayerCache(50, 16384, 1024)]
    room, step = 50 * 2**30, 1
    before, after = (cache_groups(layers, own_pages=own) for own in (False, True))
    assert not before.exact
    assert after.exact
    assert before.longest(room, step) == pytest.approx(59_000, rel=0.05)
    whole = 10 * 8192 * 400_000 + 50 * 16384 * 1040
    assert after.of_request(400_000, step) * after.page == whole
    assert after.longest(room, step) == pytest.approx((room - 50 * 16384 * 1040) / 81920, rel=1e-4)
    assert not cache_groups([*layers, LayerCache(10, 64)], own_pages=True).exact


def test_windows_of_a_pool_by_token_have_a_share_of_its_tokens():
    """So many contexts fit as the smaller of both pools lets in."""
    made = pooled_groups([LayerCache(10, 100), LayerCache(50, 100, 1000)], 0.8)
    token = 1000 + 0.8 * 5000
    for context in (100, 700, 1000, 1200, 5000):
        whole_pool, windows = 1_000_000 / token, 0.8 * 1_000_000 / token
        fits = min(whole_pool / context, windows / min(context, 1000))
        assert made.requests(1_000_000, context, 1) == pytest.approx(fits, rel=0.02)


def test_states_of_a_pool_have_a_share_of_its_room():
    """A request takes a slot of the states, however short it is."""
    made = pooled_groups([LayerCache(10, 100), LayerCache(40, 1_000_000, state=True)], 1.0, 0.9)
    room = 10**9
    slots = room * 0.9 / 1.9 / (40 * 1_000_000)
    assert made.requests(room, 10, 1) == pytest.approx(slots, rel=1e-3)
    assert made.requests(room, 10**6, 1) == pytest.approx(room / 1.9 / 1000 / 10**6, rel=1e-3)
