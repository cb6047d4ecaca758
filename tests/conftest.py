"""Random tests draw the same examples at every CI run, so that a failure there can be repeated."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
