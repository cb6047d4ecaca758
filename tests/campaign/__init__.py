"""The campaign against the planner: hostile input, answers checked anew, faults while it writes.

`python -m tests.campaign` runs it in full and prints counts, failures and CPU time; the tests of
`tests/test_campaign` run the same cases in a small size. Every case is a family and a number: a
failure prints both, and `python -m tests.campaign --case FAMILY:NUMBER` shows it alone.
"""
