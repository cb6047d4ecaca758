"""Chapters: what they hold, and the sentence that refuses what they lack."""

import tomllib

import pytest

from formulas.book.book_values import BookError
from formulas.book.prose import FOLDER, chapters, chosen_chapters, parse_chapter
from formulas.claims import all_claims
from formulas.registry import by_name

FILES = sorted(FOLDER.glob("*.toml"))


def rows():
    """The tables of the first chapter."""
    return tomllib.loads(FILES[0].read_text("utf-8"))


def test_seven_chapters_in_the_order_of_the_lecture():
    """Each with figures, five exercises, names of the catalogue and claims that there are."""
    assert [chapter.anchor for chapter in chapters()] == [
        "step", "batch", "experts", "pipeline", "training", "prices", "reversible",
    ]  # fmt: skip
    claims = {claim.id for claim in all_claims()}
    for chapter in chapters():
        assert chapter.figures
        assert len(chapter.exercises) == 5
        assert set(chapter.taken) <= by_name().keys()
        assert set(chapter.claims) <= claims


def test_no_derivation_is_told_twice_and_three_arguments_are_false():
    """A name has one place, so that its anchor leads there."""
    taken = [name for chapter in chapters() for name in chapter.taken]
    assert len(taken) == len(set(taken))
    false = [each for chapter in chapters() for each in chapter.exercises if each.refused]
    assert len(false) == 3


def test_the_figures_of_the_lecture_are_there():
    """Roofline, cost with a menu, coverage, racks, timetable, price against context, pools."""
    names = {figure.name for chapter in chapters() for figure in chapter.figures}
    wanted = {"roofline", "hyperbola", "coverage", "racks", "timetable", "context", "pools"}
    assert wanted <= names


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows.pop("figure"), "chapter step has no figure; draw one under [[figure]]"),
        (lambda rows: rows.pop("question"), "chapter step: question is missing"),
        (lambda rows: rows.update(qestion="?"), "chapter step: qestion is unknown"),
        (lambda rows: rows["exercise"].pop(), "chapter step has 4 exercises, not 5"),
        (lambda rows: rows["exercise"][0].pop("answer"), "it has no answer"),
        (lambda rows: rows["figure"][0].pop("curves"), "it has neither curves nor bars"),
    ],
)
def test_what_a_chapter_lacks_is_said(change, words):
    """One sentence, with the place."""
    changed = rows()
    change(changed)
    with pytest.raises(BookError) as refused:
        parse_chapter(changed, "step")
    assert words in str(refused.value)


def test_chapters_are_chosen_by_anchor_or_number():
    """In the order named, each once; an unknown one is refused with the nearest name."""
    assert [x.anchor for x in chosen_chapters(("4", "step", "pipeline"))] == ["pipeline", "step"]
    with pytest.raises(BookError, match=r"no chapter 'pipline'.*did you mean 'pipeline'"):
        chosen_chapters(("pipline",))
    with pytest.raises(BookError, match="no chapter '9'; there are step, batch"):
        chosen_chapters(("9",))
