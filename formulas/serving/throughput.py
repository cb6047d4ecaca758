"""Prefill and decode in one pool: the throughput identity, mean TPOT and memory.

The identity follows one sequence slot: a request holds its slot for its share of everybody's
prefill and for its own decode steps, hence 1/X = t_prefill + (O - 1) t_decode(B) / (g B).
`x_pf` is 1 where the pool prefills as well, 0 where it only decodes; `L_dec` is O - 1 where the
prefill emits the first token.
"""

from formulas.algebra.notation import *
from formulas.serving.context_parallel import state_sequences

PER_CHIP = lecture_equations.at("memory per chip")
ROOFLINE = lecture_equations.at("equation 1")

decode_share = Equation.of(
    T_out, L_dec * one_seq * T_dec / (g * B), "every step advances B sequences by g tokens each"
)

slot_time = Equation.of(
    T_slot,
    x_pf * T_pf_busy + T_out,
    "slots are always full",
    "a mixed step costs its prefill and its decode part",
)

prefill_share = Equation.of(
    T_share,
    kappa * (B - x_own * one_seq) / one_seq * (g / L_dec) * x_pf * T_pf_busy,
    "the other sequences each bring one prompt per L_dec/g steps: B - 1 of them in a closed "
    "loop, and with open arrivals, which find the mean batch as it is, all B",
    "kappa = 1 when requests are out of step, 1/2 when a closed loop keeps them in cohorts",
)

time_per_output_token = Equation.of(
    T_tpot,
    (T_dec + T_share) / (g * one_seq),
    "mean over the tokens of a request, first token excluded",
)

mixed_steps = Equation.of(
    phi_mixed,
    x_pf * (B - x_own * one_seq) * g * L_new / (L_dec * c_chunk * dp * pp * one_seq),
    "chunks are filled across prompts",
    "each rank of each stage has its own steps",
    "a sequence does not decode while its own prompt is read",
)

resident_sequences = Equation.of(
    b_mem, ceiling(B / dp), "all microbatches in flight hold their cache"
)

resident_weights = Equation.of(
    M_weights,
    f_format * f_held * (M_fixed / tp + M_routed * u_ep / (ep * xtp)) / pp,
    "attention, dense and shared weights are copied over dp",
    "the fullest stage counts, which may have the embedding or the head",
    source=PER_CHIP,
)

# Of dcp ranks each fills blocks of its own with its share of the tokens; windows are whole on all.
_GROWN = b_store * (L_ctx / dcp + L_pad + (1 - 1 / dcp) * x_store * L_ctx)
_PAGED = f_whole * maximum(_GROWN, R_least, f_pool * R_bnd_mem)
_CACHE = _PAGED + f_bound * R_bnd_mem + R_pad  # of a sequence, in blocks
resident_cache = Equation.of(
    M_kv,
    f_stage * (b_mem * _CACHE * f_heads / cp + b_state * f_state * R_state / tp) / pp,
    "sequences are out of step, so each holds its mean context",
    "paged cache, the tokens of a context in turn on its cp parts, or on dcp ranks of tp",
    "an engine holds whole blocks, and layers of several kinds in groups of one size",
    source=PER_CHIP,
)

resident_activations = Equation.of(
    M_act,
    (x_pass * c_chunk * one_seq / cp + x_budget * b_own * m_pos) * (h_wide + h_work) * b_act
    + maximum(
        (x_seats * b_own * m_pos + n_seats * one_token / one_seq) * vocab * b_logit * k_smp,
        (x_pass * c_chunk * one_seq / cp + x_budget * b_own * m_pos) * h_peak * b_act,
    ),
    "one layer's widest tensors and the logits are alive at once",
    "an engine that profiles itself holds several copies of all logits, or a pass's peak",
    "where the engine is told its limits of a step, it profiles a step of these",
)

tokens_of_step = Equation.of(
    n_step,
    x_pf * c_chunk * one_seq / cp + b_own * m_pos,
    "a chunk of a prompt joins what decodes, where the pool does both",
)

memory_left_alone = Equation.of(
    M_reserve,
    (1 - x_mem) * M_cap + M_hold + x_rest * M_kv,
    "of what the driver reports; of an engine whose terms are known, of what it sees",
    "an engine whose share is of what is free leaves a part of that beside its cache",
    source=PER_CHIP,
)

resident_bytes = Equation.of(
    M_need, M_weights + M_kv + M_act + M_reserve, "the engine fills a share", source=PER_CHIP
)

_EACH = L_dec * one_seq / (g * B)  # steps of a sequence's own share
slot_bound = Equation.of(
    T_slot_bound,
    maximum(
        x_pf * T_pf_busy_bound + _EACH * T_math_bound, _EACH * T_mem_bound, _EACH * T_net_bound
    ),
    "prefill arithmetic hides behind decode's memory traffic and the other way round",
    source=ROOFLINE,
)

token_bound = Equation.of(
    T_tpot_bound, T_dec_bound / (g * one_seq), "steps carry no prefill", source=ROOFLINE
)

MEMORY = (
    resident_sequences,
    state_sequences,
    resident_weights,
    resident_cache,
    resident_activations,
    tokens_of_step,
    memory_left_alone,
    resident_bytes,
)
AGGREGATED_EQUATIONS = (decode_share, slot_time, prefill_share, time_per_output_token, mixed_steps)
AGGREGATED_BOUND = (slot_bound, token_bound)
