"""Fit what ships, and score such fits: `python -m tools.fit COMMAND`, from a checkout.

Everything is seeded: the same tables give the same files.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from planner.measurements.entry import parse_facts
from planner.report.files import deliver, dumps
from planner.report.pages.validation_page import page
from planner.report.text.validation_text import validation_text
from planner.text.errors import InputError, PlannerError
from planner.validation.estimates import measurement_files
from planner.validation.validation_document import GROUP_KEYS, document
from tools.fit.curve_file import collectives_text
from tools.fit.deployments import deployment_scores, deployments_text
from tools.fit.group_cross_validation import refitted_tables
from tools.fit.leave_outs import LEAVE_OUTS
from tools.fit.power_fit import write_power
from tools.fit.serving_fit import write_profiles
from tools.fit.stack_scores import write_stacks
from tools.fit.training_scores import unseen_scores


def arguments() -> argparse.ArgumentParser:
    """What each command takes."""
    parser = argparse.ArgumentParser(prog="python -m tools.fit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, words: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=words, description=words)

    serving = command("serving", "profiles of serving, with errors on rows left out")
    serving.add_argument("--steady", type=Path, required=True, help="steady batches")
    serving.add_argument("--runs", type=Path, nargs="+", default=[], help="runs of whole engines")
    serving.add_argument("--choose", action="store_true", help="score the rivals of the fit too")
    collectives = command("collectives", "curves of collectives, measured and borrowed")
    collectives.add_argument("table", type=Path)
    power = command("power", "what chips draw; without --out errors alone")
    power.add_argument("table", type=Path)
    stacks = command("stacks", "training stacks of the catalogue, written in place")
    stacks.add_argument("tables", type=Path, nargs="+")
    refit = command("refit", "predict rows by fits of the others, and score them as validate does")
    refit.add_argument("leave", choices=[each.word for each in LEAVE_OUTS])
    refit.add_argument("data", type=Path, nargs="+")
    refit.add_argument("--fact", action="append", default=[], metavar="NAME=VALUE")
    refit.add_argument("--models", type=Path, action="append", default=[])
    refit.add_argument("--by", default="engine,chip,model", help=f"of {', '.join(GROUP_KEYS)}")
    deployments = command("deployments", "published deployments, asked for as a user would")
    deployments.add_argument("table", type=Path)
    deployments.add_argument("ids", nargs="*", help="all that can be asked, if none is given")
    for one, required in ((serving, True), (collectives, True), (power, False), (refit, False)):
        words = "a page" if one is refit else "a folder"
        one.add_argument("--out", type=Path, required=required, help=words)
    for one in (refit, deployments):
        one.add_argument("--json", action="store_true")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 2 for a mistake in the input."""
    given = arguments().parse_args(words)
    try:
        _run(given)
    except PlannerError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _run(given: argparse.Namespace) -> None:
    if given.command == "serving":
        write_profiles(given.steady, given.runs, given.out, choose=given.choose)
    elif given.command == "collectives":
        text = collectives_text(given.table)
        (given.out / "collectives.toml").write_text(text, encoding="utf-8")
    elif given.command == "power":
        write_power(given.table, given.out)
    elif given.command == "stacks":
        write_stacks(given.tables)
    elif given.command == "deployments":
        scores = deployment_scores(given.table, given.ids)
        print(dumps(asdict(scores)) if given.json else deployments_text(scores))
    else:
        _refit(given)


def _refit(given: argparse.Namespace) -> None:
    """Scores of rows by fits of the others: training steps, pools of rl, or serving."""
    by = [name.strip() for name in given.by.split(",") if name.strip()]
    if unknown := [name for name in by if name not in GROUP_KEYS]:
        raise InputError(f"--by {unknown[0]} (known: {', '.join(GROUP_KEYS)})")
    of_training = unseen_scores(given.data)
    if of_training is not None:
        print(dumps(of_training.document) if given.json else of_training)
        return
    read = refitted_tables(
        measurement_files(given.data), given.leave, parse_facts(given.fact), tuple(given.models)
    )
    scores = document("auto", read.tables, by, given.leave, read.skipped)
    if given.out is not None:
        deliver(page(scores), given.out)
    print(dumps(scores.to_json()) if given.json else validation_text(scores))


if __name__ == "__main__":
    sys.exit(main())
