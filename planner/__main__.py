"""`python -m planner` is the console script."""

from planner.cli.app import main

if __name__ == "__main__":
    main()
