"""Claims C29 to C37 and C49 to C51: pipelines, 6ND, pools of equal cost, reversible networks."""

from fractions import Fraction

from formulas.claims.claim import Claim, Worked, named
from formulas.nomenclature.sources import lecture_equations, lecture_hardware, lecture_notes

DAYS = 86_400
# Two FLOP, per parameter and token.
ONE_EACH: dict[str, int | Fraction] = {"N_active": 1, "D_pt": 1, "c_fwd": 2}
THIRD: dict[str, int | Fraction] = {"eta_inf": Fraction(1, 3), "eta_rl": Fraction(1, 3), "c_rl": 3}
TENTH: dict[str, int | Fraction] = {"eta_inf": Fraction(1, 10), "eta_rl": Fraction(1, 10)}

CLAIMS = (
    Claim(
        "C29",
        "In training a pipeline waits while it fills and drains; better schedules mitigate it.",
        lecture_hardware.at("section 4, the bubble problem"),
        "a real efficiency cost, no number",
        "Holds: the wait is (P-1) microbatches' time under GPipe and 1F1B alike, a v-th of it "
        "interleaved, and none under ZB-H2 where forward and both backward parts take equal time.",
        equations=named(
            "bubble_share bubble_share_interleaved bubble_time bubble_time_interleaved "
            "bubble_time_zb_h1 bubble_time_zb_h2 zero_bubble"
        ),
        lecture={"n_stages": 4, "n_micro": 8, "n_virtual": 2, "t_fwd": 1, "t_bwd": 1, "t_wgt": 1},
        worked=(
            Worked("4 stages, 8 microbatches", "bubble_share", unit="%"),
            Worked(
                "8 stages, 32 microbatches",
                "bubble_share",
                unit="%",
                inputs={"n_stages": 8, "n_micro": 32},
            ),
            Worked("the first, interleaved by two", "bubble_share_interleaved", unit="%"),
            Worked("ZB-H1, forward passes waited", "bubble_time_zb_h1"),
            Worked("ZB-H2, forward passes waited", "bubble_time_zb_h2"),
        ),
    ),
    Claim(
        "C30",
        "Training takes six FLOP per active parameter and token, inference two.",
        lecture_hardware.at("section 5, where the 6 comes from"),
        "6ND; 2ND",
        "Holds; attention adds 12 * layers * heads * width * length per token when every pair is "
        "computed, and the input embedding multiplies nothing.",
        equations=named(
            "training_arithmetic pretraining_arithmetic serving_arithmetic "
            "training_arithmetic_attention backward_arithmetic"
        ),
        lecture=ONE_EACH | {"D_inf": 1, "eta_inf": 1},
        worked=(
            Worked("training", "training_arithmetic", says=6),
            Worked("inference", "serving_arithmetic", says=2),
        ),
    ),
    Claim(
        "C31",
        "Pre-training, reinforcement learning and inference cost 6, 2 to 6 and 2 FLOP per "
        "parameter and token, the latter two times an inefficiency of a third.",
        lecture_hardware.at("section 5, total compute"),
        "C_inference = 2 * N_active * D_inference * inefficiency (~1/3)",
        "Holds if one divides by the efficiency; multiplied by it, as written, a pool as large as "
        "pre-training would hold nine times its tokens. The notes give 30 % for the efficiency "
        "of reinforcement learning in one place and 15 % in another.",
        equations=("rl_arithmetic", "serving_arithmetic", "all_arithmetic", "equal_serving_tokens"),
        lecture=ONE_EACH | THIRD,
        worked=(
            Worked("D_inf over D_pt, divided", "equal_serving_tokens", says=1),
            Worked("as written", "equal_serving_tokens", inputs={"eta_inf": 3}),
        ),
    ),
    Claim(
        "C32",
        "Equal pools mean D_pretrain = 1.5 D_RL = D_inference.",
        lecture_notes.at("section 4, equating data"),
        "D_inf = D_pt, D_rl = 2/3 D_pt; alpha and beta of about 1/10",
        "Holds at a third of the efficiency and three FLOP per parameter for reinforcement "
        "learning; factors of a tenth cannot give it, and D_pretrain = D_RL = D_inference, as one "
        "account has it, takes pools for tokens.",
        equations=("equal_serving_tokens", "equal_rl_tokens", "total_over_pretraining"),
        lecture=ONE_EACH | THIRD,
        worked=(
            Worked("D_inf over D_pt", "equal_serving_tokens", says=1),
            Worked("D_rl over D_pt", "equal_rl_tokens", says=Fraction(2, 3)),
            Worked("D_inf at a tenth", "equal_serving_tokens", inputs=TENTH),
            Worked("D_rl at a tenth", "equal_rl_tokens", inputs=TENTH),
        ),
    ),
    Claim(
        "C33",
        "The least sum of costs lies where the costs are equal.",
        lecture_notes.at("section 4, over-training"),
        "all pools equal",
        "Holds only where quality reacts alike to each pool: at an interior optimum pools stand "
        "as their elasticities. For the terms of a loss at fixed 6ND they nearly do; a pool set "
        "by demand does not.",
        equations=("equalisation", "opposed_terms", "falling_cost"),
        lecture={"C_pt": 1, "q_pt": Fraction(1, 5), "q_rl": Fraction(1, 5)},
        worked=(
            Worked("second pool over first, alike", "equalisation", says=1),
            Worked(
                "at elasticities of 3 to 1",
                "equalisation",
                inputs={"q_pt": Fraction(3, 10), "q_rl": Fraction(1, 10)},
            ),
        ),
    ),
    Claim(
        "C34",
        "A model that serves 50 million tokens per second for two months serves 200 trillion.",
        lecture_notes.at("section 4, plugging in numbers"),
        "200T tokens (another account: 150T)",
        "Does not hold: 60 days give 259 trillion; 200 take 46 days and 150 take 35.",
        equations=("serving_tokens",),
        lecture={"X_tok": 5 * 10**7, "t_life": 60 * DAYS},
        worked=(
            Worked("60 days", "serving_tokens", says=200, unit="T token"),
            Worked("46 days", "serving_tokens", unit="T token", inputs={"t_life": 46 * DAYS}),
            Worked("35 days", "serving_tokens", unit="T token", inputs={"t_life": 35 * DAYS}),
        ),
    ),
    Claim(
        "C35",
        "Frontier models are trained 100 times beyond Chinchilla's 20 tokens per parameter.",
        lecture_notes.at("section 4, plugging in numbers"),
        "200T / 2T = 100",
        "Holds as a division, 75 to 130 over the accounts; twenty is the rule of one of three "
        "fits, and where the exponents differ the ratio depends on the size.",
        equations=("chinchilla_multiple", "optimal_ratio", "optimal_ratio_equal_exponents"),
        lecture={"r_opt": 20, "D_pt": 2 * 10**14},
        worked=(
            Worked("at 200T", "chinchilla_multiple", says=100),
            Worked("at 150T", "chinchilla_multiple", inputs={"D_pt": 15 * 10**13}),
            Worked("at 259T", "chinchilla_multiple", inputs={"D_pt": 2592 * 10**11}),
        ),
    ),
    Claim(
        "C36",
        "Equal pools imply training 100 times beyond the compute-optimal tokens.",
        lecture_equations.at("overtraining 100 times beyond Chinchilla"),
        "100 times",
        "Does not hold: for an additive loss over-training is the number of pools to the power "
        "1/beta, so three pools give 100 only at an exponent below any that was fitted (20 times "
        "with the fit of Besiroglu et al., 47 to 51 with that of Hoffmann et al.).",
        equations=named(
            "overtraining overtraining_proportional equal_pools_overtraining "
            "exponent_for_overtraining overtraining_serving"
        ),
        lecture={"x_over": 100, "n_pools": 3},
        worked=(
            Worked("exponent that three pools need", "exponent_for_overtraining"),
            Worked("two pools", "exponent_for_overtraining", inputs={"n_pools": 2}),
        ),
    ),
    Claim(
        "C37",
        "A model that may be overtaken should be trained less: its inference is discounted.",
        lecture_equations.at("overtraining, obsolescence risk"),
        "50 % chance: D_inference is discounted",
        "Holds in direction: half the chance is half the served tokens, but at equal quality the "
        "training tokens follow with an elasticity below one.",
        equations=("expected_tokens", "discounted_tokens", "serving_shift"),
        lecture={
            "X_tok": 5 * 10**7,
            "t_life": 60 * DAYS,
            "p_ahead": Fraction(1, 2),
            "r_all": 2,
            "delta_t": Fraction(1, 60 * DAYS),
            "alpha_N": Fraction(1, 3),
            "beta_D": Fraction(1, 3),
        },
        worked=(
            Worked("at one half", "expected_tokens", unit="T token"),
            Worked("overtaken once in 60 days", "discounted_tokens", unit="T token"),
            Worked(
                "percent of training per percent of serving, two equal pools, exponents 1/3",
                "serving_shift",
            ),
        ),
    ),
    Claim(
        "C49",
        "A Feistel round makes any function invertible; RevNets do it with layers.",
        lecture_hardware.at("section 7; notes, section 6"),
        "(x, y + f(x)) in one account, (y, x + f(y)) in another",
        "Holds in both forms, the first if the halves take turns, and exactly only in exact "
        "arithmetic: floating point inverts approximately.",
        equations=named(
            "feistel_round feistel_inverse reversible_layer_first reversible_layer_second "
            "reversible_inverse_first reversible_inverse_second"
        ),
        note="z = y + f(x), y = z - f(x); y1 = x1 + F(x2), y2 = x2 + G(y1), undone in reverse",
    ),
    Claim(
        "C50",
        "RevNets spend arithmetic to save memory, the mirror image of a KV cache.",
        lecture_notes.at("section 6, RevNets"),
        "memory no longer grows with the layers; the forward pass is done again",
        "Holds: 8ND for 6ND and one layer's activations for all. Checkpoints every root of the "
        "layers cost slightly less arithmetic and always more memory. Cache and layer stand on "
        "one balance: kept up to the drain time times their arithmetic per byte over the chip's.",
        equations=named(
            "reversible_arithmetic reversible_overhead activations_kept activations_reversible "
            "checkpointed_least_memory checkpointed_arithmetic checkpointed_over_reversible "
            "keep_or_compute keep_or_compute_drain keep_activations"
        ),
        lecture={"N_active": 1, "D_pt": 1, "c_fwd": 2, "n_blocks": 64},
        worked=(
            Worked("FLOP per parameter and token, reversible", "reversible_arithmetic"),
            Worked("over plain training", "reversible_overhead"),
            Worked("with checkpoints, 64 layers", "checkpointed_arithmetic"),
            Worked("their memory over reversible", "checkpointed_over_reversible"),
        ),
    ),
    Claim(
        "C51",
        "GPT-4 had a trillion parameters, Gemini emits hundreds of millions of tokens a second, "
        "frontier models train on 150T tokens.",
        lecture_equations.at("MoE rack layout; notes, sections 1 and 4"),
        "1T parameters; hundreds of millions of tokens per second; 150T tokens",
        "Rumours: no source is given, and nothing here rests on them.",
        kind="rumour",
    ),
)
