"""Does it fit? The command that answers from a scenario, a launch, or a few options."""

from dataclasses import replace

import typer

from planner.report.files import dumps
from planner.text.console import show
from planner.text.errors import InputError

FORMS = ("text", "json")


def fit(
    source: str | None = None,
    sets: list[str] | None = None,
    model: str | None = None,
    system: str | None = None,
    engine: str | None = None,
    engine_version: str | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    weights: str | None = None,
    kv: str | None = None,
    context: int | None = None,
    requests: int | None = None,
    share: float | None = None,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    room: float | None = None,
    images: bool | None = None,
    wanted: str | None = None,
    form: str = "text",
) -> None:
    """Say whether a model fits, and how many tokens, requests and how long a context.

    No price and no promise is needed. Exit status 1 where it does not fit.
    """
    from planner.engines.fit_question import FitOptions
    from planner.engines.fit_question import fit as answer

    if form not in FORMS:
        raise InputError(f"--format {form}: expected one of {', '.join(FORMS)}")
    steps = {"max-num-seqs": max_num_seqs, "max-num-batched-tokens": max_num_batched_tokens}
    counts = {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "context": context, "requests": requests}
    for name, value in {**counts, **steps}.items():
        if value is not None and value < 1:
            raise InputError(f"--{name} {value}: expected at least 1")
    options = FitOptions(
        model, system, engine, engine_version, tp, pp, dp, ep, weights, kv, context, requests,
        share, max_num_seqs, max_num_batched_tokens, room, images=images,
    )  # fmt: skip
    result = answer(source, options, sets or ())
    if wanted is not None:
        from planner.engines.served_within import served_within

        result = replace(result, within={wanted: served_within(source, sets or (), result, wanted)})
    show(dumps(result.document) if form == "json" else str(result))
    raise typer.Exit(1 if result.verdict == "does not fit" else 0)
