"""The works that equations and derivations cite, as BibTeX."""

from collections.abc import Iterable

from formulas.algebra.derivation import Derivation
from formulas.algebra.equation import Equation
from formulas.export.latex import latex_words
from formulas.nomenclature.sources import Source


def bibtex(objects: Iterable[Equation | Derivation]) -> str:
    """One entry for each work, by key; works without a paper of their own are `misc`."""
    works: dict[str, Source] = {}
    for item in objects:
        for citation in (item.source, *(inner.source for inner in item.where)):
            if citation.source is not None:
                works[citation.source.key] = citation.source
    return "\n\n".join(_entry(works[key]) for key in sorted(works)) + "\n" * bool(works)


def _entry(work: Source) -> str:
    """Authors are written as they are cited, in braces: `et al.` is no name to be taken apart."""
    fields = {
        "author": f"{{{latex_words(work.authors)}}}",
        "title": f"{{{latex_words(work.title)}}}",
        "year": str(work.year),
        "url": work.link,
    }
    _, _, paper = work.link.partition("arxiv.org/abs/")
    _, _, name = work.link.partition("doi.org/")
    fields |= {"eprint": paper, "archiveprefix": "arXiv"} if paper else {}
    fields |= {"doi": name} if name else {}
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    kind = "article" if paper or name else "misc"
    return "\n".join([f"@{kind}{{{work.key},", *lines, "}"])
