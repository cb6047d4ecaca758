"""What lengths of requests mean for a step: mean context, decoded tokens, what a window sees."""

from formulas.algebra.notation import *

mean_context = Equation.of(
    L_ctx,
    L_in + L_out * (1 + v_out**2) / 2,
    "a request is met at a random step of its answer, longer answers more often",
)

emitted_tokens = Equation.of(
    L_dec, L_out - one_token / one_seq, "the prompt emits the first token of an answer"
)

seen_context = Equation.of(
    L_seen, minimum(L_ctx, L_win), "a window, or the k best tokens, of the mean context"
)

seen_prompt = Equation.of(
    L_seen_pf,
    minimum(L_in, L_win) - minimum(L_in, L_win) ** 2 / (2 * L_in),
    "a token sees what stands before it and within the window",
)

REQUESTS = (mean_context, emitted_tokens, seen_context, seen_prompt)
