"""The command line: parses and shows, computes nothing; the only code that prints."""

import sys


def main() -> None:
    """Start the command; Ctrl-C while it is still being imported ends it without a traceback."""
    try:
        from ihgnn_cli.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
