"""Output of `planner derive`: the list, the table of claims, or derivations in a format.

Derivations are shown under sets of assumptions. The lecture's figures are those that its claims are
worked with; the teaching set is that of the book; the physical ones come from the catalogues, for
one model on one domain of chips. With a plan its own values stand in their place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
from pathlib import Path

from formulas.algebra.derivation import Derivation, DerivationError
from formulas.algebra.equation import Equation
from formulas.algebra.steps import STATUS_ASSUMED
from formulas.book.book_document import book, book_references
from formulas.book.book_values import BookError, base_case
from formulas.claims import Claim, all_claims
from formulas.claims.claim import LECTURE
from formulas.export import FORMATS, LANGUAGES, code, export
from formulas.export.latex import bibtex, fragment
from formulas.export.lean import DECIMAL_BASE, lean
from formulas.export.plain_text import claim_blocks
from formulas.nomenclature.symbols import SymbolError
from formulas.numerics.store import cached_json
from formulas.registry import by_name, entry_name, find, tags
from planner.catalogue.listed_prices import default_price
from planner.claims import physical_column
from planner.report.files import dumps, pdf
from planner.report.text.plan_values import plan_case, plan_text
from planner.text.errors import InputError, SolverError, did_you_mean
from planner.text.listing import Listing

MODEL, CHIP, CHIPS, FORMAT = "deepseek-v3", "h200", 8, "fp8"
# Example workload: chosen, not measured.
WORKLOAD: Mapping[str, float] = {"B": 256, "L_ctx": 4096, "m_pos": 1, "g": 1}


CASES_NOTE = (
    "Three sets of assumptions stand side by side. The lecture counts a multiply-add as one FLOP; "
    "it takes a chip of 300 of them per byte of bandwidth, one byte per weight, and 100 of 800 "
    "billion parameters active. What stands under lecture is what its own figures give; several of "
    "them lie exactly on a balance. Under teaching stands a small machine whose numbers come out "
    f"round. Under physical stands {MODEL} on {CHIPS} chips {CHIP} in {FORMAT}, decoding "
    f"{WORKLOAD['B']:g} sequences of {WORKLOAD['L_ctx']:g} tokens: dense data-sheet peaks at two "
    "FLOP per multiply-add, the model's own shape, a listed rent.",
)
VALUES_NOTE = (
    "Under the plan stand the values of {plan}: what it states, and the rates, the memory and the "
    "counts of its chip and its model in the formats it chose, for one replica that decodes. The "
    "context is the prompt and half of the answer."
)
CLAIMS, FRAGMENT = "claims", "fragment"
# What is written of entries that is not a document of their text.
REFERENCES: Mapping[str, Callable[[Sequence[Equation | Derivation]], str]] = {
    "bibtex": bibtex, "lean": lean, FRAGMENT: fragment,
    **{language: partial(code, language=language) for language in LANGUAGES},
}  # fmt: skip
OUTPUT_FORMATS = (*FORMATS, "pdf", *REFERENCES)
SUFFIXES = {
    ".txt": "text", ".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".html": "html",
    ".htm": "html", ".ipynb": "notebook", ".typ": "typst", ".pdf": "pdf", ".bib": "bibtex",
    ".lean": "lean", ".py": "python", ".c": "c", ".js": "js", ".jl": "julia",
}  # fmt: skip


def derive_output(
    names: Sequence[str],
    *,
    every: bool,
    form: str | None,
    out: Path | None,
    json: bool,
    whole_book: bool = False,
    plan: Path | None = None,
    find: str | None = None,
    where: Sequence[str] = (),
) -> str | bytes:
    """Return the output of `planner derive`: the list, the table of claims, a document, the book.

    A format or a file without a name means all of them. Raises InputError if the arguments
    contradict each other, or as `check_formulas` and `derived_text` do.
    """
    if (find or where) and (every or form or out or plan or whole_book or CLAIMS in names):
        raise InputError("--find and --where filter the whole list; leave out the rest")
    if whole_book:
        if every or json or plan:
            raise InputError("--book is a text of its own; leave out --all, --json and --at")
        return book_text(names, output_format(form, out))
    if names and every:
        raise InputError("name what to derive or say --all, not both")
    if json and form is not None:
        raise InputError("--json is a format of its own; leave out --format")
    if plan is not None and (json or CLAIMS in names):
        raise InputError("--at puts values into derivations; leave out --json, name no claims")
    if CLAIMS in names:
        if len(names) > 1:
            raise InputError("claims is a table of its own: planner derive claims [--json]")
        if json:
            return dumps(claims_rows())
        written = output_format(form, out)
        return claims_text(all_claims()) if written == "text" else claims_document(written)
    if json or find or where or not (names or every or form or out or plan):
        listed = check_formulas(names)
        table = listing(listed).selected(find, where)
        if json:
            return dumps([asdict(row) for row in listed if row.name in set(table.names)])
        return str(table) if table.rows else "no equation is that"
    if plan is not None and not (names or every or form or out):
        return plan_text(plan)
    return derived_text(names, output_format(form, out), plan)


@dataclass(frozen=True)
class CheckedFormula:
    """An equation or derivation of the list, under its name in Python.

    `weakest` is the weakest word of its steps (proven, tested, taken), `premises` what it takes.
    """

    name: str
    title: str
    kind: str
    claims: tuple[str, ...]
    steps: int
    exact: bool
    weakest: str
    premises: list[str]
    checked: bool


def check_formulas(names: Sequence[str] = ()) -> list[CheckedFormula]:
    """The named equations and derivations, or all, each checked.

    Raises InputError if a name is unknown; SolverError if one does not check: a fault of ours.
    """
    entries = {entry_name(entry): entry for entry in _chosen(names)}

    def verdicts() -> dict[str, dict[str, object]]:
        return {name: _verdict(entry, name) for name, entry in entries.items()}

    # Checking all takes ten seconds: verdicts are cached until the sources change.
    columns = verdicts() if names else cached_json("derivations", verdicts, (Path(__file__),))
    return [
        CheckedFormula(name, entry.name, _kind(entry), tags(name), **columns[name])  # type: ignore[arg-type]
        for name, entry in entries.items()
    ]


def _verdict(entry: Equation | Derivation, name: str) -> dict[str, object]:
    """Fields of a checked entry in the list: number of steps, weakest status, premises."""
    derivation = entry if isinstance(entry, Derivation) else None
    return {
        "steps": len(derivation.steps) if derivation else 1,
        "exact": derivation.exact if derivation else True,
        "weakest": derivation.weakest if derivation else STATUS_ASSUMED,
        "premises": list(derivation.premises) if derivation else [entry.name],
        "checked": _checked(entry, name),
    }


COLUMNS: Mapping[str, str | None] = {
    "name": None, "kind": None, "steps": "number", "form": None, "rests on": None,
    "premises": "number", "claims": None, "title": None,
}  # fmt: skip


def listing(listed: Sequence[CheckedFormula]) -> Listing:
    """Format the list as a table of premises and claims; every row was checked before."""
    return Listing(
        COLUMNS,
        tuple(
            (
                row.name,
                row.kind,
                float(row.steps),
                "exact" if row.exact else "approximate",
                row.weakest,
                float(len(row.premises)),
                ", ".join(row.claims),
                row.title,
            )
            for row in sorted(listed, key=lambda row: row.kind)
        ),
    )


def output_format(form: str | None, out: Path | None) -> str:
    """Requested format, else the format of the output file's suffix, else text.

    Raises InputError if the format is unknown, or the name of the file does not say which.
    """
    if form is None and out is not None:
        form = SUFFIXES.get(out.suffix.lower())
        if form is None:
            raise InputError(
                f"{out} does not say which format; end it in {', '.join(SUFFIXES)}, or add --format"
            )
    form = SUFFIXES.get(f".{form}", form or "text")
    if form not in OUTPUT_FORMATS:
        raise InputError(
            f"no format {form!r}{did_you_mean(form, OUTPUT_FORMATS)} (known: "
            f"{', '.join(OUTPUT_FORMATS)})"
        )
    return form


def derived_text(
    names: Sequence[str],
    form: str,
    plan: Path | None = None,
    *,
    title: str | None = None,
    whole: bool | None = None,
) -> str | bytes:
    """The named equations and derivations, or all, in a format; PDF as bytes.

    The claims that rest on an entry stand beside it, and the table of all where `whole` or nothing
    is named. With a plan its values are put in, in place of the sets of assumptions.

    Every step is checked as it is written. Raises InputError if a name is unknown, or a package
    that the format needs is missing; SolverError if a step does not check: a fault of ours.
    """
    chosen = _chosen(names)
    if form in REFERENCES:
        try:
            return REFERENCES[form](chosen)
        except ValueError as error:  # of a step: a fault of ours
            fault = SolverError if isinstance(error, DerivationError) else InputError
            raise fault(str(error)) from error
    # All entries together have the lecture's subject as title; chosen entries use `title`.
    title = title if names else "The economics of a token, derived and checked"
    whole = not names if whole is None else whole
    tagged = {tag for entry in chosen for tag in tags(entry_name(entry))}
    table = physical_column.acceptance(
        [x for x in all_claims() if whole or x.id in tagged], whole=whole
    )
    sets, about = cases(), CASES_NOTE
    if plan is not None:
        sets, about = {"the plan": plan_case(plan)}, (VALUES_NOTE.format(plan=plan),)
    form_of_text = "typst" if form == "pdf" else form
    try:
        written = export(chosen, form_of_text, sets, title=title, about=about, acceptance=table)
    except DerivationError as error:
        raise SolverError(str(error)) from error
    return pdf(written) if form == "pdf" else written


def book_text(names: Sequence[str], form: str) -> str | bytes:
    """The book, or the chapters named by anchor or number, in a format; PDF as bytes.

    Raises InputError if a chapter is unknown or cannot be set; SolverError as `derived_text`.
    """
    try:
        if form == "lean":
            return lean(by_name()[name] for name in DECIMAL_BASE)
        if form == "bibtex":
            return book_references(names)
        verdicts = {entry.name: dict(entry.rows) for entry in physical_column.acceptance().entries}
        written = book("typst" if form == "pdf" else form, names, verdicts)
    except BookError as error:
        raise InputError(str(error)) from error
    except DerivationError as error:
        raise SolverError(str(error)) from error
    return pdf(written) if form == "pdf" else written


def _chosen(names: Sequence[str]) -> tuple[Equation | Derivation, ...]:
    resting = {claim.id: claim.equations for claim in all_claims() if claim.equations}
    try:
        named = [each for name in names for each in resting.get(name, (name,))]
        entries = map(find, named) if names else by_name().values()
        return tuple({id(entry): entry for entry in entries}.values())
    except SymbolError as error:
        raise InputError(str(error)) from error


def _checked(entry: Equation | Derivation, name: str) -> bool:
    """True, or SolverError: an equation or derivation that does not check is a fault of ours."""
    try:
        return entry.check()
    except DerivationError as error:
        raise SolverError(str(error)) from error
    except ValueError as error:
        raise SolverError(f"the {_kind(entry)} {name} does not check: {error}") from error


def _kind(entry: Equation | Derivation) -> str:
    return "derivation" if isinstance(entry, Derivation) else "equation"


def cases() -> dict[str, dict[str, float]]:
    """`{"lecture": ..., "teaching": ..., "physical": ...}`, values of symbols in their own units.

    The lecture's machine and model, its cache and its fast mode are as its claims state them; the
    teaching set is that of the book; the physical figures are of data sheets, the model's own shape
    and a listed rent.
    """
    stated = {claim.id: claim.lecture for claim in all_claims()}
    lecture = {**LECTURE, **stated["C13"], **stated["C6"]}
    physical = {
        **physical_column.chip_case(CHIP, FORMAT, CHIPS),
        **physical_column.model_case(MODEL, FORMAT),
        **WORKLOAD,
        "n_chips": float(CHIPS),
        "n_domain": float(CHIPS),
        "n_layers": float(physical_column.quantized_sizes(MODEL, FORMAT).n_attention_layers),
        "p_chip": default_price(CHIP).value,
    }
    return {
        "lecture": {x: float(value) for x, value in lecture.items()},
        "teaching": {x: float(value) for x, value in base_case("teaching").items()},
        "physical": physical,
    }


def claims_rows() -> list[dict[str, object]]:
    """Every claim as plain data; its equations are checked on the way.

    `verdict` is the word of the rule, `judged` the numbers that it went by. `lecture` and
    `physical` are the two columns. Raises SolverError if an equation that a claim rests on does not
    check: a fault of ours.
    """
    return [_claim_row(physical_column.acceptance_row(claim)) for claim in all_claims()]


def claims_text(claims: Sequence[Claim]) -> str:
    """The table on a terminal: the rule, one block a claim, the tally.

    Raises SolverError as `claims_rows` does.
    """
    table = physical_column.acceptance([claim for claim in claims if _rests_on_checked(claim)])
    return "\n\n".join(claim_blocks(table))


def claims_document(form: str) -> str | bytes:
    """The table, then every derivation that a claim rests on, in a format; links lead both ways.

    Raises as `derived_text` does.
    """
    rests = {name for claim in all_claims() for name in claim.equations}
    names = [name for name in by_name() if name in rests]
    return derived_text(
        names, form, title="The claims of the lecture, derived and judged", whole=True
    )


def _rests_on_checked(claim: Claim) -> bool:
    return all(_checked(by_name()[name], name) for name in claim.equations)


def _claim_row(row: physical_column.AcceptanceRow) -> dict[str, object]:
    claim, verdict = row.claim, row.verdict
    return {
        **{x: getattr(claim, x) for x in ("id", "kind", "statement", "lecture_says", "ours")},
        "verdict": verdict.word,
        "judged": [
            {
                "what": each.what,
                "text": each.text,
                "stated": [each.low or None, each.high if isfinite(each.high) else None],
                "factor": each.factor if isfinite(each.factor) else None,
                "column": column,
            }
            for column, group in (("lecture", verdict.stated), ("physical", verdict.catalogue))
            for each in group
        ],
        "why": row.why,
        "equations": list(claim.equations),
        "checked": _rests_on_checked(claim),
        "source": str(claim.source),
        "link": claim.source.link,
        "lecture": [
            {"what": each.what, "value": value, "unit": each.unit, "equation": each.equation}
            for each, value in zip(claim.worked, claim.values(), strict=True)
        ],
        "physical": [
            {name: x for name, x in vars(each).items() if name != "compared"} | {"text": each.text}
            for each in row.physical
        ],
    }
