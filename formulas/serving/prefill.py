"""Reading a prompt: arithmetic of the new tokens, weights once per chunk, pipelined over stages.

Each of the `cp` parts of a context computes its share of the new tokens. All `dp` ranks of a stage
prefill their own prompts side by side, so the experts, spread over `tp * dp` chips, see `dp`
prompts at once: per prompt every operator costs what it costs on `tp * cp` chips.
"""

from formulas.algebra.notation import *
from formulas.serving import context_parallel, decode, speculation
from formulas.serving.prefill_network import PREFILL_NETWORK

new_tokens = Equation.of(
    L_new, L_in * (1 - x_hit), "the prefix cache serves the front of the prompt"
)

cached_tokens = Equation.of(L_hit, L_in * x_hit, "the prefix cache serves the front of the prompt")

attention_pairs = Equation.of(
    P_pairs,
    (L_new * L_hit + L_new**2 / 2) * (1 + v_in**2),
    "causal mask: on average a new token sees half of the new ones",
    "prompts differ in length, and E[L^2] = mean^2 (1 + v^2); the share found is theirs all alike",
    source=pope_2022.at("section 2.1"),
)

_ALIKE = ceiling(L_new / c_chunk)
# Never less than the ratio c/(L + c): digits are left where a prompt takes more passes than those.
_ALONE = maximum(1 - exp(-c_chunk / L_new), c_chunk / (L_new + c_chunk))
chunk_count = Equation.of(
    n_chunks,
    _ALIKE + (1 - exp(-2 * (pi * v_in * L_new / c_chunk) ** 2)) * (1 / _ALONE - _ALIKE),
    "chunked prefill",
    "prompts differ in length: of exponential ones E[ceil(L/c)] = 1/(1 - exp(-c/L)), which takes "
    "the place of the ceil(L/c) of the mean as the first wave of that sawtooth is damped",
    source=derived,
)

_LAYERS = (N_attn_pf / F_attn + N_ffn / F_ffn) / e_pf + N_exp * x_ep / (F_routed * e_pf_x)
prefill_math = Equation.of(
    T_pf_math,
    c_fwd * (L_new * one_seq * _LAYERS + N_head / (F_head * e_pf) * one_token) / (tp * cp),
    "only the last position needs the head",
    "every chip of tp multiplies with down-projections of latent attention, and with routers",
    "experts see dp prompts at once, the fullest rank x_ep times its share",
    source=lecture_equations.at("equation 2"),
)

prefill_attention = Equation.of(
    T_pf_attn,
    ((a_pf + a_idx * r_idx) * P_pairs + A_bnd_pf * L_new) * one_seq / (F_sdpa * tp * cp * e_pf_a),
    decode.WHOLE_INDEXER,
    "every part of a context gets early and late tokens of a chunk, so all work alike",
    source=yang_2024.at("section 3, load-balanced sharding"),
)

_MOVED = k_experts * (5 * xtp * h_exp + 6 * h_mid) * b_act  # bytes of a token, a layer
prefill_expert_traffic = Equation.of(
    T_pf_x,
    x_ep * L_new * one_seq * n_moe * _MOVED / (tp * cp * W_chip * e_w),
    "a token's vector is gathered, read, written, read and added up for each of its experts",
    "two inner vectors are written and read, then their product",
    "products with dense weights keep such vectors on the chip's own memory",
    source=derived,
)

prefill_weights = Equation.of(
    T_pf_w,
    n_half * n_chunks * (S_fixed / tp + S_routed * u_ep / (ep * xtp)) / (W_chip * e_w),
    "a chunk touches every expert, and so does each half of one where halves overlap",
    source=lecture_equations.at("equation 3"),
)

prefill_overhead = Equation(
    "time of one prompt that no roof explains",
    T_pf_over,
    n_chunks * (n_half * ((n_blocks + x_idx * n_idx) * t_layer + n_moe * t_pf_moe) + t_pf_chunk),
    assumes=(
        "launches per layer and chunk, and per half of one; experts are launched without a "
        "recorded graph",
    ),
)

_WORK = T_pf_math + T_pf_x + maximum(T_pf_attn, T_ring) + T_pf_w + T_pf_over

prefill_time = Equation.of(
    T_pf,
    decode.overlapped_time(_WORK, T_pf_net) + T_gather + T_hop_pf + T_draft_pf + T_draft_pass,
    "terms follow one another",
    "two half-batches hide a share of the shorter of work and sending",
    "keys and values go round behind the arithmetic of attention",
)


def in_passes(work: Symbol, time: Symbol, number: Expr, *assumes: str) -> tuple[Equation, Equation]:
    """Equations of the work and the time of one prompt that is charged `number` prefill passes."""
    read = Equation.of(T_pf_w, n_half * n_chunks * V_pass / (W_chip * e_w))
    done = Equation.of(T_pf, _WORK).substitute(read, prefill_overhead, *context_parallel.RING)
    # Gathering depends on a prompt's own chunks, not on the prompts that share its passes.
    whole = decode.overlapped_time(work, T_pf_net) + T_gather + T_hop_pf + T_draft_pf + T_draft_pass
    parts = (speculation.draft_prompt_passes, *PREFILL_NETWORK)
    sent = Equation.of(T_pf, whole).substitute(*parts)
    return (
        Equation.of(work, done.rhs.subs(n_chunks, number), *assumes),
        Equation.of(time, sent.rhs.subs(n_chunks, number), *assumes, source=derived),
    )


shared_work, shared_time = in_passes(
    T_work_shared,
    T_pf_shared,
    n_shared,
    "what a pass costs once is borne alike by all prompts that it reads",
)

time_to_first_token = Equation(
    "time to first token without queueing",
    T_ttft,
    T_read * ((1 - 1 / n_chunks) * f_stage / pp + 1 / n_chunks)
    + s_mixed * (n_chunks + n_sched) * T_dec
    + L_new * one_seq * t_tok
    + t_request,
    assumes=(
        "a request waits for the host, token by token, and for its scheduler: n_sched steps where "
        "others decode on the same chips",
        "chunks follow one another through the stages at the pace of the fullest",
        "each chunk shares its step with the decoding sequences (s_mixed = 1 in one pool, else 0)",
    ),
)

prefill_busy = Equation.of(
    T_pf_busy,
    f_stage * T_pf_shared / (pp * dp),
    "stages and ranks work on prompts of their own, the fullest stage sets the pace",
)

PREFILL = (
    *equations_in_module(globals()),
    decode.hidden_share,
    *context_parallel.RING,
    *context_parallel.GATHERING,
    speculation.draft_prompt_time,
    speculation.draft_prompt_passes,
    *PREFILL_NETWORK,
)
PREFILL_SHARED = (new_tokens, cached_tokens, attention_pairs)  # shared with the roofline bound
