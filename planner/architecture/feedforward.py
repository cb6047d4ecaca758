"""Feed-forward parts: dense, and mixtures of routed and shared experts."""

from dataclasses import replace

from planner.architecture.layers import Experts, FeedForward, Weight, matrix, vector

_NAMED = ("gate_proj", "up_proj", "down_proj")
_NUMBERED = ("w1", "w3", "w2")  # As checkpoints in Mixtral's layout call the same three.


def dense_mlp(
    hidden: int,
    inner: int,
    *,
    gated: bool = True,
    bias: bool = False,
    loose: int = 0,
    path: str = "mlp",
) -> FeedForward:
    """A dense feed-forward part of width `inner`, with a gate (three matrices) or without (two).

    `loose` counts vectors inside it, such as a norm between the matrices.
    """
    weights = _matrices(path, "dense_ffn", hidden, inner, gated=gated, bias=bias)
    if loose:
        weights += (vector(f"{path}.norm", "dense_ffn", loose),)
    return FeedForward("dense", weights)


def mixture(
    hidden: int,
    inner: int,
    experts: int,
    active: int,
    *,
    shared: int = 0,
    shared_inner: int | None = None,
    shared_gate: bool = False,
    gated: bool = True,
    latent: int | None = None,
    latent_norm: bool = False,
    router_bias: bool = False,
    expert_bias: bool = False,
    shared_bias: bool = False,
    idle: int = 0,
    path: str = "mlp",
    router: str = "gate",
    shared_path: str = "shared_experts",
    groups: tuple[int, int] = (1, 1),
) -> FeedForward:
    """Mixture of `experts` routed experts of width `inner`, `active` per token, plus shared ones.

    The shared experts are one matrix set of width `shared_inner` (default shared·inner);
    `shared_gate` adds their scalar gate. With `latent` the routed experts work at that width, with
    a projection down and up around them. `router_bias` is the selection bias per expert, `groups`
    how many groups of experts there are and how many of them a token may use; `idle` experts are
    scored like the others but have no weights: a token uses on average as much less.
    """
    routing = Experts(experts, active, shared, hidden if latent is None else latent, *groups, idle)
    width = routing.width
    weights = [matrix(f"{path}.{router}", "router", hidden, experts + idle)]
    if router_bias:
        weights.append(vector(f"{path}.{router}.bias", "router", experts + idle))
    names = _NUMBERED if path == "block_sparse_moe" else _NAMED
    weights += (
        replace(single, count=single.count * experts, used=round(single.count * routing.passed))
        for single in _matrices(
            f"{path}.experts.0", "routed", width, inner, gated=gated, bias=expert_bias, names=names
        )
    )
    if latent is not None:
        weights.append(matrix(f"{path}.fc1_latent_proj", "shared", hidden, latent))
        weights.append(matrix(f"{path}.fc2_latent_proj", "shared", latent, hidden))
        if latent_norm:
            weights.append(vector(f"{path}.latent_norm", "shared", latent))
    if shared:
        wide = shared * inner if shared_inner is None else shared_inner
        weights += _matrices(
            f"{path}.{shared_path}", "shared", hidden, wide, gated=gated, bias=shared_bias
        )
        if shared_gate:
            weights.append(matrix(f"{path}.shared_expert_gate", "shared", hidden, 1))
    return FeedForward("moe", tuple(weights), routing)


def _matrices(
    path: str,
    group: str,
    hidden: int,
    inner: int,
    *,
    gated: bool,
    bias: bool,
    names: tuple[str, ...] = _NAMED,
) -> tuple[Weight, ...]:
    names = names if gated else names[1:]
    weights = [matrix(f"{path}.{name}", group, hidden, inner) for name in names]
    if bias:
        weights.append(vector(f"{path}.bias", group, (len(names) - 1) * inner + hidden))
    return tuple(weights)
