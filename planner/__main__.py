"""`python -m planner` is the console script."""

import signal
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line and exit; an interrupt is one line, while things are imported too."""
    try:
        with suppress(ValueError):  # signals are the main thread's
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end: like Ctrl-C
        from planner.cli.app import main as command

        command()
    except KeyboardInterrupt:
        print("planner: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
