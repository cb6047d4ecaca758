"""The site of these pages: `python -m sphinx -W docs docs/_build`, offline, warnings as errors.

What can be generated is, by `docs/_extension`, into `docs/generated`, which is not committed.
"""

import sys
from importlib.metadata import version as installed
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

project = "token-planner"
author = "the authors of token-planner"
copyright = f"{author}, Apache-2.0"
release = version = installed("token-planner")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "_extension",
]
exclude_patterns = ["_build"]
smartquotes = False  # two dashes begin an option
default_role = "literal"  # one backtick is code, in docstrings as in Markdown
nitpicky = False  # docstrings name types of other libraries, whose pages are not at hand offline

myst_enable_extensions = ["deflist", "dollarmath"]
myst_dmath_allow_digits = False  # $3.50 is a price
myst_heading_anchors = 3

autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

doctest_global_setup = f"import os\nos.chdir({str(DOCS.parent)!r})"

html_theme = "furo"
html_title = "token-planner"
html_static_path = ["_static", "../formulas/export/token-planner-math.woff2"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_extra_path = ["validation.html"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
html_math_renderer = "symbols"
