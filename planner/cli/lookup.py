"""What is known? Commands that look up models, chips, equations, networks and schemas."""

from pathlib import Path

from planner.cli.options import option_quantity, warn
from planner.report.files import check_file, deliver, dumps
from planner.text.console import note, show
from planner.text.errors import InputError


def model(name: str, json: bool = False) -> None:
    """Say what a model is made of."""
    from planner.report.text.catalog import model as answer
    from planner.report.text.catalog import model_text

    document = answer(name)
    warned = document["warnings"]
    warn(warned if isinstance(warned, list) else ())
    show(dumps(document) if json else model_text(document))


def catalog(
    kind: str | None = None,
    name: str | None = None,
    find: str | None = None,
    where: list[str] | None = None,
    refresh: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Show what is known, with source and date of every figure."""
    if refresh or out is not None:
        _refreshed_prices(kind, name, refresh, out, json)
        return
    from planner.report.text.catalog import catalog as answer
    from planner.report.text.catalog import catalog_text

    document = answer(kind, name, find, where or ())
    show(dumps(document) if json else catalog_text(document))


def _refreshed_prices(
    kind: str | None, model: str | None, refresh: bool, out: Path | None, json: bool
) -> None:
    """Listed prices read anew: what changed as a table, and the whole snapshot into a file."""
    from datetime import date

    from planner.catalogue.api_prices import PRICES_ENV_VAR, model_names
    from planner.catalogue.refresh.price_refresh import price_refresh
    from planner.protocol.document import to_document
    from planner.report.text.price_table import refresh_text
    from planner.text.errors import CatalogueError

    if kind != "api-prices" or not refresh:
        raise InputError("--refresh and --out read listed prices anew: "
                         "planner catalog api-prices --refresh --out prices.csv")  # fmt: skip
    if out is not None:
        check_file(out, "--out", ("csv",))
    if model is not None and model not in model_names():
        raise CatalogueError.unknown("listed model", model, model_names())
    anew = price_refresh(date.today())
    show(dumps(to_document(anew.changes)) if json else refresh_text(anew, model))
    if out is not None:
        deliver(anew.csv(), out)
        note(f"{PRICES_ENV_VAR}={out} has it read in place of the shipped prices", warning=True)


def formula(
    name: str | None = None,
    solve_for: str | None = None,
    sets: list[str] | None = None,
    find: str | None = None,
    where: list[str] | None = None,
    form: str | None = None,
    json: bool = False,
) -> None:
    """Show one equation: text, symbols with units, source, value; or code of it."""
    from planner.protocol.document import to_document
    from planner.report.text import formula as equations

    if form is not None:
        if name is None or any((sets, find, where, json)):
            raise InputError("--format writes one equation as code: planner formula NAME --format "
                             "python [--solve-for SYMBOL]; leave out the rest")  # fmt: skip
        show(equations.formula_code(name, solve_for, form))
        return
    if name is None:
        rows = equations.formula_rows(find, where or ())
        show(dumps(to_document(rows)) if json else equations.formulas_text(rows))
        return
    if find or where:
        raise InputError(f"--find and --where filter the whole list; leave out {name!r}")
    card = equations.formula_card(name, solve_for, sets or ())
    show(dumps(to_document(card)) if json else equations.formula_text(card))


def derive(
    names: list[str] | None = None,
    every: bool = False,
    book: bool = False,
    at: Path | None = None,
    find: str | None = None,
    where: list[str] | None = None,
    form: str | None = None,
    fragment: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """List what is derived, or print some of it with every step checked on the way."""
    from planner.report.text.derivations import FRAGMENT, derive_output

    if fragment and form not in (None, "latex"):
        raise InputError(f"--fragment is LaTeX without a preamble; leave out --format {form}")
    written = derive_output(
        names or (), every=every, form=FRAGMENT if fragment else form, out=out, json=json,
        whole_book=book, plan=at, find=find, where=where or (),
    )  # fmt: skip
    deliver(written, out)


def schema(answer: str | None = None, out: Path | None = None) -> None:
    """Print the JSON Schema of the scenario for editors, or of what a command answers."""
    from planner.scenario import json_schema

    if answer is None:
        deliver(dumps(json_schema()), out)
        return
    from planner.comparison.gate import document_schema

    deliver(dumps(document_schema(answer)), out)


def topology(
    name: str | None = None,
    chips: int | None = None,
    shape: str | None = None,
    twisted: bool = False,
    join: str | None = None,
    leaf: int | None = None,
    oversubscription: float | None = None,
    group: list[int] | None = None,
    collective: str | None = None,
    sizes: list[str] | None = None,
    routing: str = "optimal",
    svg: Path | None = None,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Check, measure and draw a network; without a name list the machines."""
    from planner.library import topology as answer
    from planner.network.network_source import machines
    from planner.report.text.topology import FORMS, machines_text, write_fabric, write_picture

    if name is None:
        if any((chips, shape, group, collective, sizes, svg, out)):
            raise InputError("give a network; `planner topology` lists the machines")
        rows = machines()
        show(dumps(rows) if json else machines_text(rows))
        return
    if sizes and collective is None:
        raise InputError("--bytes needs --collective, such as --collective all-reduce")
    if svg is not None:
        check_file(svg, "--svg", ("svg",))
    if out is not None:
        check_file(out, "--out", FORMS)
    network = answer(
        name,
        chips,
        shape=shape,
        twisted=twisted,
        join=join,
        leaf=leaf,
        oversubscription=oversubscription,
        groups=group or (),
        collective=collective,
        messages=[option_quantity("--bytes", size, "size") for size in sizes or ()],
        routing=routing,
    )
    warn(network.warnings)
    if svg is not None:
        write_picture(network.fabric, svg)
    if out is not None:
        write_fabric(network.fabric, out)
    show(dumps(network.document) if json else str(network))
