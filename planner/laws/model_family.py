"""A family of models: from active parameters and sparsity to layers, widths, heads and experts.

The rule is what published families share. A layer is `ASPECT` times as narrow as the model is
deep, its feed-forward part a fixed number of times as wide, the cached heads are the same at every
size, and a sparse part activates 8 small experts beside a shared one. Depth, width and experts are
rounded as people round them; the width of the feed-forward part then takes up what is left, so
that a member has the parameters it is named after.
"""

from dataclasses import dataclass

from planner.architecture.attention import Latent, grouped_attention, latent_attention
from planner.architecture.feedforward import dense_mlp, mixture
from planner.architecture.layers import FeedForward, Layer, Mixer, Model, Weight, matrix, vector
from planner.text.errors import ModelError

SOURCE = (
    "family rule of token-planner: geometric mean of the Llama 3 shapes (arXiv 2407.21783, table "
    "3; Llama 3.2 configurations) and of DeepSeek-V3, Kimi K2, Qwen3 and GLM-4.5 for experts"
)

ASPECT = 119.0  # hidden / layers: 128, 110, 128, 102, 130 for Llama 3 at 1B, 3B, 8B, 70B, 405B
DENSE_RATIO = 3.5  # inner / hidden: 3.5 for Llama 3 at 8B and 70B, 3.25 at 405B
SPARSE_RATIO = 2.8  # active experts' inner / hidden: DeepSeek-V3 2.57, Qwen3-235B 3.0, GLM-4.5 2.7
HEAD = 128  # width of a head in all of them
KV_HEADS = 8  # Llama 3 at every size
VOCAB = 128_256  # Llama 3
TIED_PARAMS = 4e9  # parameters: Llama 3.2 shares embedding and head at 1B and 3B, not at 8B
ACTIVE, SHARED_EXPERTS = 8, 1  # experts of a token: DeepSeek-V3, Kimi K2, GLM-4.5
LATENT = Latent(query_rank=1536, cache_rank=512, nope=128, rope=64, value=128)  # DeepSeek-V3
LATENT_HIDDEN = 56  # hidden per head of latent attention: 7168 / 128, DeepSeek-V3

MIN_PARAMS, MAX_PARAMS = 2e8, 2e13  # active parameters; below, the vocabulary is all there is
MIN_SPARSITY, MAX_SPARSITY = 1.5, 256.0
END_MARGIN_RATIO = 1.01  # factor beyond an end, for the neighbours of a size at the end
WIDTHS, HEADS = 128, 8  # steps of rounding
STEPS = ((64, 8), (32, 4), (0, 2))  # (min experts, rounding step of their number)
WIDTH_STEP = 16  # step of the width that takes up the rest
MAX_EXPERT_COUNTS = 24  # numbers of experts tried, from the rule's upwards
MIN_SHARED_EXPERTS = 0.5  # what every token passes, over one expert: the rule has 1
PARAMETER_TOLERANCE = 0.004  # max relative error of the inactive parameters, N_total - N_active


@dataclass(frozen=True)
class Measures:
    """Outer measures of one member before rounding, on the rule.

    `inner` is the width of a dense feed-forward part; of a sparse one that of a single expert,
    with `shared` the width of what every token passes. `experts` is 0 where there are none.
    """

    hidden: float
    layers: float
    heads: float
    inner: float
    shared: float
    experts: float
    tied: bool


@dataclass(frozen=True)
class ModelFamily:
    """The rule with one kind of attention: `gqa` (8 cached heads) or `mla` (one latent)."""

    attention: str = "gqa"

    def measures(
        self, n_active: float, sparsity: float = 1.0, *, tied: bool | None = None
    ) -> Measures:
        """The rule before rounding, for active parameters and N_total / N_active.

        Parameters count as models are named: embedding and head included. Whether the two are one
        matrix follows from the size unless `tied` says so.

        Raises ModelError for a size or a sparsity outside the range of the rule.
        """
        if not MIN_PARAMS / END_MARGIN_RATIO <= n_active <= MAX_PARAMS * END_MARGIN_RATIO:
            raise ModelError(
                f"the family rule makes models of {MIN_PARAMS:.0e} to {MAX_PARAMS:.0e} active "
                f"parameters, got {n_active:.3g}"
            )
        if sparsity != 1.0 and not MIN_SPARSITY <= sparsity <= MAX_SPARSITY:
            raise ModelError(
                f"the family rule makes dense models (sparsity 1) and sparse ones of "
                f"{MIN_SPARSITY:g} to {MAX_SPARSITY:g} parameters per active one, got {sparsity:g}"
            )
        idle = n_active * (sparsity - 1)
        shared = n_active < TIED_PARAMS if tied is None else tied

        def shaped(hidden: float) -> Measures:
            layers = hidden / ASPECT
            heads = hidden / (HEAD if self.attention == "gqa" else LATENT_HIDDEN)
            if sparsity == 1.0:
                return Measures(hidden, layers, heads, DENSE_RATIO * hidden, 0.0, 0.0, shared)
            width = SPARSE_RATIO * hidden / (ACTIVE + SHARED_EXPERTS)
            experts = ACTIVE + idle / (3 * hidden * width * layers)
            return Measures(hidden, layers, heads, width, SHARED_EXPERTS * width, experts, shared)

        def missing(hidden: float) -> float:
            real = shaped(hidden)
            passed = real.inner if sparsity == 1.0 else (ACTIVE + SHARED_EXPERTS) * real.inner
            layer = self._attention(hidden, real.heads)
            layer += hidden * (3 * passed + real.experts + 2)  # the router is one row an expert
            return _outside(hidden, shared) + real.layers * layer - n_active

        # Bisect for the hidden width of n_active parameters; their number grows with the width.
        low, high = 1.0, 1e6
        for _ in range(100):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if missing(middle) < 0 else (low, middle)
        return shaped((low * high) ** 0.5)

    def member(self, n_active: float, sparsity: float = 1.0) -> Model:
        """The member of this size, in whole numbers.

        Its active and its total parameters are within a percent of what was asked for. Raises
        ModelError outside the range of the rule.
        """
        real = self.measures(n_active, sparsity)
        hidden = max(_near(real.hidden, WIDTHS), WIDTHS)
        layers = max(round(real.layers), 1)
        heads = max(_near(real.heads, HEADS), HEADS)
        rest = n_active - _outside(hidden, real.tied)
        rest -= layers * (self._attention(hidden, heads) + 2 * hidden)
        # The dense part whose width takes up the rest of the parameters.
        part = dense_mlp(hidden, max(_near(rest / (3 * hidden * layers), WIDTH_STEP), WIDTH_STEP))
        size = _short(n_active)
        if sparsity > 1.0:
            part = _sparse(rest, n_active * (sparsity - 1), real.experts, hidden, layers)
            size += f" of {_short(n_active * sparsity)}"
        mixer: Mixer = latent_attention(hidden, heads, LATENT)
        if self.attention == "gqa":
            mixer = grouped_attention(hidden, heads, KV_HEADS, HEAD)
        layer = Layer(mixer, part, (vector("norms", "other", 2 * hidden),))
        embedding = Weight("embed_tokens", "embedding", VOCAB * hidden, 0, True)
        head = matrix("lm_head", "head", hidden, VOCAB)
        if real.tied:
            head = Weight("lm_head", "head", 0, VOCAB * hidden, True)
        return Model(
            name=f"{size} {self.attention}", family="rule", hidden=hidden, vocab=VOCAB,
            q_heads=heads, layers=(layer,) * layers, tied=real.tied, max_context=None,
            weights=(embedding, vector("norm", "other", hidden), head), source=SOURCE,
        )  # fmt: skip

    def _attention(self, hidden: float, heads: float) -> float:
        if self.attention == "gqa":
            return 2 * hidden * HEAD * (heads + KV_HEADS)
        latent, rank = LATENT, LATENT.query_rank or 0
        queries = rank * (hidden + heads * (latent.nope + latent.rope) + 1)
        cached = hidden * (latent.cache_rank + latent.rope) + latent.cache_rank
        a_head = latent.cache_rank * (latent.nope + latent.value) + latent.value * hidden
        return queries + cached + heads * a_head


def _outside(hidden: float, tied: bool) -> float:
    return (1 if tied else 2) * VOCAB * hidden + hidden


def _sparse(rest: float, idle: float, experts: float, hidden: int, layers: int) -> FeedForward:
    """The experts nearest to the rule that leave `idle` parameters unused by a token.

    Their number is whole steps, so their width decides the total; what every token passes takes
    up the rest of the active parameters, the router's included.
    """
    width_parameters = 3 * hidden * layers
    step = next(step for least, step in STEPS if experts >= least)

    def widths(number: int) -> tuple[int, int]:
        inner = max(_near(idle / ((number - ACTIVE) * width_parameters), WIDTH_STEP), WIDTH_STEP)
        routed = ACTIVE * inner * width_parameters + hidden * number * layers
        return inner, _near((rest - routed) / width_parameters, WIDTH_STEP)

    def missed(number: int) -> float:
        return abs((number - ACTIVE) * widths(number)[0] * width_parameters / idle - 1)

    first = max(_near(experts, step), ACTIVE + step)
    near = [first + step * k for k in range(MAX_EXPERT_COUNTS)]
    sound = [n for n in near if widths(n)[1] >= MIN_SHARED_EXPERTS * widths(n)[0]]
    if not sound:
        raise ModelError(
            "the family rule has no sparse model so small: attention, vocabulary and a router of "
            f"{experts:.0f} experts leave too little of {rest + idle:.3g} parameters; take a lower "
            "sparsity or a larger model"
        )
    close = [n for n in sound if missed(n) <= PARAMETER_TOLERANCE]
    best = close[0] if close else min(sound, key=missed)
    inner, shared = widths(best)
    return mixture(hidden, inner, best, ACTIVE, shared=SHARED_EXPERTS, shared_inner=shared)


def _near(value: float, step: int) -> int:
    return step * round(value / step)


def _short(count: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "B")):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return f"{count / 1e6:.4g}M"
